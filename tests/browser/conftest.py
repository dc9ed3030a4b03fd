"""A headless Chromium for the tests of pages, and the folder that their screenshots go to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

#: Where screenshots of the last run lie.
SHOTS = Path(__file__).resolve().parents[2] / "test-output" / "browser"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's own Chromium (Debian: apt install chromium)."""
    found = os.environ.get("PARETO_CHROMIUM") or shutil.which("chromium")
    assert found, "no chromium here; install it (Debian: apt install chromium)"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page of a desktop's size."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def shots() -> Path:
    """Where screenshots go; looked at by people."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    return SHOTS
