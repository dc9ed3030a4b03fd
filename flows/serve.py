"""The process that serves the deployments `campaign` and `retry-points` to a Prefect server.

`python -m flows.serve`; `pareto serve` starts it, and starts it again when it ends.
"""

from __future__ import annotations

from prefect import serve
from prefect.deployments.runner import RunnerDeployment
from prefect.flows import Flow
from prefect.types.entrypoint import EntrypointType

from core.campaign_reference import reference_text
from flows.deployments import campaign, retry_points
from flows.submission import CAMPAIGN, RETRY, host_tag

#: What retrying points does, for the page of the deployment.
ABOUT_RETRY = "Runs failed points of a campaign again."


def main() -> None:
    """Serve until this process is ended; its campaigns end with it, and go on at its next start."""
    serve(
        _deployment(campaign, CAMPAIGN, about_campaigns()),
        _deployment(retry_points, RETRY, ABOUT_RETRY),
        print_starting_message=False,
    )


def _deployment(flow: Flow, name: str, about: str) -> RunnerDeployment:  # type: ignore[type-arg]  # of any flow
    return flow.to_deployment(  # type: ignore[return-value]  # typed as sync or async
        name=name,
        description=about,
        tags=[host_tag()],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def about_campaigns() -> str:
    """What a campaign's YAML may say, for the page of the deployment."""
    return (
        f"Runs a campaign from its YAML. Pressing *Run* again continues it.\n\n{reference_text()}"
    )


if __name__ == "__main__":
    main()
