"""A bounded run of the chaos; the whole is `make chaos`."""

from __future__ import annotations

from pathlib import Path

from tests.faults.chaos import chaos


def test_a_few_campaigns_with_random_faults(tmp_path: Path) -> None:
    """Each ends valid or with a named reason, leaves no process, and is then completed."""
    assert len(list(chaos(2, seed=5, folder=tmp_path))) == 2
