"""Every rule of the official checker (§9.1): when it is answered here, and which key answers it.

The official checker itself is asked early (`flows/ahead.py`): at plan time with the campaign's
disclosures and specimen results, right after a point with its results and specimen disclosures. So
no rule is written twice, and packaging brings no surprise. This table says which question each rule
belongs to, under its official id; a test compares it with the checker's own catalogue.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from core.findings import Finding, Severity, Subject


class When(StrEnum):
    """The earliest moment at which a rule is answered."""

    PLAN = "plan"  # from the campaign file
    POINT = "point"  # right after a point
    CURVE = "curve"  # once all points are there
    PACKAGE = "package"  # from the assembled files; made right by construction


@dataclass(frozen=True)
class Rule:
    """One official rule."""

    when: When
    key: str  # of the campaign file, or the step, that makes it right


_RUN_AGAIN = "`pareto retry`: run the point again"
_LEVELS = "curve.levels"
_BUILT = "`pareto package` writes it"

#: Official rule id → when and by what it is answered (checker 1.5.3, `messages.yaml`).
RULES: dict[str, Rule] = {
    # --- From the campaign file ------------------------------------------------------------
    "approved-drafter": Rule(When.PLAN, "disclosure.speculative_decoding"),
    "drafter-approval-lead-time": Rule(When.PLAN, "seeds.target_cohort"),
    "drafter-list-registry": Rule(When.PLAN, "the official package's drafter list"),
    "benchmark-type-consistency": Rule(When.PLAN, "curve.agentic"),
    "c-min-override": Rule(When.PLAN, "curve.c_min_override"),
    "concurrency-in-range": Rule(When.PLAN, _LEVELS),
    "config-consistency-dataset": Rule(When.PLAN, "datasets.performance"),
    "config-consistency-model": Rule(When.PLAN, "benchmark"),
    "load-pattern": Rule(When.PLAN, "curve.offline"),
    "ultra-low-concurrency-coverage": Rule(When.PLAN, _LEVELS),
    "low-concurrency-coverage": Rule(When.PLAN, _LEVELS),
    "med-concurrency-coverage": Rule(When.PLAN, _LEVELS),
    "high-concurrency-coverage": Rule(When.PLAN, _LEVELS),
    "max-concurrency-declared": Rule(When.PLAN, "curve.c_max"),
    "maximal-engagement": Rule(When.PLAN, "disclosure.points"),
    "nodes-used": Rule(When.PLAN, "disclosure.points"),
    "model-name-consistency": Rule(When.PLAN, "benchmark"),
    "model-name-valid": Rule(When.PLAN, "benchmark"),
    "offline-declared": Rule(When.PLAN, "curve.offline"),
    "offline-point-present": Rule(When.PLAN, "curve.offline"),
    "point-cap": Rule(When.PLAN, _LEVELS),
    "point-count": Rule(When.PLAN, _LEVELS),
    "point-config-valid": Rule(When.PLAN, "disclosure"),
    "point-rules-skipped": Rule(When.PLAN, "disclosure"),
    "point-disclosure-complete": Rule(When.PLAN, "disclosure"),
    "power-descriptor": Rule(When.PLAN, "disclosure.power"),
    "power-estimated": Rule(When.PLAN, "disclosure.power"),
    "region-basis": Rule(When.PLAN, "curve.c_max"),
    "region-computation": Rule(When.PLAN, "curve.c_max"),
    "region-declared": Rule(When.PLAN, _LEVELS),
    "region-placement": Rule(When.PLAN, _LEVELS),
    "seed-config-legacy": Rule(When.PLAN, "seeds.set"),
    "seed-runtime-match": Rule(When.PLAN, "seeds.set"),
    "seed-set-adoption": Rule(When.PLAN, "seeds.target_cohort"),
    "seed-set-consistency": Rule(When.PLAN, "seeds.set"),
    "seed-set-membership": Rule(When.PLAN, "seeds.set"),
    "seed-set-registry": Rule(When.PLAN, "seeds.registry"),
    "shared-path-resolution": Rule(When.PLAN, "disclosure.implementation"),
    "src-dir": Rule(When.PLAN, "disclosure.src"),
    "src-readme": Rule(When.PLAN, "disclosure.src"),
    "system-description-consistency": Rule(When.PLAN, "disclosure.points"),
    "system-description-valid": Rule(When.PLAN, "disclosure.system"),
    "target-cohort": Rule(When.PLAN, "seeds.target_cohort"),
    # --- Right after a point -----------------------------------------------------------------
    "accuracy-gate": Rule(When.POINT, "the accuracy of the served model"),
    "accuracy-sample-count": Rule(When.POINT, "datasets.accuracy"),
    "accuracy-valid": Rule(When.POINT, _RUN_AGAIN),
    "agentic-accuracy": Rule(When.POINT, "benchmark"),
    "agentic-accuracy-inline": Rule(When.POINT, "the accuracy of the served model"),
    "agentic-metric-consistency": Rule(When.POINT, _RUN_AGAIN),
    "agentic-osl-range": Rule(When.POINT, "client.overrides"),
    "metric-consistency-accounting": Rule(When.POINT, _RUN_AGAIN),
    "metric-consistency-duration": Rule(When.POINT, _RUN_AGAIN),
    "metric-consistency-output-tokens": Rule(When.POINT, "model.tokenizer"),
    "metric-consistency-system-tps": Rule(When.POINT, _RUN_AGAIN),
    "metric-consistency-tpot-p90": Rule(When.POINT, "model.tokenizer"),
    "metric-consistency-tps-per-kw": Rule(When.POINT, _RUN_AGAIN),
    "metric-consistency-tps-per-user": Rule(When.POINT, _RUN_AGAIN),
    "min-query-count": Rule(When.POINT, "run.min_passes"),
    "point-duration": Rule(When.POINT, "run.duration_margin"),
    "result-file-valid": Rule(When.POINT, _RUN_AGAIN),
    "steady-state-basis": Rule(When.POINT, "run.basis"),
    "steady-state-consistency": Rule(When.POINT, "run.basis"),
    "steady-state-valid": Rule(When.POINT, _RUN_AGAIN),
    "streaming-config": Rule(When.POINT, "client.overrides"),
    "warmup-logs-retained": Rule(When.POINT, "disclosure.warmup.logs_retained"),
    "warmup-present": Rule(When.POINT, _BUILT),
    "warmup-salt": Rule(When.POINT, "client.overrides"),
    # --- Once all points are there -------------------------------------------------------------
    "accuracy-coverage": Rule(When.CURVE, "`pareto status`: the points that are missing"),
    "agentic-accuracy-swebench": Rule(When.CURVE, "the accuracy of the served model"),
    "offline-ordering": Rule(When.CURVE, "curve.offline"),
    "accuracy-present": Rule(When.CURVE, "datasets.accuracy"),
    # --- From the assembled files ----------------------------------------------------------------
    "benchmark-model-dir": Rule(When.PACKAGE, _BUILT),
    "config-file-present": Rule(When.PACKAGE, _BUILT),
    "measurement-points-present": Rule(When.PACKAGE, _BUILT),
    "path-exists": Rule(When.PACKAGE, _BUILT),
    "point-dirname-concurrency": Rule(When.PACKAGE, _BUILT),
    "point-dirs": Rule(When.PACKAGE, _BUILT),
    "required-dir": Rule(When.PACKAGE, "disclosure.docs"),
    "result-summary-present": Rule(When.PACKAGE, _BUILT),
    "system-description-present": Rule(When.PACKAGE, _BUILT),
    "system-results-dir": Rule(When.PACKAGE, _BUILT),
    "tps-utilization": Rule(When.PACKAGE, _BUILT),
}

#: A field of a file, as the checker's messages place it.
_FIELD = re.compile(r"(?P<file>[\w.]+), field `(?P<field>[^`]+)`")
#: A position in a list, as those messages write it.
_POSITION = re.compile(r"\.(\d+)(?=\.|$)")
#: Files whose fields are keys of the campaign file.
_FIELDS_OF = {"system_desc.json": "disclosure.system", "system_power.json": "disclosure.power"}


@dataclass(frozen=True)
class Remark:
    """One thing that is wrong with a submission, with what makes it right."""

    rule: str  # the official id, or one of `core/gates.py`
    severity: Severity
    message: str
    fix: str | None
    place: str  # a point's label, or the curve
    key: str  # of the campaign file, or the step, that makes it right

    def as_finding(self) -> Finding:
        """It as a finding of an attempt, under the official rule id."""
        about: Subject = "accuracy" if "accuracy" in self.rule else "performance"
        advice = f"{self.fix} ({self.key})" if self.fix else self.key
        return Finding(self.rule, self.severity, self.message, "as §9.1 asks", advice, about)


def key_for(rule: str, message: str) -> str:
    """The key of the campaign file, or the step, that makes what the checker says right."""
    found = _FIELD.match(message)
    section = _FIELDS_OF.get(found["file"]) if found else None
    if found and section:
        return _POSITION.sub(r"[\1]", f"{section}.{found['field']}")
    known = RULES.get(rule)
    return known.key if known else "see the message"


#: Official ids that a finding of an attempt may have.
POINT_RULES = frozenset(rule for rule, known in RULES.items() if known.when is When.POINT)
