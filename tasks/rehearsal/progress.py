"""How the stand-in client shows itself: log lines on stdout, a progress bar on stderr."""

from __future__ import annotations

import logging
import sys
import time
from typing import TextIO

#: Seconds between two updates of the bar.
_INTERVAL_S = 0.1
#: Width of the bar in characters, and the parts of a character.
_WIDTH = 10
_PARTS = " ▏▎▍▌▋▊▉"
_FULL = "█"
#: Seconds in a minute and in an hour.
_MINUTE_S = 60
_HOUR_S = 3600


def set_up_logging(*, verbose: bool) -> None:
    """Send log lines to stdout in the reference client's form."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s - %(name)s - %(levelname)s - %(message)s",
        stream=sys.stdout,
        force=True,
    )
    for name in ("asyncio", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


class Progress:
    """A bar that counts completed samples, in the form of tqdm's, also without a terminal."""

    def __init__(self, title: str, total: int, stream: TextIO) -> None:
        self._title = title
        self._total = total
        self._stream = stream
        self._done = 0
        self._shown = 0
        self._errors = 0
        self._started_s = time.monotonic()
        self._shown_s = self._started_s
        self._show()

    @property
    def errors(self) -> int:
        """Samples that failed."""
        return self._errors

    def add(self, *, failed: bool) -> None:
        """Count a completed sample."""
        if failed:
            self._errors += 1
            self._show()
        self._done += 1
        if time.monotonic() - self._shown_s >= _INTERVAL_S:
            self._show()

    def close(self) -> None:
        """Show the last state and end the line."""
        self._show()
        self._write("\n")

    def _show(self) -> None:
        self._shown_s = time.monotonic()
        self._write("\r" + self.line(self._shown_s - self._started_s))

    def line(self, elapsed_s: float) -> str:
        """Return the bar as a text."""
        share = self._done / self._total if self._total else 0.0
        rate = self._done / elapsed_s if elapsed_s > 0 else 0.0
        left = _clock((self._total - self._done) / rate) if rate else "?"
        errors = f", errors={self._errors}" if self._errors else ""
        return (
            f"{self._title}: {share:4.0%}|{_bar(share)}| {self._done}/{self._total} "
            f"[{_clock(elapsed_s)}<{left}, {_rate(rate)}{errors}]"
        )

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # Whoever read the bar has gone; the run is worth more than its bar.
            self._stream = sys.__stderr__ or self._stream


def _bar(share: float) -> str:
    full, part = divmod(int(share * _WIDTH * len(_PARTS)), len(_PARTS))
    if full >= _WIDTH:
        return _FULL * _WIDTH
    return (_FULL * full + _PARTS[part]).ljust(_WIDTH)


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), _HOUR_S)
    minutes, left = divmod(rest, _MINUTE_S)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes:02d}:{left:02d}"


def _rate(per_s: float) -> str:
    if not per_s:
        return "?it/s"
    return f"{per_s:5.2f}it/s" if per_s >= 1 else f"{1 / per_s:5.2f}s/it"
