"""`pareto demo`: a whole rehearsal campaign on this machine."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path


def demo(folder: Path = Path("pareto-demo")) -> int:
    """Start a rehearsal endpoint and run campaigns/rehearsal.yaml on it; leave nothing running.

    Example: `pareto demo`

    Args:
        folder: Where the demo's campaign, records and run folders go, in a new folder each time.
    """
    from flows.cli.drive import drive
    from flows.prepare import prepare
    from tasks.rehearsal.process import running_endpoint

    place = (folder / time.strftime("%Y%m%dT%H%M%S")).absolute()
    campaign = _copy_campaign(place)
    with running_endpoint(model="rehearsal-model") as url:
        env = os.environ | {
            "PARETO_REHEARSAL_URL": url,
            "PARETO_REHEARSAL_PYTHON": sys.executable,
            "PARETO_STATE_DIR": str(place / "state"),
        }
        print(f"rehearsal endpoint at {url}; campaign {campaign}")
        drive(prepare(campaign, env))
    print(f"everything lies in {place}; nothing is left running")
    print(f"look again with: pareto status {campaign}")
    return 0


def _copy_campaign(place: Path) -> Path:
    """The rehearsal's YAML and datasets in a folder of their own.

    Raises:
        SetupError: the examples are not beside this installation.
    """
    from core.errors import SetupError

    examples = Path(__file__).parents[2] / "campaigns"
    if not (examples / "rehearsal.yaml").is_file():
        raise SetupError(
            f"no {examples / 'rehearsal.yaml'}; run the demo from a checkout: make demo"
        )
    try:
        place.mkdir(parents=True)
        shutil.copytree(examples / "data", place / "data")
        return Path(shutil.copy(examples / "rehearsal.yaml", place))
    except OSError as problem:
        raise SetupError(
            f"{place}: can't be written ({problem.strerror}); name a folder: pareto demo FOLDER"
        ) from None
