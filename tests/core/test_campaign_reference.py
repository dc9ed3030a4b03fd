"""The page about the campaign file says what the model says."""

from pathlib import Path

from core.campaign_reference import reference_text

PAGE = Path(__file__).parents[2] / "docs" / "campaign.md"


def test_the_page_is_current() -> None:
    """`make schema` writes it."""
    assert PAGE.read_text(encoding="utf-8") == reference_text()


def test_every_key_has_a_row_with_its_default_and_description() -> None:
    rows = reference_text().splitlines()
    assert "| `campaign` | text | **needed** | Name: letters, digits, - and _. |" in rows
    assert any(row.startswith("| `datasets.accuracy[].scorer` | mapping | – | ") for row in rows)
    assert any(row.startswith("| `rehearsal.time_scale` | number | **needed**") for row in rows)
    assert any(
        row.startswith("| `curve.levels` | `auto` or list of whole number |") for row in rows
    )
    assert all(row.count(" | ") == 3 for row in rows if row.startswith("| `"))
