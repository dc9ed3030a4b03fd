"""The guard with real processes: whatever the client does, nothing of it is left and it is told.

The client is a short script with the behaviour that a test needs; limits are fractions of a
second. Every test ends with a look through the whole process table for the attempt's marker.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import SetupError
from core.progress import Phase
from core.watchdog import Limits
from tasks import supervise
from tasks.supervise import EndedBy, GuardEnd, GuardSpec, GuardState, GuardStatus

ROOT = Path(supervise.__file__).resolve().parents[1]

#: Seconds after which a test has hung.
PATIENCE_S = 30.0

#: What every fake client can do; a test's script follows it.
PRELUDE = """
import os, signal, subprocess, sys, time
def say(text, stream=sys.stdout):
    stream.write(text); stream.flush()
def phase(text): say("2026-11-29 16:43:07,382 - x.session - INFO - " + text + "\\n")
def perform(): phase("Starting phase: performance (performance)")
def bar(done, total=10, more=""):
    say(f"\\rsim (Streaming: True): 5%|#  | {done}/{total} [00:01<00:02, 3it/s{more}]", sys.stderr)
def child(code, *args, **options):
    code = "import signal, time, os\\n" + code
    return subprocess.Popen([sys.executable, "-S", "-c", code, *args], **options)
def forever(): time.sleep(600)
STUBBORN = "signal.signal(15, 1); signal.signal(2, 1)\\nopen('ready%d' % os.getpid(), 'w')\\n" \\
           "time.sleep(600)"
def wait_for_ready(count):
    while sum(name.startswith("ready") for name in os.listdir()) < count: time.sleep(0.01)
