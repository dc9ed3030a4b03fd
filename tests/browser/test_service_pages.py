"""The service in a real browser: what a user sees of a campaign in Prefect's pages, and presses.

Every assertion reads the page. Screenshots are left in the test's output folder.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests import session
from tests.flows.support import LABELS, Place, write_datasets

#: Milliseconds for a page to show something, and for a campaign to come to its end.
PAGE_MS, CAMPAIGN_MS = 60_000, 300_000
#: Milliseconds between two looks.
LOOK_MS = 3000

#: Name of the campaign: of this run of the tests alone, so that no other run is meant.
NAME = f"in-browser-{os.getpid()}"

pytestmark = pytest.mark.browser


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place whose campaign is submitted to the service."""
    write_datasets(tmp_path)
    return Place(tmp_path, session.service_api_url(), name=NAME)


@dataclass
class Watch:
    """A user at the pages."""

    page: Page
    ui_url: str
    output: Path
    shots: list[Path] = field(default_factory=list)

    def shoot(self, name: str) -> None:
        """Leave a screenshot."""
        self.shots.append(self.output / f"service-{len(self.shots):02d}-{name}.png")
        self.page.screenshot(path=self.shots[-1])

    def submit_form(self, text: str, source: Path) -> None:
        """Fill in the form of the deployment `campaign`, and submit it."""
        page = self.page
        page.goto(f"{self.ui_url}/v2/deployments")
        page.get_by_role("link", name="campaign", exact=True).first.click()
        page.get_by_role("tab", name="Description").click()
        expect(page.get_by_role("heading", name="The campaign file")).to_be_visible()
        self.shoot("deployment")
        page.goto(f"{page.url.partition('?')[0]}/run")
        expect(page.get_by_text("The campaign's YAML, the path of such a file")).to_be_visible()
        boxes = page.locator("textarea")
        boxes.nth(0).fill(text)
        boxes.nth(2).fill(str(source))
        self.shoot("form")
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url("**tab=Runs**")

    def open_run(self, name: str) -> None:
        """Open a run from the list of runs, which has its name once it has begun."""
        link = self.page.get_by_role("link", name=name).first
        for _ in range(CAMPAIGN_MS // LOOK_MS):
            self.page.goto(f"{self.ui_url}/v2/runs")
            self.page.wait_for_timeout(LOOK_MS)
            if link.is_visible():
                break
        link.click()
        expect(self.page.get_by_role("tab", name="Artifacts")).to_be_visible()

    def open_tab(self, name: str) -> None:
        """Open a tab of the run's page, as it is now."""
        self.page.reload()
        self.page.get_by_role("tab", name=name).click()

    def see_grow(self, name: str, valid: int) -> None:
        """See so many valid points in the run's artifacts; then their chart."""
        for _ in range(CAMPAIGN_MS // LOOK_MS):
            self.open_tab("Artifacts")
            self.page.wait_for_timeout(LOOK_MS)
            text = self.page.locator("body").inner_text()  # after a retry also as it was before
            seen = re.findall(r"(\d) of 7 points are valid", text)
            if max(map(int, seen), default=0) >= valid:
                self.shoot(f"{valid}-points")
                return
        raise AssertionError(f"{name} does not grow")

    def see_state(self, state: str) -> None:
        """See the run come to a state."""
        badge = self.page.get_by_text(state, exact=True).first
        expect(badge).to_be_visible(timeout=CAMPAIGN_MS)
        self.shoot(state.lower())

    def open_artifact(self, run_url: str, key: str, note: str) -> Locator:
        """Open an artifact of a run by its key and something of its note; its page."""
        self.page.goto(run_url)
        self.open_tab("Artifacts")
        self.page.get_by_role("link").filter(has_text=key).filter(has_text=note).first.click()
        self.page.wait_for_url("**/artifacts/artifact/**")
        body = self.page.locator("body")
        expect(body).to_contain_text("REHEARSAL: nothing here is a measurement.")
        self.shoot(key)
        return body

    def press_retry(self) -> None:
        """Press Retry in the run's menu, and confirm."""
        self.page.get_by_role("button", name="Open menu").last.click()
        self.page.get_by_role("menuitem", name="Retry").click()
        self.shoot("retry")
        self.page.get_by_role("alertdialog").get_by_role("button", name="Retry").click()


def test_a_campaign_is_submitted_watched_and_retried_in_the_browser(
    page: Page, place: Place, shots: Path
) -> None:
    """The form submits a campaign; its pages grow; a failed point is explained and retried."""
    page.set_default_timeout(PAGE_MS)
    expect.set_options(timeout=PAGE_MS)
    page.set_viewport_size({"width": 1700, "height": 1100})
    user = Watch(page, place.prefect_api_url.removesuffix("/api"), shots)
    with place.endpoint(error_next=2):  # the first point fails
        file = place.write(instance={"name": "browser-box"})
        user.submit_form(file.read_text(), file)
        user.open_run(f"{NAME} @ browser-box")
        run_url = page.url
        for valid in (1, 3):
            user.see_grow(place.name, valid)
        user.open_tab("Task Runs")
        page.get_by_placeholder("Search by run name").fill("c0033")
        expect(page.get_by_text(f"{NAME} · c0033 · performance").first).to_be_visible()
        expect(page.locator("main").get_by_text("level:33").last).to_be_visible()
        user.shoot("tasks")
        user.see_state("Failed")
        user.open_tab("Details")
        expect(page.get_by_text("1 of 7 points are not valid: c0033").first).to_be_visible()
        user.shoot("details")
        findings = user.open_artifact(run_url, f"{NAME}-c0033-findings", "what to do")
        expect(findings).to_contain_text("failed-requests")
        expect(findings).to_contain_text("what to do")

        page.goto(run_url)
        user.press_retry()
        user.see_state("Completed")
    user.see_grow(place.name, len(LABELS))
    chart = user.open_artifact(run_url, f"{NAME}-chart", "7 of 7 points are valid")
    expect(chart.get_by_role("img", name="the curve so far")).to_be_visible()
    expect(chart.get_by_text("c0033")).to_be_visible()
    tries = {label: len(place.attempts(label)) for label in LABELS}
    assert tries == {label: 2 if label == "c0033" else 1 for label in LABELS}
    assert all(shot.stat().st_size > 10_000 for shot in user.shots)
    httpx.get(run_url, headers={"Accept": "text/html"}).raise_for_status()
