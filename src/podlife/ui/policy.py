"""Keeps the verdicts of the collector's policy up to date, by which lives predict when pods are collected.

Verdicts depend on all pods: they are read as for a plan, soon after a pod has ended or gone, and so seldom that it
takes a small share of a core however many pods there are.
"""

from __future__ import annotations

import asyncio
import logging
import time

from podlife.client import Client
from podlife.clock import Clock
from podlife.diagnosis import PolicyVerdicts, acting_rules
from podlife.errors import PodlifeError
from podlife.podgc import Settings
from podlife.ui.lives import Lives

log = logging.getLogger(__name__)

_LEAST_SECONDS, _MOST_SECONDS = 2.0, 60.0
# A reading pauses for so many times the processor time that it took.
_PAUSE = 20.0


async def follow_policy(client: Client, clock: Clock, settings: Settings, lives: Lives) -> None:
    """Run until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        ends, began, began_at = lives.ends, time.thread_time(), loop.time()
        verdicts = PolicyVerdicts(client, clock, settings)
        try:
            await verdicts.read()
        except PodlifeError as error:
            log.info("cannot read pods for the policy: %s", error)
        else:
            lives.rules = acting_rules(settings, verdicts)
            lives.touch("succeeded", "failed", "terminating", "held")
        pause = max(_LEAST_SECONDS, _PAUSE * (time.thread_time() - began))
        await asyncio.sleep(pause)
        while lives.ends == ends and loop.time() - began_at < _MOST_SECONDS:  # noqa: ASYNC110 - a look costs nothing
            await asyncio.sleep(_LEAST_SECONDS)
