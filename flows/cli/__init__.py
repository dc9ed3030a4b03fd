"""The command `pareto`: parse, call, print, exit code; a command imports what it needs when called.

Exit codes: 0 curve complete and valid; 1 finished with points not valid; 2 the input is wrong;
3 the set-up is wrong; 4 stopped by a failure; 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from typing import TextIO, cast

import cyclopts

from core.errors import InputError, InterruptedByUserError, ParetoError, SetupError
from flows.cli.ask import cancel, pause, resume
from flows.cli.calibrate import calibrate
from flows.cli.campaign import show
from flows.cli.campaigns import list_campaigns
from flows.cli.check import check
from flows.cli.compare import compare
from flows.cli.curve import curve
from flows.cli.db import upgrade
from flows.cli.demo import demo
from flows.cli.drift import drift
from flows.cli.init import init
from flows.cli.notify_test import notify_test
from flows.cli.output import Output
from flows.cli.package import package
from flows.cli.plan import plan
from flows.cli.rebase import rebase
from flows.cli.relocate import relocate
from flows.cli.report import report
from flows.cli.retry import retry
from flows.cli.run import run
from flows.cli.runs import runs
from flows.cli.serve import serve
from flows.cli.status import status
from flows.cli.submit import submit
from flows.cli.unlock import unlock
from flows.cli.verify import verify
from flows.cli.worker import worker


def _version() -> str:
    try:
        return version("pareto-campaigns")
    except PackageNotFoundError:
        return "not installed"


app = cyclopts.App(
    name="pareto",
    help="Plan, run and record MLPerf Endpoints campaigns: one YAML in, one measured curve out.",
    version=_version,
    help_format="plaintext",
    result_action="return_value",
)
for _command in (
    *(init, plan, check, calibrate, run, status, show, retry, runs),
    *(serve, worker, submit, notify_test),
    *(report, curve, compare, package),
    *(pause, resume, cancel, unlock, drift, rebase, verify, relocate, demo),
):
    app.command(_command)
app.command(list_campaigns, name="list")
db = cyclopts.App(name="db", help="Look after the records database.")
db.command(upgrade)
app.command(db)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; user mistakes never show a traceback."""
    atexit.register(gc.freeze)  # all goes with the process: a last look for garbage takes a second
    out, err = Output(sys.stdout), Output(sys.stderr)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        code = _exit_code(arguments)
        out.flush()
        if out.is_lost and code == 0:
            print(f"pareto: not all of its output could be written: {out.problem}", file=err)
            code = SetupError.exit_code
    sys.exit(code)


def _exit_code(arguments: list[str] | None) -> int:
    try:
        code = app(arguments, exit_on_error=False, print_error=True)
    except cyclopts.CycloptsError:
        return InputError.exit_code
    except ParetoError as failure:
        print(f"pareto: {failure}", file=sys.stderr)
        return failure.exit_code
    except KeyboardInterrupt:
        print("pareto: interrupted", file=sys.stderr)
        return InterruptedByUserError.exit_code
    return code if isinstance(code, int) else 0
