"""The command `pareto`: parse, call, print, exit code; the commands are imported when called.

Exit codes: 0 curve complete and valid; 1 finished with points not valid; 2 the input is wrong;
3 the set-up is wrong; 4 stopped by a failure; 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

import cyclopts

from core.errors import InputError, ParetoError


def _version() -> str:
    try:
        return version("pareto-campaigns")
    except PackageNotFoundError:
        return "not installed"


app = cyclopts.App(
    name="pareto",
    help="Plan, run and record MLPerf Endpoints campaigns: one YAML in, one measured curve out.",
    version=_version,
    help_format="markdown",
    result_action="return_value",
)
#: Command → what the list of commands says of it; its module is imported when it is called.
COMMANDS = {
    "plan": "Show the points that a campaign file leads to.",
    "check": "Check datasets, endpoint, client, configurations and room; run nothing.",
    "run": "Run a campaign, or continue it.",
    "status": "Show where a campaign stands, or list all campaigns.",
    "retry": "Run failed points again, and no others.",
    "runs": "List the attempts of a campaign with their run folders.",
    "demo": "Run a whole rehearsal campaign on this machine.",
}
for _name, _help in COMMANDS.items():
    app.command(f"flows.cli.{_name}:{_name}", name=_name, help=_help)
db = cyclopts.App(name="db", help="Look after the records database.")
db.command(
    "flows.cli.db:upgrade", name="upgrade", help="Bring the database to this version's schema."
)
app.command(db)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; user mistakes never show a traceback."""
    sys.exit(_exit_code(arguments))


def _exit_code(arguments: list[str] | None) -> int:
    try:
        code = app(arguments, exit_on_error=False, print_error=True)
    except cyclopts.CycloptsError:
        return InputError.exit_code
    except ParetoError as failure:
        print(f"pareto: {failure}", file=sys.stderr)
        return failure.exit_code
    except KeyboardInterrupt:
        return 130
    return code if isinstance(code, int) else 0
