"""Asks a Prefect server for what its pages show and take: bounded in time, without its client.

Prefect's own client waits half an hour for a server that is away. What is asked here is either
wanted at once, or not needed at all.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import httpx

from core.errors import SetupError
from tasks.tls import tls_context

#: Seconds a server gets to answer; a busy machine makes it slow.
ANSWER_TIMEOUT_S = 15.0
#: Newest runs that are looked at.
_NEWEST = 200
_NOT_FOUND = 404
#: What a server answers whose database is locked or that is asked too often; and seconds to wait.
_BUSY, _BUSY_PAUSE_S = frozenset({429, 502, 503, 504}), 0.5


@dataclass(frozen=True)
class FlowRun:
    """A run of a flow, as its server tells."""

    id: str
    name: str
    state_type: str
    state_name: str
    message: str
    tags: tuple[str, ...]
    labels: Mapping[str, Any]
    parameters: Mapping[str, Any]
    deployment_id: str | None

    @property
    def is_final(self) -> bool:
        """Whether it ended."""
        return self.state_type in ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> FlowRun:
        """From the server's answer."""
        state = found.get("state") or {}
        return cls(
            id=str(found["id"]),
            name=str(found["name"]),
            state_type=str(state.get("type") or found.get("state_type") or ""),
            state_name=str(state.get("name") or ""),
            message=str(state.get("message") or ""),
            tags=tuple(found.get("tags") or ()),
            labels=found.get("labels") or {},
            parameters=found.get("parameters") or {},
            deployment_id=found.get("deployment_id"),
        )


class PrefectApi:
    """A Prefect server by the address of its API."""

    def __init__(self, api_url: str, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self.api_url = api_url
        self._timeout_s = timeout_s
        self._client = httpx.Client(headers=login(), timeout=timeout_s, verify=tls_context())

    @property
    def ui_url(self) -> str:
        """Address of its pages."""
        return pages_url(self.api_url)

    def run_url(self, run_id: str) -> str:
        """Address of a run's page."""
        return f"{self.ui_url}/v2/runs/flow-run/{run_id}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request; its JSON answer, None if it has none or there is no such thing.

        Raises:
            SetupError: the server is away, or refuses.
        """
        try:
            answer = self._answer(method, path, body)
            if answer.status_code == _NOT_FOUND:
                return None
            answer.raise_for_status()
            return answer.json() if answer.content else None
        except httpx.HTTPStatusError as refused:
            status, detail = refused.response.status_code, refused.response.text[:300]
            raise SetupError(
                f"the Prefect server at {self.api_url} refused {path}: {status}"
                f" {detail}{_hint(status)}"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as problem:
            raise SetupError(
                f"the Prefect server at {self.api_url} does not answer ({problem}); is"
                " `pareto serve` running?"
            ) from None

    def _answer(self, method: str, path: str, body: Any) -> httpx.Response:
        """The answer of a server that is not busy, or the last one within the time-out."""
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            answer = self._client.request(method, f"{self.api_url}{path}", json=body)
            if answer.status_code not in _BUSY or time.monotonic() > deadline_s:
                return answer
            time.sleep(_BUSY_PAUSE_S)

    def refuse_other_version(self) -> None:
        """Refuse a server that this Prefect can't talk to.

        Raises:
            SetupError: it is of another major version.
        """
        theirs, ours = str(self.ask("GET", "/admin/version")), version("prefect")
        if theirs.partition(".")[0] != ours.partition(".")[0]:
            raise SetupError(
                f"the Prefect server at {self.api_url} is of version {theirs}, and Prefect here of"
                f" {ours}: another major version; name a server of version"
                f" {ours.partition('.')[0]} in PREFECT_API_URL, or unset it"
            )

    # --- Runs ------------------------------------------------------------------------------------

    def deployment(self, name: str) -> dict[str, Any] | None:
        """A deployment by `flow/deployment`; None: nobody serves it."""
        found: dict[str, Any] | None = self.ask("GET", f"/deployments/name/{name}")
        return found

    def run(self, run_id: str) -> FlowRun | None:
        """A flow run."""
        found = self.ask("GET", f"/flow_runs/{run_id}")
        return None if found is None else FlowRun.of(found)

    def runs(
        self,
        *,
        flows: Sequence[str] = (),
        tags: Sequence[str] = (),
        states: Sequence[str] = (),
    ) -> list[FlowRun]:
        """The newest runs of these flows that have all these tags and one of these states."""
        chosen: dict[str, Any] = {}
        if tags:
            chosen["tags"] = {"all_": list(tags)}
        if states:
            chosen["state"] = {"type": {"any_": list(states)}}
        wanted: dict[str, Any] = {"sort": "EXPECTED_START_TIME_DESC", "limit": _NEWEST}
        wanted["flow_runs"] = chosen
        if flows:
            wanted["flows"] = {"name": {"any_": list(flows)}}
        return [FlowRun.of(found) for found in self.ask("POST", "/flow_runs/filter", wanted) or ()]

    def create_run(
        self,
        deployment_id: str,
        parameters: Mapping[str, Any],
        *,
        name: str,
        tags: Sequence[str],
        once: str,
    ) -> FlowRun:
        """A new run of a deployment, or the one that was created with the same `once`."""
        body = {
            "parameters": dict(parameters),
            "name": name,
            "tags": list(tags),
            "idempotency_key": once,
            "state": {"type": "SCHEDULED"},
        }
        path = f"/deployments/{deployment_id}/create_flow_run"
        return FlowRun.of(self.ask("POST", path, body))

    def set_state(
        self,
        run_id: str,
        kind: str,
        name: str,
        message: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Bring a run into a state, whatever the rules of its present one say.

        Args:
            run_id: The run.
            kind: Type of the state, e.g. SCHEDULED.
            name: Its name in Prefect's pages.
            message: Why.
            details: What Prefect goes by in this state, e.g. a time.
        """
        state: dict[str, Any] = {"type": kind, "name": name, "message": message}
        if details is not None:
            state["state_details"] = dict(details)
        self.ask("POST", f"/flow_runs/{run_id}/set_state", {"state": state, "force": True})


def pages_url(api_url: str) -> str:
    """Address of a server's pages, by that of its API."""
    return api_url.removesuffix("/api")


def login() -> dict[str, str]:
    """What proves to a Prefect server who we are, as its own client sends it."""
    if key := os.environ.get("PREFECT_API_KEY"):
        return {"Authorization": f"Bearer {key}"}
    if auth := os.environ.get("PREFECT_API_AUTH_STRING"):
        return {"Authorization": f"Basic {base64.b64encode(auth.encode()).decode()}"}
    return {}


def _hint(status: int) -> str:
    is_login = status in (401, 403)
    return "; set PREFECT_API_AUTH_STRING to the server's user:password" if is_login else ""
