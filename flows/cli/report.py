"""`pareto report`: a campaign as one page, with its curve as pictures beside it."""

from __future__ import annotations

import os
from pathlib import Path


def report(campaign: str, *, out: Path | None = None, database: str | None = None) -> int:
    """Write a campaign's report as one HTML file, and its curve beside it as SVG and PNG.

    The page is complete in itself: it can be sent, printed and opened without a network.

    Example: `pareto report campaigns/rehearsal.yaml --out report.html`

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        out: The HTML file; default: CAMPAIGN-report.html here.
        database: Database URL when a name is given.
    """
    from flows.cli.files import target, write
    from flows.cli.where import find
    from flows.report import make_report
    from tasks.chart_svg import svg_and_png
    from tasks.report import report_page

    where = find(campaign, database)
    page = target(out or Path(f"{where.name}-report.html"), ".html")
    made = make_report(where.records, where.name, os.environ)
    title, rehearsal = made.campaign.name, made.campaign.rehearsal
    pictures = svg_and_png(made.curve, title=title, rehearsal=rehearsal)
    write(page, report_page(made, pictures.svg).encode())
    write(page.with_suffix(".svg"), pictures.svg.encode())
    write(page.with_suffix(".png"), pictures.png)
    for note in made.notes:
        print(f"not known: {note}")
    return 0
