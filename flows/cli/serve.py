"""`pareto serve`: run submitted campaigns, and show them in Prefect's pages."""

from __future__ import annotations

import os
from pathlib import Path


def serve(
    folder: Path = Path("pareto-data"),
    *,
    database: str | None = None,
    host: str = "127.0.0.1",
    port: int = 4200,
) -> int:
    """Run the service until Ctrl-C: submit, watch, cancel and retry campaigns in Prefect's pages.

    Example: `pareto serve --port 4200`

    A Prefect server is started, or joined if PREFECT_API_URL names one. Run it under a supervisor
    such as systemd; a campaign that it interrupts goes on at its next start.

    Args:
        folder: Data folder of the service.
        database: Database URL of its records; default: `PARETO_DATABASE`, then one in the folder.
        host: Address that a Prefect server of our own listens on.
        port: Port of that server.
    """
    from core.layout import DATABASE
    from flows.service import run_service
    from flows.source import DATABASE_ENV
    from tasks.prefect_server import At

    here = f"sqlite:///{folder.absolute() / DATABASE}"
    url = database or os.environ.get(DATABASE_ENV) or here
    run_service(folder, url, At(host, port), lambda line: print(line, flush=True))
    return 0
