"""The pages opened as a reader does: pointer, keyboard, phone, paper, screen reader; no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.curves import MANY, Place

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
#: Bytes that a page may have.
LARGEST = 6_000_000
PAGES = ("few.html", "many.html", "compare.html", "status.html")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every page of three campaigns, written by the command."""
    folder = tmp_path_factory.mktemp("pages")
    place = Place(folder)
    place.campaign("few")
    place.campaign("many", MANY, rehearsal={"time_scale": 0.01}, speed=1.3, driver="560")
    place.campaign("begun", valid=3)
    for arguments in (
        ("report", "few", "--out", "few.html"),
        ("report", "many", "--out", "many.html"),
        ("compare", "few", "many", "begun", "--out", "compare.html"),
        ("status", "--html", "status.html"),
    ):
        command = [sys.executable, "-m", "flows.cli", *arguments, "--database", place.url]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=folder, env=env, check=True)
    return folder


@dataclass
class Watched:
    """What a page did while it was open."""

    page: Page
    requests: list[str]
    complaints: list[str]


def opened(page: Page, file: Path) -> Watched:
    """A file opened in the browser, watched."""
    watched = Watched(page, [], [])
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("console", lambda message: watched.complaints.append(message.text))
    page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    page.goto(file.as_uri())
    return watched


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_clean_file(written: Path, page: Page, shots: Path, name: str) -> None:
    """No request leaves it, nothing is on the console, axe finds nothing, it is small."""
    watched = opened(page, written / name)
    page.screenshot(path=shots / name.replace(".html", ".png"), full_page=True)
    found = Axe().run(page)
    assert found.response["violations"] == [], found.generate_report()
    assert found.response["passes"]
    assert watched.complaints == []
    outside = [url for url in watched.requests if not url.startswith("data:")]
    assert outside == [(written / name).as_uri()]
    assert (written / name).stat().st_size < LARGEST


def test_the_pointer_shows_all_numbers_of_a_point(written: Path, page: Page, shots: Path) -> None:
    """Over a point they show beside it and its row is marked; off it they go."""
    opened(page, written / "few.html")
    detail = page.locator("#detail")
    expect(detail).to_be_hidden()
    page.locator("#hit-0-c0064").hover()
    expect(detail).to_be_visible()
    expect(detail).to_contain_text("4,219.8 tokens/s")
    expect(detail).to_contain_text("75.0 tokens/s")
    expect(detail).to_contain_text("168.0 ms")
    expect(detail).to_contain_text("whole run")
    expect(page.locator("#row-c0064")).to_have_class("shown")
    page.screenshot(path=shots / "hover.png")
    page.mouse.move(1, 1)
    expect(detail).to_be_hidden()


def test_the_keyboard_reaches_every_point(written: Path, page: Page) -> None:
    """Tab goes from point to point by level, each says its numbers; Escape puts them away."""
    opened(page, written / "few.html")
    page.locator("[aria-label=Curve]").focus()
    seen = []
    for _ in range(7):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
        expect(page.locator("#detail strong")).to_have_text(seen[-1].split(":")[0])
    assert [text[:5] for text in seen] == [f"c{n:04}" for n in (1, 4, 16, 32, 64, 128, 256)]
    assert "throughput 11,050.4 tokens/s" in seen[-1]
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).to_be_hidden()


def test_a_phone_never_scrolls_the_page_sideways(written: Path, browser, shots: Path) -> None:
    """Only tables and the drawing scroll, each within its own frame."""
    context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True)
    page = context.new_page()
    for name in PAGES:
        opened(page, written / name)
        page.screenshot(path=shots / name.replace(".html", "-phone.png"), full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    context.close()


def test_on_paper_nothing_is_cut(written: Path, page: Page, shots: Path) -> None:
    """Printed, no frame hides a part, and the page keeps its watermark."""
    opened(page, written / "many.html")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 1040, "height": 720})
    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll')]"
        ".filter(e => getComputedStyle(e).overflowX !== 'visible').length"
    )
    assert cut == 0
    background = page.evaluate("getComputedStyle(document.body).backgroundImage")
    assert "REHEARSAL" in background
    paper = page.pdf(path=shots / "many.pdf", format="A4", landscape=True)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) > 1


def test_what_was_recorded_is_text_never_markup(written: Path, page: Page) -> None:
    """A finding that holds a script is shown as it is, and does not run."""
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    opened(page, written / "few.html")
    expect(page.locator("#findings ~ .scroll")).to_contain_text("<script>alert(1)</script>")
    assert dialogs == []


def test_a_rehearsal_says_so(written: Path, page: Page) -> None:
    """In words on the page and across the drawing; a measurement's page does not."""
    opened(page, written / "many.html")
    expect(page.locator("header .banner")).to_contain_text("REHEARSAL")
    expect(page.locator("svg #watermark")).to_have_count(1)
    opened(page, written / "few.html")
    assert "REHEARSAL" not in page.locator("body").inner_text()
    expect(page.locator("svg #watermark")).to_have_count(0)
