"""A cluster and the page's server hold nothing of pods that are long gone, but what they keep up to a bound."""

from __future__ import annotations

import gc
from collections import Counter
from functools import partial

import pytest

from podlife.apiserver.event_ttl import EventExpiry
from podlife.apiserver.storage import HistoryLimits
from podlife.client import EVENTS, PODS, DeleteOptions
from podlife.events.correlator import CorrelatorSettings
from podlife.testing import Cluster, virtual_time
from podlife.ui import ended
from podlife.ui.journal import Journal
from tests.component.ui.test_observed_cluster import a_pod, observed
from tests.workloads.runs import at_work


def of_podlife() -> Counter[str]:
    """Its objects by type, those that the collector does not track left out."""
    names = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Counter(name for name in names if name.startswith("podlife"))


async def churn(cluster: Cluster, count: int, start: int) -> None:
    """Pods come and go, each under a name of its own; none of them is left."""
    for name in (f"p{number}" for number in range(start, start + count)):
        await cluster.client.create(PODS, a_pod(name), "default")
        await cluster.advance(seconds=2)
        options = DeleteOptions(grace_period_seconds=1)
        await cluster.client.delete(PODS, name, "default", options=options)
        await cluster.advance(seconds=2)
    # Until the last events have expired.
    await cluster.advance(seconds=120)
    # The log of all requests is the test's own.
    cluster.audit.entries.clear()


@pytest.fixture
def _small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended, "MOST_ENDED", 10)
    monkeypatch.setattr("podlife.ui.feed.Journal", partial(Journal, 20))
    monkeypatch.setattr(
        "podlife.events.correlator.CorrelatorSettings", partial(CorrelatorSettings, remembered=20)
    )
    monkeypatch.setattr("podlife.apiserver.storage.store.HistoryLimits", partial(HistoryLimits, events=200))


@pytest.mark.usefixtures("_small_bounds")
@virtual_time
async def test_pods_that_are_gone_leave_nothing_behind_beyond_the_bounds() -> None:
    async with Cluster(nodes=2) as cluster, observed(cluster) as seen:
        registry = cluster._inside.server.handler.registry
        async with at_work(EventExpiry(registry, 60).run):
            found: list[Counter[str]] = []
            for start in (0, 30, 60):
                await churn(cluster, 30, start)
                gc.collect()
                found.append(of_podlife())
            # After the first stretch all that is bounded is full.
            _, before, after = found
            assert (await cluster.client.list(EVENTS)).items == []
            assert len(seen.all("p")) == 10
            assert {name: count for name, count in (after - before).items() if count >= 30} == {}
