"""One system, one curve: restarts, replaced servers, changed probes, rebases and verification."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.status import AttemptState, PointState
from flows.verify import verify_campaign
from tasks.campaign_file import read_campaign
from tests.flows.support import (
    Done,
    Place,
    finish,
    is_alive,
    kill,
    wait_until,
)

#: Times that two campaigns want one instance at the same moment.
ROUNDS = int(os.environ.get("PARETO_TEST_RACES", "2"))


@contextmanager
def steady_port(place: Place) -> Iterator[dict[str, int]]:
    """The port that all servers of a test listen on, one after the other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place.url = f"http://127.0.0.1:{port}"
    yield {"port": port}


def findings(place: Place, label: str) -> list[list[str]]:
    """Rules of the findings of each attempt at a point."""
    return [[finding["rule"] for finding in a.findings] for a in place.attempts(label)]


def event_payloads(place: Place, kind: str) -> list[dict[str, Any]]:
    """What the campaign's events of one kind say."""
    return [event.payload for event in place.records.campaign_events(place.name, kind)]


def run(place: Place, points: str) -> Done:
    """`pareto run` of a few points."""
    return place.pareto("run", place.file, "--points", points)


def test_a_restart_goes_on_and_another_version_stops(place: Place) -> None:
    """Restarted between two points: on record, and both are valid. Replaced: exit 4, no load."""
    with steady_port(place) as port:
        place.write()
        with place.endpoint(**port):
            assert run(place, "1").code == 1
        with place.endpoint(**port):
            assert run(place, "2").code == 1
        (change,) = event_payloads(place, "instance.changed")
        assert (change["after"], change["before"]) == ("c0001", "c0002")
        assert "process_start_time_seconds" in change["changes"][0]
        assert place.points()["c0002"].state is PointState.VALID
        drift = place.pareto("drift", place.file)
        assert drift.code == 0, drift
        assert "another instance after c0001, before c0002" in drift.out

        with place.endpoint(server_version="2.0", **port):
            done = run(place, "3")
    assert done.code == 4, done
    change_line = f"endpoint: {place.url}./version.version: 'pareto-rehearsal' → '2.0'"
    assert change_line in done.err
    assert "pareto rebase curve --reason" in done.err
    assert "c0001, c0002 would have to be measured again" in done.err
    assert place.attempts("c0003") == ()
    assert "Traceback" not in done.err
    drift = place.pareto("drift", place.file)
    assert drift.code == 1
    assert f"stopped before c0003: {change_line}" in drift.out


def test_a_restart_within_a_point_makes_the_attempt_invalid(place: Place) -> None:
    """Between the performance run and its accuracy run: not the same instance; tried again."""
    with steady_port(place) as port:
        place.write(run={"retries": 3, "backoff_s": 0.1})
        with place.endpoint(**port, prefill_ms=60):
            process = place.start("run", place.file, "--points", "3")
            place.wait_for_attempt("c0003", state=AttemptState.RUNNING)
            wait_until(
                lambda: any(r.kind == "accuracy" for r in place.requests()), "the accuracy run"
            )
        with place.endpoint(**port):
            done = finish(process)
    assert done.code == 1, done
    states = [attempt.state for attempt in place.attempts("c0003")]
    assert states == [AttemptState.INVALID, AttemptState.VALID]
    first, second = findings(place, "c0003")
    assert "instance-changed" in first
    assert second == []


def test_a_changed_probe_stops_and_a_rebase_begins_anew(place: Place) -> None:
    """Drift, refused; after `rebase` only points of the new baseline are of the curve."""
    driver = place.folder / "driver"
    driver.write_text("550.54\n")
    probes = [{"name": "driver", "command": ["cat", str(driver)]}]
    with place.endpoint():
        place.write(fingerprint={"probes": probes})
        assert run(place, "1,2").code == 1
        driver.write_text("560.28\n")
        done = run(place, "6")
        assert done.code == 4, done
        assert "probes: driver[0]: '550.54' → '560.28'" in done.err
        refused = place.pareto("rebase", place.file, "--reason", " ")
        assert refused.code == 2
        rebased = place.pareto("rebase", place.file, "--reason", "new driver")
        assert rebased.code == 0, rebased
        assert "c0001" in rebased.out
        assert place.points()["c0001"].state is PointState.PENDING
        assert run(place, "1,6").code == 1
    points = place.points()
    valid = {label for label, point in points.items() if point.state is PointState.VALID}
    assert valid == {"c0001", "c0006"}
    kept = [(a.number, a.baseline, a.state) for a in points["c0001"].attempts]
    assert kept == [(1, 1, AttemptState.VALID), (2, 2, AttemptState.VALID)]
    drift = place.pareto("drift", place.file)
    assert drift.code == 0, drift
    assert "baseline 2: new driver" in drift.out
    verified_and_corrupted(place)


