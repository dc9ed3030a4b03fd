"""The bound seed set is a published one, adopted inside its window."""

from pathlib import Path

import pytest

from core.errors import InputError
from core.seeds import bound_seed_set

NESTED = """
cohort:
  cohort-id: 2027-01-C0
  seed_sets:
    - {id: B, scheduler_rng_seed: 18446744073709551615, sample_index_rng_seed: 2, model_seed: 3}
"""
BARE = """
seed_sets:
  - {id: B, scheduler_rng_seed: 1, sample_index_rng_seed: 2, model_seed: 3}
"""


def test_set_a_keeps_its_exact_values() -> None:
    """Set A's scheduler seed exceeds 2**63."""
    seed_set = bound_seed_set("A", "2026-12-C0", None)
    assert seed_set.scheduler_rng_seed == 10487924139932647040
    assert seed_set.scheduler_rng_seed > 2**63


@pytest.mark.parametrize("cohort", ["2026-10-C0", "2027-01-C0"])
def test_a_cohort_outside_the_window_is_refused_with_the_window(cohort: str) -> None:
    with pytest.raises(InputError, match="2026-10-C1, 2026-11-C0, 2026-11-C1, 2026-12-C0"):
        bound_seed_set("A", cohort, None)


def test_a_malformed_cohort_is_refused_with_the_window() -> None:
    with pytest.raises(InputError, match=r"'December' is not of the form .*2026-12-C0"):
        bound_seed_set("A", "December", None)


def test_an_unknown_set_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no published seed set 'Z'; there are A"):
        bound_seed_set("Z", "2026-12-C0", None)


def test_both_registry_shapes_load(tmp_path: Path) -> None:
    registry = tmp_path / "sets.yaml"
    registry.write_text(NESTED)
    assert bound_seed_set("B", "2027-02-C1", registry).scheduler_rng_seed == 2**64 - 1
    with pytest.raises(InputError, match="2027-02-C1"):
        bound_seed_set("B", "2027-03-C0", registry)
    registry.write_text(BARE)
    assert bound_seed_set("B", "2031-01-C0", registry).cohorts == ()
    with pytest.raises(InputError, match=r"not of the form 2026-10-C1$"):
        bound_seed_set("B", "soon", registry)


def test_an_unreadable_registry_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"seeds\.registry: .*none\.yaml"):
        bound_seed_set("A", "2026-12-C0", tmp_path / "none.yaml")