"""

FAST = Limits(
    startup_timeout_s=20,
    warmup_timeout_s=20,
    stall_timeout_s=0.5,
    draining_timeout_s=0.5,
    finishing_timeout_s=20,
)


@dataclass
class Attempt:
    """A folder with a fake client in it, and the means to guard and inspect it."""

    folder: Path

    def spec(self, script: str, **changes: Any) -> GuardSpec:
        (self.folder / "client.py").write_text(PRELUDE + script)
        spec = GuardSpec(
            command=(sys.executable, "-S", str(self.folder / "client.py")),
            cwd=self.folder,
            stdout_path=self.folder / "stdout.log",
            stderr_path=self.folder / "stderr.log",
            status_path=self.folder / "guard.json",
            stop_path=self.folder / "stop.json",
            limits=FAST,
            grace_s=0.4,
        )
        return replace(spec, **changes)

    def start(self, script: str, **changes: Any) -> None:
        """Start a guard that inherits the lock; the caller lets go of its own hold on it."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            spec = self.spec(script, **{"lock_fd": lock.fileno(), **changes})
            supervise.start(spec, os.environ)

    def run(self, script: str, **changes: Any) -> GuardStatus:
        self.start(script, **changes)
        return self.follow()

    def follow(self) -> GuardStatus:
        until_s = time.monotonic() + PATIENCE_S
        for status in supervise.follow(self.folder / "guard.json", poll_s=0.02):
            assert time.monotonic() < until_s, f"still {status}"
        return status

    def status(self) -> GuardStatus:
        status = supervise.read_status(self.folder / "guard.json")
        assert status is not None
        return status

    def wait_until(self, condition: Callable[[GuardStatus], bool]) -> GuardStatus:
        until_s = time.monotonic() + PATIENCE_S
        while not condition(status := self.status()):
            assert time.monotonic() < until_s, f"still {status}"
            time.sleep(0.02)
        return status

    def wait_for_file(self, name: str) -> Path:
        until_s = time.monotonic() + PATIENCE_S
        while not (self.folder / name).exists():
            assert time.monotonic() < until_s, f"no {name}"
            time.sleep(0.02)
        return self.folder / name

    def lock_is_free(self) -> bool:
        with (self.folder / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True


def marked_processes(marker: str) -> list[int]:
    """Live processes with an attempt's marker, found by other means than the guard's."""
    found = []
    for process in psutil.process_iter():
        try:
            is_marked = process.environ().get("PARETO_ATTEMPT") == marker
            if is_marked and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    """An attempt; whatever the test did, nothing with its marker may be left after it."""
    yield (attempt := Attempt(tmp_path))
    path = tmp_path / "guard.json"
    status = supervise.read_status(path)
    if status is None:
        return
    guard = status.guard.pid
    try:
        if status.state not in supervise.FINAL_STATES:
            supervise.request_stop(attempt.folder / "stop.json", "test is over", at_once=True)
            status = attempt.follow()
        assert marked_processes(status.marker) == []
    finally:
        for pid in marked_processes(status.marker):
            os.kill(pid, signal.SIGKILL)
    until_s = time.monotonic() + PATIENCE_S
    while supervise.is_alive(status):
        assert time.monotonic() < until_s, f"guard {guard} does not exit"
        time.sleep(0.02)


def finished(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python program run to its end, from the folder that the project is imported from."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def end_of(status: GuardStatus) -> GuardEnd:
    assert status.end is not None
    return status.end


# The lease of the instance

WORKS = "perform(); [(bar(n % 9), time.sleep(0.05)) for n in range(10**6)]"


def test_a_lease_that_is_renewed_ends_nothing(attempt: Attempt) -> None:
    beat = attempt.folder / "beat"
    beat.touch()
    attempt.start(WORKS, beat_path=beat, beat_timeout_s=1.0)
    for moment in range(20):
        os.utime(beat, (moment, moment))
        time.sleep(0.1)
    assert attempt.status().state is GuardState.RUNNING


def test_a_client_is_gone_before_its_lease_runs_out(attempt: Attempt) -> None:
    """Nobody renewed it, so another machine is about to load the instance."""
    beat = attempt.folder / "beat"
    beat.touch()
    status = attempt.run(WORKS, beat_path=beat, beat_timeout_s=0.5)
    assert end_of(status).ended_by is EndedBy.STOP_REQUEST
    assert "the lease of the instance could not be renewed for" in end_of(status).reason


def test_a_client_ends_once_its_lease_is_lost(attempt: Attempt) -> None:
    beat = attempt.folder / "beat"
    beat.touch()
    attempt.start(WORKS, beat_path=beat, beat_timeout_s=600.0)
    beat.unlink()
    end = end_of(attempt.follow())
    assert (end.ended_by, end.reason) == (
        EndedBy.STOP_REQUEST,
        "the lease of the instance was taken over",
    )


# Runs that end by themselves


def test_a_good_run_is_told_from_start_to_end(attempt: Attempt) -> None:
    """Phases, counts, tail and return code of a client that just works are in the status."""
    status = attempt.run(
        """
perform(); bar(0); time.sleep(0.3); bar(7, 10, ", errors=2"); time.sleep(0.3); bar(10)
phase("Draining 2 in-flight responses..."); phase("Phase performance complete: 10 samples issued")
phase("Score for acc: 1.0 (1 repeats, complete=True)"); say("the end\\n")
""",
        limits=Limits(),
    )
    assert status.state is GuardState.ENDED
    assert (status.phase, status.done, status.total, status.errors) == (Phase.FINISHING, 10, 10, 2)
    assert [phase for phase, _ in status.phases] == [
        Phase.STARTUP,
        Phase.PERFORMANCE,
        Phase.DRAINING,
        Phase.FINISHING,
    ]
    times = [at for _, at in status.phases]
    assert times == sorted(times)
    assert status.started_at <= times[0]
    assert times[-1] <= end_of(status).ended_at
    assert status.tail[-1] == "the end"
    assert end_of(status) == GuardEnd(
        EndedBy.ITSELF, "", ended_at=end_of(status).ended_at, return_code=0
    )
    assert status.client is not None
    assert status.pgid == status.client.pid
    assert attempt.lock_is_free()


@pytest.mark.parametrize(
    ("script", "return_code"),
    [
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15),
    ],
)
def test_the_return_code_is_told(attempt: Attempt, script: str, return_code: int) -> None:
    """An exit code is told as it is, death by a signal as its negative number."""
    end = end_of(attempt.run(script))
    assert (end.ended_by, end.return_code, end.signals) == (EndedBy.ITSELF, return_code, ())


def test_output_that_is_not_text_is_survived(attempt: Attempt) -> None:
    """Bytes that are not UTF-8 reach the log file as they are and the status as text."""
    status = attempt.run(
        "sys.stdout.buffer.write(b'\\xff\\xfe\\x00 \\xe2\\x96\\n' * 3); perform(); bar(4)"
    )
    assert (attempt.folder / "stdout.log").read_bytes().startswith(b"\xff\xfe\x00 \xe2\x96\n")
    assert "\ufffd" in status.tail[0]
    assert (status.phase, status.done) == (Phase.PERFORMANCE, 4)


def test_children_that_end_shortly_after_the_client_are_no_leftovers(attempt: Attempt) -> None:
    """Helpers such as multiprocessing's tracker end a moment later and are not killed."""
    end = end_of(attempt.run("child(\"time.sleep(0.2); open('done', 'w')\")"))
    assert (attempt.folder / "done").exists()
    assert end.leftovers_killed == ()


def test_leftovers_of_a_client_that_ended_are_killed_wherever_they_went(attempt: Attempt) -> None:
    """Left-over children are found in the session, outside it, and without environment too."""
    status = attempt.run(
        """
child(STUBBORN)
child(STUBBORN, start_new_session=True)
child(STUBBORN, start_new_session=True, env={})
wait_for_ready(3)
"""
    )
    end = end_of(status)
    assert (end.ended_by, end.return_code) == (EndedBy.ITSELF, 0)
    assert sorted(leftover.found_by for leftover in end.leftovers_killed) == [
        "descent",
        "marker",
        "session",
    ]
    pids = {int(path.name[5:]) for path in attempt.folder.glob("ready*")}
    assert {leftover.pid for leftover in end.leftovers_killed} == pids
    assert not any(psutil.pid_exists(pid) for pid in pids)


# The watchdog


def test_a_silent_hang_is_interrupted_and_may_save(attempt: Attempt) -> None:
    """A client without progress gets an interrupt, alone, and time to save what it has."""
    status = attempt.run(
        """
def save(*_):
    open("saved", "w"); sys.exit(0)
signal.signal(2, save)
child("signal.signal(2, lambda *_: open('child-interrupted', 'w'))\\nopen('ready', 'w')\\n"
      "time.sleep(600)")
wait_for_ready(1)
perform(); bar(4); forever()
""",
        grace_s=10.0,
    )
    end = end_of(status)
    assert end.ended_by is EndedBy.WATCHDOG
    assert end.reason == (
        "no sample completed for 0.5 s (stall_timeout_s) in phase performance, 4 of 10 done"
    )
    assert status.stop_reason == end.reason
    assert (end.return_code, end.signals) == (0, ("SIGINT",))
    assert (attempt.folder / "saved").exists()
    assert not (attempt.folder / "child-interrupted").exists()
    assert [leftover.found_by for leftover in end.leftovers_killed] == ["session"]


def test_a_flooding_log_does_not_keep_a_hung_client_alive(attempt: Attempt) -> None:
    """New log lines and redrawn bars are no progress, and the status stays small."""
    status = attempt.run(
        """
perform(); bar(4)
while True:
    say(("x" * 99 + "\\n") * 1000); bar(4); time.sleep(0.005)
"""
    )
    assert end_of(status).ended_by is EndedBy.WATCHDOG
    assert (status.phase, status.done) == (Phase.PERFORMANCE, 4)
    assert (attempt.folder / "stdout.log").stat().st_size > 1_000_000
    assert (attempt.folder / "guard.json").stat().st_size < 20_000


def test_a_silent_log_does_not_end_a_client_that_progresses(attempt: Attempt) -> None:
    """A run longer than the stall limit lives on the bar alone."""
    script = "perform()\nfor n in range(13):\n    bar(n); time.sleep(0.2)\nsys.exit(7)"
    end = end_of(attempt.run(script, limits=replace(FAST, stall_timeout_s=1.3)))
    assert (end.ended_by, end.return_code) == (EndedBy.ITSELF, 7)


@pytest.mark.parametrize(
    ("script", "limit"),
    [
        ("forever()", "startup_timeout_s"),
        ("phase('Starting phase: warmup (warmup)'); forever()", "warmup_timeout_s"),
        ("perform(); phase('Draining 3 in-flight responses...'); forever()", "draining_timeout_s"),
        ("perform(); phase('Draining 9 pending tokenizations...'); forever()", "finishing_timeout"),
    ],
)
def test_phases_without_samples_have_their_own_limits(
    attempt: Attempt, script: str, limit: str
) -> None:
    """Start-up, warm-up, drain and finish are watched too, each with its own patience."""
    long = dict.fromkeys(vars(FAST), 20.0)
    limits = Limits(**{name: 0.4 if name.startswith(limit) else s for name, s in long.items()})
    end = end_of(attempt.run(script, limits=limits))
    assert end.ended_by is EndedBy.WATCHDOG
    assert limit in end.reason


def test_the_deadline_ends_a_client_that_progresses(attempt: Attempt) -> None:
    """The outer limit holds whatever the progress."""
    script = "perform()\nfor n in range(6000):\n    bar(n); time.sleep(0.1)"
    end = end_of(attempt.run(script, deadline_s=0.8, limits=Limits()))
    assert end.ended_by is EndedBy.DEADLINE
    assert "0.8 s" in end.reason


@pytest.mark.parametrize(
    "script",
    [
        "signal.signal(2, 1); signal.signal(15, 1); perform(); child(STUBBORN); forever()",
        "perform(); os.kill(os.getpid(), signal.SIGSTOP)",
    ],
    ids=["ignores-signals", "is-stopped"],
)
def test_a_client_that_does_not_answer_is_killed_after_the_grace(
    attempt: Attempt, script: str
) -> None:
    """Interrupt, grace, kill: for a client that ignores signals as for one that is stopped."""
    end = end_of(attempt.run(script))
    assert (end.ended_by, end.return_code) == (EndedBy.WATCHDOG, -9)
    assert end.signals == ("SIGINT", "SIGKILL")


# Stop requests


def test_a_gentle_stop_lets_the_client_save(attempt: Attempt) -> None:
    """A stop request interrupts the client and carries its reason into the status."""
    script = "import atexit; atexit.register(open, 'saved', 'w'); perform(); forever()"
    attempt.start(script, grace_s=10.0, limits=Limits())
    attempt.wait_until(lambda status: status.phase is Phase.PERFORMANCE)
    supervise.request_stop(attempt.folder / "stop.json", "cancelled by its user")
    end = end_of(attempt.follow())
    assert (end.ended_by, end.reason) == (EndedBy.STOP_REQUEST, "cancelled by its user")
    assert end.signals == ("SIGINT",)
    assert (attempt.folder / "saved").exists()


def test_a_stop_at_once_gives_no_grace(attempt: Attempt) -> None:
    """At once means the kill alone."""
    attempt.start("perform(); forever()", grace_s=60.0, limits=Limits())
    supervise.request_stop(attempt.folder / "stop.json", "now", at_once=True)
    end = end_of(attempt.follow())
    assert (end.return_code, end.signals) == (-9, ("SIGKILL",))


def test_a_stop_at_once_cuts_the_grace_of_a_gentle_one_short(attempt: Attempt) -> None:
    """The second, harder request counts while the first is still waiting."""
    attempt.start("signal.signal(2, 1); perform(); forever()", grace_s=60.0, limits=Limits())
    attempt.wait_until(lambda status: status.phase is Phase.PERFORMANCE)
    supervise.request_stop(attempt.folder / "stop.json", "please")
    attempt.wait_until(lambda status: status.state is GuardState.STOPPING)
    supervise.request_stop(attempt.folder / "stop.json", "now", at_once=True)
    end = end_of(attempt.follow())
    assert (end.reason, end.signals) == ("please", ("SIGINT", "SIGKILL"))


def test_signals_to_the_guard_are_stop_requests(attempt: Attempt) -> None:
    """SIGTERM to the guard ends the client with grace, a second signal at once."""
    attempt.start("signal.signal(2, 1); perform(); forever()", grace_s=60.0, limits=Limits())
    status = attempt.wait_until(lambda status: status.phase is Phase.PERFORMANCE)
    os.kill(status.guard.pid, signal.SIGTERM)
    attempt.wait_until(lambda status: status.state is GuardState.STOPPING)
    os.kill(status.guard.pid, signal.SIGINT)
    end = end_of(attempt.follow())
    assert (end.ended_by, end.reason) == (EndedBy.STOP_REQUEST, "SIGTERM to the guard")
    assert end.signals == ("SIGINT", "SIGKILL")


def test_an_unreadable_stop_request_is_a_gentle_one(attempt: Attempt) -> None:
    """Whoever touches the stop file by hand is understood."""
    attempt.start("perform(); forever()", grace_s=10.0, limits=Limits())
    attempt.wait_until(lambda status: status.phase is Phase.PERFORMANCE)
    (attempt.folder / "stop.json").touch()
    end = end_of(attempt.follow())
    assert end.ended_by is EndedBy.STOP_REQUEST
    assert "stop.json" in end.reason
    assert end.signals == ("SIGINT",)


# The orchestrator dies

ORCHESTRATOR = """
import json, os, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from dataclasses import replace
from tasks import supervise
spec = supervise.GuardSpec.from_json(json.loads(Path(sys.argv[2]).read_bytes()))
supervise.start(replace(spec, parent=supervise.own_identity()), os.environ)
time.sleep(600)
"""


def start_and_kill_orchestrator(attempt: Attempt, spec: GuardSpec) -> GuardStatus:
    """Starts a guard from a process of its own and kills that as a machine's memory killer does."""
    path = attempt.folder / "wanted.json"
    path.write_text(json.dumps(spec.to_json()))
    with subprocess.Popen(
        [sys.executable, "-c", ORCHESTRATOR, str(ROOT), str(path)], start_new_session=True
    ) as orchestrator:
        attempt.wait_for_file("guard.json")
        status = attempt.wait_until(lambda status: status.phase is Phase.PERFORMANCE)
        os.killpg(orchestrator.pid, signal.SIGKILL)
    return status


def test_a_measurement_outlives_its_orchestrator(attempt: Attempt) -> None:
    """With "finish" the client goes on to its own end, and the status says it was unattended."""
    script = "perform()\nfor n in range(8):\n    bar(n); time.sleep(0.2)"
    before = start_and_kill_orchestrator(attempt, attempt.spec(script, limits=Limits()))
    assert before.orphaned_at is None
    status = attempt.follow()
    end = end_of(status)
    assert (end.ended_by, end.return_code) == (EndedBy.ITSELF, 0)
    assert status.orphaned_at is not None
    assert status.done == 7


def test_an_orphaned_hang_still_meets_the_watchdog(attempt: Attempt) -> None:
    """Nobody has to be there for a hung client to be ended."""
    spec = attempt.spec("perform(); forever()", limits=replace(FAST, stall_timeout_s=1.5))
    start_and_kill_orchestrator(attempt, spec)
    status = attempt.follow()
    assert end_of(status).ended_by is EndedBy.WATCHDOG
    assert status.orphaned_at is not None


def test_an_orphaned_client_is_stopped_when_asked_for(attempt: Attempt) -> None:
    """With "stop" the client is ended within ten seconds of its orchestrator's death."""
    script = "perform(); child(STUBBORN); forever()"
    spec = attempt.spec(script, when_orphaned="stop", grace_s=60.0, limits=Limits())
    start_and_kill_orchestrator(attempt, spec)
    status = attempt.follow()
    end = end_of(status)
    assert (end.ended_by, end.signals) == (EndedBy.ORPHAN_STOP, ("SIGINT",))
    assert status.orphaned_at is not None
    assert end.ended_at - status.orphaned_at < 10


# The guard dies


def test_a_client_whose_guard_was_killed_is_ended_by_the_follower(attempt: Attempt) -> None:
    """Of a dead guard the state is lost; the client is gone when that is told, not before."""
    attempt.start(
        "child(STUBBORN); child(STUBBORN, start_new_session=True); wait_for_ready(2)\n"
        "perform(); forever()",
        limits=Limits(),
    )
    status = attempt.wait_until(lambda status: status.phase is Phase.PERFORMANCE)
    os.kill(status.guard.pid, signal.SIGKILL)
    while supervise.is_alive(status):
        time.sleep(0.01)
    assert not attempt.lock_is_free()  # the client holds it as long as it lives
    lost = attempt.follow()
    assert lost.state is GuardState.LOST
    end = end_of(lost)
    assert (end.ended_by, end.return_code) == (EndedBy.LOST_GUARD, None)
    assert sorted(leftover.found_by for leftover in end.leftovers_killed) == ["marker", "session"]
    assert marked_processes(status.marker) == []
    assert attempt.lock_is_free()


def test_after_a_reboot_no_process_is_taken_for_the_client(attempt: Attempt) -> None:
    """Pids and start times of another boot say nothing: nobody is killed for them."""
    attempt.start("perform(); forever()", limits=Limits())
    status = attempt.wait_until(lambda status: status.phase is Phase.PERFORMANCE)
    of_another_boot = replace(status, boot_id=str(uuid.uuid4()))
    assert not supervise.is_alive(of_another_boot)
    end = supervise.end_orphaned_client(of_another_boot)
    assert (end.reason, end.signals) == ("the machine was restarted", ())
    assert len(marked_processes(status.marker)) == 1


def test_the_client_of_a_live_guard_is_no_orphan(attempt: Attempt) -> None:
    """Clearing up after a guard that lives is refused: it would kill a measurement."""
    attempt.start("perform(); forever()", limits=Limits())
    with pytest.raises(ValueError, match="is alive"):
        supervise.end_orphaned_client(attempt.status())


def test_a_pid_used_again_is_not_the_guard(attempt: Attempt) -> None:
    """A process with the guard's pid and another start time is somebody else."""
    status = attempt.run("pass")
    own = supervise.own_identity()
    assert supervise.is_alive(replace(status, guard=own))
    assert not supervise.is_alive(
        replace(status, guard=replace(own, start_time=own.start_time - 1))
    )


def test_a_bug_in_the_guard_leaves_no_client(attempt: Attempt) -> None:
    """An exception in the guard's own loop ends the client and is told."""
    spec = attempt.spec("perform(); child(STUBBORN); forever()")
    (attempt.folder / "spec.json").write_text(json.dumps(spec.to_json()))
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from tasks import guard\n"
        "def feed(*_): raise RuntimeError('surprise')\n"
        "guard.ProgressParser.feed = feed\n"
        "sys.exit(guard.main(Path(sys.argv[2])))"
    )
    result = finished("-c", code, str(ROOT), str(attempt.folder / "spec.json"))
    end = end_of(attempt.status())
    assert result.returncode == 0
    assert end.ended_by is EndedBy.GUARD_FAILURE
    assert "surprise" in end.reason
    assert "Traceback" in result.stderr