def verified_and_corrupted(place: Place) -> None:
    """Nothing is found on healthy folders, and each corruption is named; exit 1."""
    for option in ("--deep", "--judge"):
        healthy = place.pareto("verify", place.file, option)
        assert healthy.code == 0, healthy
        assert "4 run folders" in healthy.out
    assert place.pareto("verify", place.file).code == 0
    moved = place.folder / "moved"
    place.runs.rename(moved)
    gone = place.pareto("verify", place.file)
    assert gone.code == 1
    assert gone.out.count("is gone") == 4
    (place.folder / "elsewhere" / "curve").mkdir(parents=True)
    elsewhere = place.pareto("relocate", place.file, place.folder / "elsewhere")
    assert elsewhere.code == 2
    assert "c0001 measure 1: " in elsewhere.err
    assert place.pareto("relocate", place.file, moved).code == 0
    assert place.pareto("verify", place.file, "--deep").code == 0
    corrupted(place, moved)


def flipped(run: Path) -> None:
    """One bit of one byte."""
    content = bytearray((run / "events.jsonl").read_bytes())
    content[99] ^= 1
    (run / "events.jsonl").write_bytes(content)


def truncated(run: Path) -> None:
    """The last byte is gone."""
    (run / "events.jsonl").write_bytes((run / "events.jsonl").read_bytes()[:-1])


def swapped(run: Path) -> None:
    """Files of one size of two attempts at the point change places."""
    name = "sample_idx_map.json"
    mine, other = run / name, run.parents[1] / "attempt-02" / "run" / name
    content = mine.read_bytes(), other.read_bytes()
    mine.write_bytes(content[1])
    other.write_bytes(content[0])


def linked(run: Path) -> None:
    """A file is replaced by a link to its copy."""
    (run / "report.txt").rename(run.parent / "copy.txt")
    (run / "report.txt").symlink_to(run.parent / "copy.txt")


#: What is done to attempt 1 at c0001, and what is said of it, by name and size alone and deep.
SAID = "c0001 measure 1: "
CORRUPTIONS: list[tuple[Callable[[Path], object], list[str], list[str]]] = [
    (flipped, [], ["events.jsonl: content differs"]),
    (swapped, [], ["sample_idx_map.json: content differs"]),
    (truncated, ["events.jsonl: size differs"], ["events.jsonl: size differs"]),
    (linked, ["report.txt: size differs"], ["report.txt: size differs"]),
    *(
        (change, said, said)
        for change, said in [
            (lambda run: (run / "extra").write_text("x"), ["extra: extra"]),
            (lambda run: (run / "report.txt").unlink(), ["report.txt: missing"]),
            (lambda run: (run / "report.txt").rename(run / "r"), ["report.txt: renamed to r"]),
            (shutil.rmtree, ["/run is gone"]),
            (lambda run: shutil.copytree(run, run.parents[1] / "attempt-03" / "run"), []),
        ]
    ),
]


def corrupted(place: Place, healthy: Path) -> None:
    """Each corruption is found and named, and is the only one that is."""
    campaign = read_campaign(place.file, place.env()).campaign
    for number, (corrupt, glanced, read) in enumerate(CORRUPTIONS):
        runs = place.folder / f"corrupted-{number}"
        shutil.copytree(healthy, runs)
        for path in runs.rglob("*"):
            path.chmod(0o755)
        corrupt(runs / "curve" / "c0001" / "attempt-01" / "run")
        for deep, stated, said in (
            (False, None, glanced),
            (True, None, read),
            (True, campaign, read),
        ):
            found = verify_campaign(
                place.records, "curve", deep=deep, campaign=stated, runs=runs
            ).problems
            mine = [line for line in found if line.startswith(SAID)]
            assert len(mine) == len(said), (number, found)
            assert all(part in line for part, line in zip(said, mine, strict=True)), found
            others = set(found) - set(mine)
            expected = {8: {"c0001/attempt-03 is not on record"}}.get(number, set())
            if corrupt is swapped and deep:
                expected = {f"c0001 measure 2: {read[0]}"}
            assert others == expected, found


