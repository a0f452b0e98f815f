"""A controller as a plain async function: pods that have ended are deleted an hour later."""

import asyncio
from datetime import timedelta

from podlife.api.codec import parse_time
from podlife.client import PODS, Client, DeleteOptions
from podlife.clock import Clock

KEPT = timedelta(hours=1)


def ended_at(pod):
    """When the last container of the pod ended; None while one runs."""
    if pod["status"].get("phase") not in ("Succeeded", "Failed"):
        return None
    ends = [each["state"]["terminated"]["finishedAt"] for each in pod["status"]["containerStatuses"]]
    return max(parse_time(each) for each in ends)


async def tidy(client: Client, clock: Clock) -> None:
    while True:
        for pod in (await client.list(PODS)).items:
            ended = ended_at(pod)
            if ended is not None and clock.now() - ended >= KEPT:
                meta = pod["metadata"]
                options = DeleteOptions(uid=meta["uid"])
                await client.delete(PODS, meta["name"], meta["namespace"], options=options)
        await asyncio.sleep(60)