# Lock


def test_guard_and_client_hold_the_lock_that_they_inherit(attempt: Attempt) -> None:
    """Its orchestrator may let go of it or die: it is free only when the client is gone."""
    attempt.start("perform(); forever()", limits=Limits())
    assert not attempt.lock_is_free()
    supervise.request_stop(attempt.folder / "stop.json", "enough", at_once=True)
    attempt.follow()
    assert attempt.lock_is_free()


def test_the_lock_is_free_when_the_end_is_told(attempt: Attempt) -> None:
    """Whoever reads the end can start the next client on the instance at once."""
    attempt.start("pass")
    path = attempt.folder / "guard.json"
    until_s = time.monotonic() + PATIENCE_S
    while b'"state": "ended"' not in path.read_bytes():
        assert time.monotonic() < until_s
    assert attempt.lock_is_free()


# Shared memory


@pytest.fixture
def shared_name() -> Iterator[str]:
    """A part of names in shared memory that no other test uses."""
    name = uuid.uuid4().hex[:12]
    yield name
    for path in Path("/dev/shm").glob(f"*{name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


SHARING = """
import multiprocessing
name = sys.argv[1]
os.makedirs(f"/dev/shm/benchmark_{name}/events"); os.mkdir(f"/dev/shm/zmq_{name}")
child("time.sleep(600)", "--socket-dir", f"/dev/shm/zmq_{name}")
events = open(f"/dev/shm/benchmark_{name}/events/events.jsonl", "w")
lock = multiprocessing.get_context("spawn").Lock()
open("semaphore", "w").write(lock._semlock.name)
foreign = sys.argv[2:] and child("time.sleep(600)", "/dev/shm/benchmark_" + sys.argv[2])
perform()
"""


def test_the_clients_shared_memory_is_removed_and_no_other(
    attempt: Attempt, shared_name: str
) -> None:
    """Named on a command line, open or mapped: removed. Older than the client, or not: kept."""
    foreign = Path(f"/dev/shm/benchmark_foreign_{shared_name}")
    older = Path(f"/dev/shm/benchmark_older_{shared_name}")
    foreign.mkdir()
    older.mkdir()
    spec = attempt.spec(SHARING + "forever()")
    command = (*spec.command, shared_name, older.name.removeprefix("benchmark_"))
    status = attempt.run(SHARING + "forever()", command=command)
    semaphore = "sem." + (attempt.folder / "semaphore").read_text().removeprefix("/")
    expected = {f"benchmark_{shared_name}", f"zmq_{shared_name}"}
    removed = set(end_of(status).shared_memory_removed)
    assert expected <= removed <= expected | {semaphore}
    assert semaphore in status.shared_memory
    assert not (Path("/dev/shm") / semaphore).exists()
    assert sorted(p.name for p in Path("/dev/shm").glob(f"*{shared_name}*")) == sorted(
        [foreign.name, older.name]
    )


def test_shared_memory_of_a_lost_guard_is_removed(attempt: Attempt, shared_name: str) -> None:
    """What the guard noted before it was killed is removed by who finds it dead."""
    spec = attempt.spec(SHARING + "forever()", limits=Limits())
    attempt.start(SHARING + "forever()", limits=Limits(), command=(*spec.command, shared_name))
    expected = {f"benchmark_{shared_name}", f"zmq_{shared_name}"}
    status = attempt.wait_until(lambda status: expected <= set(status.shared_memory))
    os.kill(status.guard.pid, signal.SIGKILL)
    lost = attempt.follow()
    assert lost.state is GuardState.LOST
    assert expected <= set(end_of(lost).shared_memory_removed)
    assert list(Path("/dev/shm").glob(f"*{shared_name}")) == []


# Surroundings


def test_the_client_gets_default_signals(attempt: Attempt) -> None:
    """Under a script that ignores interrupts the client still has its default ones."""
    spec = attempt.spec("perform(); forever()", grace_s=10.0)
    (attempt.folder / "wanted.json").write_text(json.dumps(spec.to_json()))
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])\n" + ORCHESTRATOR
    )
    command = [sys.executable, "-c", code, str(ROOT), str(attempt.folder / "wanted.json")]
    with subprocess.Popen(command) as orchestrator:
        attempt.wait_for_file("guard.json")
        end = end_of(attempt.follow())
        orchestrator.kill()
    assert (end.return_code, end.signals) == (-signal.SIGINT, ("SIGINT",))


