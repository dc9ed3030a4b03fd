"""What the reference client's output says about how far a run is; it informs, it never decides.

The client (mlcommons/endpoints) writes phase lines to stdout and a tqdm bar to stderr, also
without a terminal. Success is judged from the run folder alone. Standard library only: the guard
process imports this module.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from enum import StrEnum

#: Bytes of one line that are looked at; what follows up to the next line break is dropped.
#: The client's phase lines and bars have under 300.
MAX_LINE_BYTES = 4096
#: Lines kept for people who ask what the client said last.
TAIL_LINES = 20
#: Bytes kept of each of those lines.
TAIL_LINE_BYTES = 300


class Stream(StrEnum):
    """Which output of the client a piece of text came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


class Phase(StrEnum):
    """Where a run of the client is."""

    STARTUP = "startup"
    WARMUP = "warmup"
    PERFORMANCE = "performance"
    #: All samples of a performance or accuracy phase are issued, the last answers are awaited.
    DRAINING = "draining"
    ACCURACY = "accuracy"
    #: Nothing more to issue for now: tokenizing, scoring, reporting.
    FINISHING = "finishing"


#: Phases in which the bar counts completed samples; warm-up requests are never on the bar.
PHASES_WITH_SAMPLES = frozenset({Phase.PERFORMANCE, Phase.DRAINING, Phase.ACCURACY})


@dataclass(frozen=True)
class Progress:
    """How far a run is, as far as its output tells."""

    phase: Phase = Phase.STARTUP
    #: Completed samples, failed ones included, accuracy samples included.
    done: int = 0
    #: Samples of the whole call; None before the bar appears.
    total: int | None = None
    errors: int = 0


#: What the client's logger puts before a message: date, name and level.
_SEPARATOR, _FIELDS_BEFORE_MESSAGE = b" - ", 3
_PHASE_STARTS = re.compile(rb"Starting phase: .*\((warmup|performance|accuracy)\)\s*$")
_ALL_ISSUED = re.compile(rb"Draining \d+ in-flight responses")
_ALL_ANSWERED = re.compile(rb"Phase .+ complete: \d+ samples issued")
_FINISHING = re.compile(
    rb"Draining \d+ pending tokenizations|Closing publisher"
    rb"|Waiting for services to finish|Score for |Report written"
)
#: Both end in a character that a number cannot contain, so a line cut in a number never matches.
_COUNTS = re.compile(rb"\| *(\d{1,18})/(\d{1,18}) \[")
_ERRORS = re.compile(rb"errors=(\d{1,18})[,\]]")
#: The label of the client's own bar; dataset loaders and scorers draw bars of their own.
_MAIN_BAR = b"(Streaming:"


class LineCutter:
    """Cuts a byte stream into lines at CR or LF, in bounded memory."""

    def __init__(self) -> None:
        #: The line that has begun and not ended; a bar stays here until it is drawn again.
        self.open_line = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in `data`, without empty ones."""
        *lines, rest = (self.open_line + data).replace(b"\r", b"\n").split(b"\n")
        self.open_line = rest[:MAX_LINE_BYTES]
        return [line[:MAX_LINE_BYTES] for line in lines if line]


class ProgressParser:
    """Follows both outputs of one client; text may be cut anywhere and need not be UTF-8."""

    def __init__(self) -> None:
        self.progress = Progress()
        self._cutters = {stream: LineCutter() for stream in Stream}
        self._tail: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._main_bar_seen = False

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines of both outputs, bars left out."""
        return tuple(line.decode("utf-8", "replace") for line in self._tail)

    def feed(self, stream: Stream, data: bytes) -> list[Phase]:
        """Takes in the next piece of one output; returns the phases that it entered, in order."""
        cutter = self._cutters[stream]
        entered = []
        for line in cutter.feed(data):
            before = self.progress.phase
            self._read_line(line)
            if self.progress.phase is not before:
                entered.append(self.progress.phase)
        self._read_bar(cutter.open_line)
        return entered

    def _read_line(self, line: bytes) -> None:
        if self._read_bar(line):
            return
        self._tail.append(line[:TAIL_LINE_BYTES])
        message = line.split(_SEPARATOR, _FIELDS_BEFORE_MESSAGE)[-1]
        phase = _phase_after(self.progress.phase, message)
        if phase is not self.progress.phase:
            self.progress = replace(self.progress, phase=phase)

    def _read_bar(self, line: bytes) -> bool:
        """Whether the line is a progress bar; the client's own one is taken in."""
        counts = _COUNTS.search(line)
        if counts is None:
            return False
        is_main = _MAIN_BAR in line
        self._main_bar_seen = self._main_bar_seen or is_main
        if is_main or not self._main_bar_seen:
            errors = _ERRORS.search(line, counts.end())
            self.progress = replace(
                self.progress,
                done=int(counts[1]),
                total=int(counts[2]),
                errors=int(errors[1]) if errors else self.progress.errors,
            )
        return True


def _phase_after(phase: Phase, message: bytes) -> Phase:
    if start := _PHASE_STARTS.match(message):
        return Phase(start[1].decode())
    if _FINISHING.match(message):
        return Phase.FINISHING
    if phase in PHASES_WITH_SAMPLES:  # warm-up drains and completes as well, and stays warm-up
        if _ALL_ISSUED.match(message):
            return Phase.DRAINING
        if _ALL_ANSWERED.match(message):
            return Phase.FINISHING
    return phase
