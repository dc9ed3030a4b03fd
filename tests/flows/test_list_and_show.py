"""`pareto list` and `pareto show`: what is on record, in a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from core.records import campaigns
from core.status import AttemptState
from flows.prepare import prepare
from flows.session import Surroundings, enter
from flows.stop import StopRequest
from tasks.owner import this_process
from tests.flows.support import LABELS, Done, Place

FINDING = {
    "rule": "too-short",
    "severity": "error",
    "seen": "issue time 3 s",
    "wanted": "at least 12 s",
    "advice": "the next attempt is sized by the rate seen",
}


@pytest.fixture
def listed(bare_place: Place) -> Place:
    """Two campaigns on record; the older one has a point that failed, and measures now."""
    for name in ("curve", "younger"):
        bare_place.name = name
        bare_place.write()
        enter(prepare(bare_place.file, {}), Surroundings(None, {}, None), StopRequest().asked)
    bare_place.name = "curve"
    records, owner = bare_place.records, this_process()
    attempt = records.new_attempt("curve", "c0033", owner=owner)
    records.change_state(attempt.id, AttemptState.RUNNING)
    records.change_state(attempt.id, AttemptState.INVALID, findings=[FINDING], reason="too-short")
    records.take_lease("box", "curve", owner)
    return bare_place


def database(place: Place) -> list[str]:
    """Names the records."""
    return ["--database", f"sqlite:///{place.data / 'pareto.db'}"]


def test_the_list_tells_how_each_campaign_stands(
    listed: Place, call: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newest first, in pages; a page that there is not is refused."""
    done = call(listed, "list", *database(listed))
    assert done.code == 0, done
    younger, curve = [line for line in done.out.splitlines() if "REHEARSAL" in line]
    assert younger.split()[0] == "younger"
    assert {"pending", "–"} <= set(younger.split())
    assert f"0 of {len(LABELS)}" in curve
    assert {"incomplete", "box"} <= set(curve.split())
    told = json.loads(call(listed, "list", "--json", *database(listed)).out)
    assert [(one["campaign"], one["state"], one["valid"]) for one in told] == [
        ("younger", "pending", 0),
        ("curve", "incomplete", 0),
    ]
    monkeypatch.setattr(campaigns, "PAGE_SIZE", 1)
    first = call(listed, "list", *database(listed)).out
    assert "page 1 of 2; `pareto list --page 2` shows older ones" in first
    assert "curve" in call(listed, "list", "--page", "2", *database(listed)).out
    refused = call(listed, "list", "--page", "3", *database(listed))
    assert (refused.code, refused.err.strip()) == (2, "pareto: --page: 3; there are pages 1 to 2")


def test_show_says_what_to_do(listed: Place, call: Callable[..., Done]) -> None:
    """Facts, curve, who measures, and each finding of the last attempts with its advice."""
    done = call(listed, "show", "curve", *database(listed))
    assert done.code == 0, done
    assert f"incomplete, 0 of {len(LABELS)} points valid, 1 attempts" in done.out
    assert f"measured by  process {this_process().pid} on" in done.out
    assert "c0033 attempt 1: " in done.out
    assert FINDING["advice"] in done.out
    told = json.loads(call(listed, "show", "curve", "--json", *database(listed)).out)
    assert told["attempts"][0]["findings"] == [FINDING]
    unknown = call(listed, "show", "unheard-of", *database(listed))
    assert unknown.code == 2
    assert "no campaign 'unheard-of'" in unknown.err
