"""The collector's numbers as Prometheus reads them."""

from __future__ import annotations

from podlife.client import Client, InProcessTransport
from podlife.clock import ManualClock
from podlife.controller import export_client
from podlife.events import Recorder
from podlife.podgc import Collector, Reason
from podlife.podgc.prometheus import GcMetrics
from podlife.wire import Request, Response


async def _refuse(_: Request) -> Response:
    raise AssertionError("numbers are read, nothing is asked for")


async def test_every_number_has_its_name_and_upstreams_names_are_kept() -> None:
    from prometheus_client import CollectorRegistry

    client = Client(InProcessTransport(_refuse))
    recorder = Recorder(client, "podlife-gc", clock=ManualClock())
    collector = Collector(client, recorder=recorder)
    registry = CollectorRegistry()
    registry.register(GcMetrics(collector))
    export_client(registry, client.limiter, recorder)
    collector.metrics.deleted["ns", Reason.ORPHANED] += 3
    collector.metrics.errors["ns", Reason.TERMINATED] += 1
    collector.metrics.reaction_seconds.observe(0.02)

    read = registry.get_sample_value
    orphaned, terminated = (
        {"namespace": "ns", "reason": "orphaned"},
        {"namespace": "ns", "reason": "terminated"},
    )
    assert read("pod_gc_collector_force_delete_pods_total", orphaned) == 3
    assert read("pod_gc_collector_force_delete_pod_errors_total", terminated) == 1
    assert read("podlife_gc_reaction_seconds_bucket", {"le": "0.01"}) == 0
    assert read("podlife_gc_reaction_seconds_bucket", {"le": "0.025"}) == 1
    assert read("podlife_gc_reaction_seconds_count") == 1
    assert read("podlife_gc_pass_seconds_count") == 0
    assert read("podlife_gc_live") == 0
    assert read("podlife_client_limit") == client.limiter.state.limit
    assert read("podlife_events_total", {"result": "dropped"}) == 0
    for name in ("pods", "nodes", "terminated_pods", "terminating_pods", "missing_nodes", "held_pods"):
        assert read(f"podlife_gc_{name}") == 0