def test_the_environment_reaches_the_client_and_no_file(attempt: Attempt) -> None:
    """A key in the environment is the client's to use; nothing that the guard writes has it."""
    key = "sk-" + uuid.uuid4().hex
    spec = attempt.spec("perform(); sys.exit(len(os.environ['API_KEY']))")
    supervise.start(spec, {**os.environ, "API_KEY": key})
    assert end_of(attempt.follow()).return_code == len(key)
    files = [path for path in attempt.folder.rglob("*") if path.is_file()]
    assert {"guard.json", "guard.spec.json", "guard.log"} <= {path.name for path in files}
    assert not [path for path in files if key.encode() in path.read_bytes()]


def test_a_terminal_width_in_the_environment_does_not_cut_the_bar(attempt: Attempt) -> None:
    """COLUMNS would make the client's bar drop its counts: the client does not get it."""
    spec = attempt.spec("sys.exit('COLUMNS' in os.environ)")
    supervise.start(spec, {**os.environ, "COLUMNS": "20"})
    assert end_of(attempt.follow()).return_code == 0


def test_a_disk_that_refuses_the_status_ends_no_measurement(attempt: Attempt) -> None:
    """While the status cannot be written the run goes on, and its end is told when it can."""
    script = "perform()\nfor n in range(6):\n    bar(n); time.sleep(0.2)\nopen('done', 'w')"
    attempt.start(script, limits=Limits())
    in_the_way = attempt.folder / "guard.json.tmp"
    while True:
        try:
            in_the_way.mkdir()
            break
        except FileExistsError:
            time.sleep(0.001)
    attempt.wait_for_file("done")
    time.sleep(0.5)
    assert attempt.status().state is GuardState.RUNNING
    in_the_way.rmdir()
    status = attempt.follow()
    assert (status.state, status.done) == (GuardState.ENDED, 5)
    assert "cannot write" in (attempt.folder / "guard.log").read_text()


