"""A campaign as it was read and planned."""

from __future__ import annotations

from pathlib import Path

from flows.prepare import prepare
from tests.flows.packaged import Finished


def test_its_repr_holds_no_secret(tmp_path: Path) -> None:
    """The environment is left out: a repr gets into tracebacks and logs."""
    ready = prepare(Finished(tmp_path).file, {"ENDPOINT_API_KEY": "hush-hush"})
    assert ready.env["ENDPOINT_API_KEY"] == "hush-hush"
    assert "hush-hush" not in repr(ready)
