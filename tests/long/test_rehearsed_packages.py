"""Rehearsed campaigns of each kind, with real durations by the stand-in, packaged strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.rehearsed import KINDS, assert_packages
from tests.flows.support import Place


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_rehearsal_packages_strictly(kind: str, tmp_path: Path, prefect_api_url: str) -> None:
    """With an elected and a dedicated Offline run, and of conversations."""
    assert_packages(Place(tmp_path, prefect_api_url), kind)