def test_heartbeats_go_on_without_any_change(attempt: Attempt) -> None:
    """A run in which nothing happens is still seen to be guarded, about every second."""
    attempt.start("perform(); forever()", limits=Limits())
    first = attempt.wait_until(lambda status: status.phase is Phase.PERFORMANCE)
    second = attempt.wait_until(lambda status: status.heartbeat_at > first.heartbeat_at)
    assert replace(second, heartbeat_at=first.heartbeat_at) == first


# Mistakes of the caller


def test_a_command_that_does_not_exist_is_a_setup_error(attempt: Attempt) -> None:
    """The message names the command; the status is final; the lock is free."""
    with pytest.raises(SetupError, match="no-such-client"):
        attempt.start("", command=("/no-such-client",))
    assert end_of(attempt.status()).ended_by is EndedBy.NOT_STARTED
    assert attempt.lock_is_free()


def test_a_status_file_belongs_to_one_guard(attempt: Attempt) -> None:
    """A second guard for the same attempt is refused by caller and program; nothing changes."""
    spec = attempt.spec("pass")
    attempt.run("pass")
    before = (attempt.folder / "guard.json").read_bytes()
    with pytest.raises(SetupError, match="another guard"):
        supervise.start(spec, os.environ)
    assert finished("-m", "tasks.guard", str(attempt.folder / "guard.spec.json")).returncode == 2
    assert (attempt.folder / "guard.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "word"), [({"version": 2}, "version"), ({"when_orphaned": "hope"}, "hope")]
)
def test_a_spec_of_another_format_is_refused(
    attempt: Attempt, change: dict[str, object], word: str
) -> None:
    """An unusable spec starts nothing and says why."""
    path = attempt.folder / "spec.json"
    path.write_text(json.dumps({**attempt.spec("pass").to_json(), **change}))
    result = finished("-m", "tasks.guard", str(path))
    assert result.returncode == 2
    assert word in result.stderr
    assert not (attempt.folder / "guard.json").exists()


def test_specs_and_statuses_survive_their_files(attempt: Attempt) -> None:
    """What is written is what is read, for every field."""
    spec = attempt.spec("pass", parent=supervise.own_identity(), deadline_s=5.0)
    assert GuardSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    status = attempt.run("child(STUBBORN); wait_for_ready(1)")
    assert end_of(status).leftovers_killed
    assert GuardStatus.from_json(json.loads((attempt.folder / "guard.json").read_bytes())) == status


def test_a_missing_or_torn_status_is_none_and_a_foreign_one_an_error(attempt: Attempt) -> None:
    """Readers may come too early; another version is told apart before anything else is read."""
    path = attempt.folder / "other.json"
    assert supervise.read_status(path) is None
    path.write_text('{"version": 1, "sta')
    assert supervise.read_status(path) is None
    path.write_text('{"version": 9}')
    with pytest.raises(SetupError, match="version is 9"):
        supervise.read_status(path)


def test_the_guard_needs_the_standard_library_alone() -> None:
    """Without any installed package the guard still starts."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import tasks.guard"
    result = finished("-I", "-S", "-c", code, str(ROOT))
    assert (result.returncode, result.stderr) == (0, "")
