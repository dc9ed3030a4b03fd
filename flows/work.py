"""The process that takes the runs submitted for one instance, one at a time.

`python -m flows.work`; `pareto worker` starts it, and starts it again when it ends. Each instance
has a work pool of its own, and deployments `campaign/INSTANCE` and `retry-points/INSTANCE` that
lead to it, so that whatever is submitted for an instance runs beside it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

from prefect import get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectAlreadyExists
from prefect.flows import Flow
from prefect.types.entrypoint import EntrypointType
from prefect.utilities.processutils import setup_signal_handlers_worker
from prefect.workers.process import ProcessWorker

from flows.deployments import campaign, retry_points
from flows.serve import ABOUT_RETRY, about_campaigns
from flows.submission import host_tag
from flows.worker import FOLDER_ENV, INSTANCE_ENV, pool_of

#: Runs that a worker takes at a time: one campaign at a time may load an instance.
_AT_A_TIME = 1


def main() -> None:
    """Work until this process is ended; the client of a run that this ends goes on."""
    instance, folder = os.environ[INSTANCE_ENV], os.environ[FOLDER_ENV]
    setup_signal_handlers_worker(os.getpid(), f"the worker of {instance}", print)
    try:
        asyncio.run(_work(instance, folder))
    except* KeyboardInterrupt:  # alone, or in a group with what it interrupted
        print("stopped")


async def _work(instance: str, folder: str) -> None:
    await _make_pool(instance)
    for deployment in (
        _deployment(campaign, instance, folder, about_campaigns()),
        _deployment(retry_points, instance, folder, ABOUT_RETRY),
    ):
        await (await deployment).aapply()
    worker = ProcessWorker(
        name=f"{instance} on {socket.gethostname()}",
        work_pool_name=pool_of(instance),
        limit=_AT_A_TIME,
    )
    await worker.start()


async def _make_pool(instance: str) -> None:
    """Make the instance's work pool, or bring what is ours of it up to date.

    Whether it is paused, and its limits, are its users': they stay.
    """
    name, about = pool_of(instance), f"What is submitted for instance {instance}."
    template = ProcessWorker.get_default_base_job_template()
    new = WorkPoolCreate(name=name, type="process", description=about, base_job_template=template)
    async with get_client() as client:
        try:
            await client.create_work_pool(new)
        except ObjectAlreadyExists:
            update = WorkPoolUpdate(description=about, base_job_template=template)
            await client.update_work_pool(name, update)


async def _deployment(
    flow: Flow[..., Any], instance: str, folder: str, about: str
) -> RunnerDeployment:
    return await flow.ato_deployment(
        name=instance,
        description=about,
        tags=[host_tag(), f"instance:{instance}"],
        work_pool_name=pool_of(instance),
        job_variables={"working_dir": folder},
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


if __name__ == "__main__":
    main()
