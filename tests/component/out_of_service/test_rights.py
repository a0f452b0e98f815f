"""The rights in `deploy/controllers` beside what out-of-service asks for: none is missing, and none is too much. That a
server which enforces them is content, and not without any of them, is for `tests/real`."""

from __future__ import annotations

from podlife.client import PODS
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.out_of_service.world import LAX, NAME, Fence, Making, cluster_with
from tests.component.stories.objects import pod
from tests.component.workloads.test_rights import Right, granted, right_of


@virtual_time
async def test_it_may_do_what_it_asks_for_and_nothing_else() -> None:
    seen = set[Right]()

    async def note(request: Request, onwards: Handler) -> Response:
        if (right := right_of(request)) is not None:
            seen.add(right)
        return await onwards(request)

    making = Making(LAX, Fence("n1"))
    async with cluster_with(making) as cluster:
        faults = cluster.controllers.faults(NAME)
        faults.disturb = note
        faults.break_watches()
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        await cluster.node("n1").power_off()
        await cluster.advance(minutes=3)
        await cluster.node("n1").start()
        await cluster.advance(minutes=4)
        assert (making.controller.metrics.tainted, making.controller.metrics.removed.total()) == (1, 1)
    allowed = granted()[NAME]
    assert seen - allowed == set(), "missing"
    # What was listed before anybody looked; and an event is patched when it comes again.
    assert allowed - seen <= {("list", "nodes"), ("list", "leases.coordination.k8s.io"), ("patch", "events")}
