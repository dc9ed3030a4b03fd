"""A rehearsed campaign of each kind, packaged strictly (the short suite has one of them)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.rehearsed import KINDS, assert_packages
from tests.flows.support import Place


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"elected"}))
def test_a_rehearsal_packages_strictly(kind: str, tmp_path: Path, prefect_api_url: str) -> None:
    """With a dedicated Offline run, and of conversations."""
    assert_packages(Place(tmp_path, prefect_api_url), kind)
