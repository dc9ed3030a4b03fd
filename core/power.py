"""Power of a point (§4.5, Appendix E): the only importer of the official derivation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submission_checker.power_summary import derive_point_power


def point_power_kw(
    power: Mapping[str, Any], point: Mapping[str, Any], system: Mapping[str, Any]
) -> float | None:
    """Power that a point engages, kW; None: it doesn't follow from what is disclosed.

    Args:
        power: The descriptor, as `system_power.json` has it.
        point: The point's disclosure, as `point.yaml` has it.
        system: The system's description at the point, as `system_desc.json` has it.
    """
    found = derive_point_power(dict(power), dict(point), dict(system), {})
    kilowatts: float | None = found["point_power_kw"]
    return kilowatts
