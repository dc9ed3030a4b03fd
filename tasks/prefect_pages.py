"""What a run's pages in Prefect show beside its tasks: artifacts, events, log lines, tags.

Nothing here raises: a server that is away is left alone for a while, and what it missed is its
loss. Callers that want a page to be there hand it in again until `put` says that it is.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core.errors import SetupError
from core.records import Owner
from tasks.owner import this_process
from tasks.prefect_api import PrefectApi

#: Seconds a server gets for one page, and seconds for which one that gave none is left alone.
PAGE_TIMEOUT_S, LEFT_ALONE_S = 5.0, 10.0
#: Labels of a run that name the process which runs it.
OWNER_LABELS = ("pareto.host", "pareto.boot_id", "pareto.pid", "pareto.start_time")
#: Label of a run that was ended because its service ended.
INTERRUPTED_LABEL = "pareto.interrupted"
#: Logger that our lines are shown under.
_LOGGER = "pareto"


def owner_in(labels: Mapping[str, Any]) -> Owner | None:
    """The process that runs a run, by its labels; None: no process said so yet."""
    host, boot_id, pid, start_time = (labels.get(name) for name in OWNER_LABELS)
    if host is None or boot_id is None or pid is None or start_time is None:
        return None
    return Owner(str(host), str(boot_id), int(pid), int(start_time))


class Pages:
    """The pages of one flow run."""

    def __init__(self, api_url: str | None, run_id: str | None) -> None:
        known = api_url is not None and run_id is not None
        self._api = PrefectApi(api_url, PAGE_TIMEOUT_S) if known and api_url else None
        self._run_id = run_id
        self._not_before_s = 0.0

    @property
    def are_taken(self) -> bool:
        """Whether the server took what it was last given."""
        return time.monotonic() >= self._not_before_s

    @property
    def exist(self) -> bool:
        """Whether there is a run to show."""
        return self._api is not None

    def begin(self, tags: Sequence[str]) -> None:
        """Tag the run, and say which process runs it."""
        owner = this_process()
        values = (owner.host, owner.boot_id, owner.pid, owner.start_time)
        self._send("PATCH", f"/flow_runs/{self._run_id}", {"tags": list(tags)})
        self.label(dict(zip(OWNER_LABELS, values, strict=True)) | {INTERRUPTED_LABEL: False})

    def label(self, labels: Mapping[str, Any]) -> None:
        """Label the run."""
        self._send("PATCH", f"/flow_runs/{self._run_id}/labels", dict(labels))

    def log(self, text: str, task_run_id: str | None = None, level: int = logging.INFO) -> None:
        """A line in the run's log."""
        line = {"name": _LOGGER, "level": level, "message": text, "timestamp": _now()}
        self._send("POST", "/logs/", [line | self._about(task_run_id)])

    def put(
        self, key: str, kind: str, data: Any, note: str, task_run_id: str | None = None
    ) -> str | None:
        """Show an artifact; the same key again is its next version.

        Args:
            key: Lowercase letters, digits and dashes.
            kind: markdown, table or progress.
            data: A text, rows, or percent.
            note: Markdown above it.
            task_run_id: The task that it belongs to.

        Returns:
            The artifact's id; None: the server didn't take it.
        """
        body = {"key": key, "type": kind, "data": _shown(kind, data), "description": note}
        found = self._send("POST", "/artifacts/", body | self._about(task_run_id))
        return str(found["id"]) if isinstance(found, dict) else None

    def change(self, artifact_id: str, kind: str, data: Any, note: str) -> None:
        """Show other content in an artifact."""
        body = {"data": _shown(kind, data), "description": note}
        self._send("PATCH", f"/artifacts/{artifact_id}", body)

    def event(self, name: str, resource: str, labels: Mapping[str, str], payload: Any) -> None:
        """An event that Prefect's automations can act on.

        Args:
            name: E.g. pareto.point.completed.
            resource: Id of what it happened to.
            labels: What else is known of that.
            payload: Plain values.
        """
        event = {
            "id": str(uuid.uuid4()),
            "occurred": _now(),
            "event": name,
            "resource": {"prefect.resource.id": resource, **labels},
            "related": [
                {
                    "prefect.resource.id": f"prefect.flow-run.{self._run_id}",
                    "prefect.resource.role": "flow-run",
                }
            ],
            "payload": payload,
        }
        self._send("POST", "/events", [event])

    def _about(self, task_run_id: str | None) -> dict[str, str | None]:
        return {"flow_run_id": self._run_id, "task_run_id": task_run_id}

    def _send(self, method: str, path: str, body: Any) -> Any:
        if self._api is None or time.monotonic() < self._not_before_s:
            return None
        try:
            return self._api.ask(method, path, body)
        except SetupError:
            self._not_before_s = time.monotonic() + LEFT_ALONE_S
            return None


def _shown(kind: str, data: Any) -> Any:
    """Content as Prefect keeps it."""
    return json.dumps(data) if kind == "table" else data


def _now() -> str:
    return datetime.now(UTC).isoformat()
