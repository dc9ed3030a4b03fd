"""`pareto notify-test`: try the addresses of a campaign."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def notify_test(file: Path) -> int:
    """Send a test message to every address under `notify:`; nothing is measured.

    Example: `pareto notify-test campaigns/rehearsal.yaml`

    Args:
        file: The campaign YAML.
    """
    from core.errors import InputError, SetupError
    from flows.prepare import prepare
    from tasks.notify import notify

    campaign = prepare(file, os.environ).campaign
    addresses = campaign.notify.addresses
    if not addresses:
        raise InputError(
            f"{file}: notify.addresses: there are none; add one, e.g. json://host/path"
        )
    title = f"{campaign.campaign} @ {campaign.instance.name}: test"
    untold = notify(addresses, os.environ, title, "pareto can reach you here")
    for problem in untold:
        print(problem, file=sys.stderr)
    print(f"{len(addresses) - len(untold)} of {len(addresses)} addresses took the message")
    return SetupError.exit_code if untold else 0
