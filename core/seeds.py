"""The published seed sets and their adoption windows (§4.6), as the official package reads them."""

from __future__ import annotations

from pathlib import Path

from submission_checker.cohorts import Cohort
from submission_checker.seed_sets import SeedSet, SeedSetError, load_seed_sets

from core.errors import InputError

__all__ = ["SeedSet", "bound_seed_set"]


def bound_seed_set(set_id: str, target_cohort: str, registry: Path | None) -> SeedSet:
    """The seed set a curve is bound to, if the target cohort may adopt it.

    A registry without cohorts can't answer the adoption question; the set is then accepted,
    as the official checker does (`seed-set-adoption` is skipped).

    Args:
        set_id: Id of the published set, e.g. ``A``.
        target_cohort: Cohort of the submission, ``YYYY-MM-C0`` or ``-C1``.
        registry: Registry file; default: ``MLPERF_ENDPOINTS_SEED_SETS``, then the package's own.

    Raises:
        InputError: unreadable registry, unknown set, malformed cohort, cohort outside the window.
    """
    try:
        published = load_seed_sets(registry)
    except SeedSetError as problem:
        raise InputError(f"seeds.registry: {problem}") from None
    chosen = published.get(set_id)
    if chosen is None:
        raise InputError(
            f"seeds.set: no published seed set {set_id!r}; there are {', '.join(sorted(published))}"
            " (seed-set-membership)"
        )
    if Cohort.parse(target_cohort) is None:
        raise InputError(
            f"seeds.target_cohort: {target_cohort!r} is not of the form 2026-10-C1"
            + _window_hint(chosen)
        )
    if chosen.cohorts and target_cohort not in chosen.cohorts:
        raise InputError(
            f"seeds.target_cohort: set {set_id} can't be adopted in {target_cohort}"
            + _window_hint(chosen)
        )
    return chosen


def _window_hint(chosen: SeedSet) -> str:
    if not chosen.cohorts:
        return ""
    return f"; set {chosen.id} may be adopted in {', '.join(chosen.cohorts)}"