def other_campaign(place: Place, name: str) -> Path:
    """The same campaign under another name, on the same instance."""
    path = place.folder / f"{name}.yaml"
    path.write_text(place.file.read_text().replace("campaign: curve", f"campaign: {name}"))
    return path


def test_an_instance_is_taken_over_only_when_its_client_is_gone(place: Place) -> None:
    """The holder is killed: refused while its client runs, and taken over once it ended."""
    with place.endpoint(stall_after=3):
        place.write()
        other = other_campaign(place, "other")
        process = place.start("run", place.file, "--points", "1")
        place.wait_for_attempt("c0001", state=AttemptState.RUNNING)
        wait_until(place.in_flight, "a request under way")
        kill(process.pid)
        finish(process)
        status = place.guard("c0001")
        refused = place.pareto("run", other, "--points", "1")
        assert refused.code == 3, refused
        assert "instance 'box' is being measured by another campaign: curve, at point c0001" in (
            refused.err
        )
        assert "now gone" in refused.err
        kill(status["guard"]["pid"])
        assert is_alive(status["client"]["pid"])
        still = place.pareto("run", other, "--points", "1")
        assert still.code == 3, still
        kill(status["client"]["pid"])
        place.set_faults()
        place.name = "other"
        taken = wait_until(lambda: free_run(place, other), "a free instance")
    assert taken.code == 1, taken
    assert place.points()["c0001"].state is PointState.VALID


def free_run(place: Place, file: Path) -> Done | None:
    """A run that was not refused; helpers of a killed client take a moment to end."""
    done = place.pareto("run", file, "--points", "1")
    return None if done.code == 3 else done


def test_everyday_changes_are_no_drift(place: Place) -> None:
    """A key, a time-out, what is told of single points may change; what is told of all may not."""
    probes = [{"name": "shell", "command": ["printenv", "TEST_KEY"]}]
    with place.endpoint():
        fingerprint = {"probes": probes}
        told = {"system": {"system_name": "box", "batch": 8}}
        place.write(run={"stall_timeout_s": 100.0}, fingerprint=fingerprint, disclosure=told)
        assert place.pareto("run", place.file, "--points", "1", TEST_KEY="secret-1").code == 1
        told["system"]["batch"] = 16
        place.write(run={"stall_timeout_s": 120.0}, fingerprint=fingerprint, disclosure=told)
        assert place.pareto("run", place.file, "--points", "2", TEST_KEY="secret-2").code == 1
        told["system"]["system_name"] = "another"
        place.write(fingerprint=fingerprint, disclosure=told)
        done = place.pareto("run", place.file, "--points", "3", TEST_KEY="secret-2")
        assert done.code == 4, done
        assert "system_name" in done.err
    looks = place.records.fingerprints("curve")
    assert [look.moment for look in looks] == ["before", "after"] * 2
    assert len({look.sha256 for look in looks}) == 1
    assert "secret-" not in json.dumps([look.content for look in looks])


def test_of_two_runs_at_the_same_moment_exactly_one_runs(place: Place) -> None:
    """Two campaigns on one instance, again and again: one of the two is refused, by name."""
    with place.endpoint(prefill_ms=200):
        place.write()
        for number in range(ROUNDS):
            race(place, f"a{number}", f"b{number}")


def race(place: Place, *names: str) -> None:
    """Start campaigns on one instance at the same moment."""
    processes = [place.start("run", other_campaign(place, n), "--points", "1") for n in names]
    first, second = sorted(map(finish, processes), key=lambda done: done.code)
    assert (first.code, second.code) == (1, 3), (first, second)
    assert "instance 'box' is being measured by another campaign" in second.err
    assert "Traceback" not in first.err + second.err
    attempts = []
    for place.name in names:
        attempts += place.attempts("c0001")
    place.name = "curve"
    assert [attempt.state for attempt in attempts] == [AttemptState.VALID]
