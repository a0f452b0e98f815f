"""Several controllers in one process: what they share, when they begin, and what ends them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from podlife.aio import spawn
from podlife.api.views import MetadataOnly
from podlife.client import EVENTS, PODS, REPLICA_SETS, DeleteOptions
from podlife.controller import ControlPlane
from podlife.controller.control_plane import OutageLog
from podlife.errors import ForbiddenError, UnreachableError
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import Disturbance, connect, refusal, start, stream_of
from tests.kit.objects import pod
from tests.kit.worlds import in_world
from tests.workloads.runs import at_work


@asynccontextmanager
async def control_plane(disturb: Disturbance | None = None) -> AsyncIterator[ControlPlane]:
    async with connect(await start(), disturb) as client:
        yield ControlPlane(client, clock=LoopClock())


on_a_plane = in_world(control_plane, "plane")


class Controller:
    """Notes when it is started."""

    def __init__(self, name: str = "a", then: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.started_at: float | None = None
        self._then = then

    async def run(self) -> None:
        self.started_at = asyncio.get_running_loop().time()
        self._then()
        await asyncio.get_running_loop().create_future()


class Other(MetadataOnly):
    """Another view."""


@on_a_plane
async def test_the_same_view_of_the_same_resource_is_followed_once(plane: ControlPlane) -> None:
    informer = plane.informer(PODS, view=MetadataOnly)
    assert plane.informer(PODS, view=MetadataOnly) is informer
    assert plane.informer(PODS, view=Other) is not informer
    assert plane.informer(REPLICA_SETS, view=MetadataOnly) is not informer
    assert plane.recorder("a") is plane.recorder("a")
    assert plane.recorder("a") is not plane.recorder("b")


@on_a_plane
async def test_other_indexes_on_what_is_followed_already_are_refused(plane: ControlPlane) -> None:
    plane.informer(PODS, view=MetadataOnly)
    with pytest.raises(ValueError, match="the informer of pods as MetadataOnly has other indexes already"):
        plane.informer(PODS, view=MetadataOnly, indexers={"name": lambda pod: (pod.metadata.name,)})


@virtual_time
async def test_no_controller_begins_before_every_cache_has_synced() -> None:
    async def slow(request: Request, to_server: Handler) -> Response:
        if request.path.endswith("/replicasets"):
            await asyncio.sleep(40)
        return await to_server(request)

    async with control_plane(slow) as plane:
        plane.informer(PODS, view=MetadataOnly)
        plane.informer(REPLICA_SETS, view=MetadataOnly)
        controllers = [Controller("a"), Controller("b")]
        for controller in controllers:
            plane.add(controller)
        async with at_work(plane.run):
            await asyncio.sleep(30)
            assert plane.complaint == "the cache of replicasets.apps is not synced"
            assert [each.started_at for each in controllers] == [None, None]
            await asyncio.sleep(30)
            assert plane.complaint == ""
            assert all(each.started_at is not None and each.started_at >= 40 for each in controllers)


@on_a_plane
async def test_what_ends_a_controller_ends_all_of_it_with_its_reason(plane: ControlPlane) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    plane.informer(PODS, view=MetadataOnly)
    plane.add(Controller("a"))
    plane.add(Controller("b", then=fail))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        async with asyncio.timeout(60):
            await plane.run()


@virtual_time
async def test_a_server_that_refuses_to_be_followed_ends_it_before_anything_begins() -> None:
    async def refusing(request: Request, to_server: Handler) -> Response:
        return refusal(403, "Forbidden") if request.path.endswith("/pods") else await to_server(request)

    async with control_plane(refusing) as plane:
        plane.informer(PODS, view=MetadataOnly)
        controller = Controller()
        plane.add(controller)
        with pytest.raises(ForbiddenError) as failure:
            async with asyncio.timeout(600):
                await plane.run()
        assert controller.started_at is None
        # The last line of a traceback says what it was that is refused.
        assert failure.value.__notes__ == ["the informer of pods ended with this"]


@virtual_time
async def test_of_several_refusals_the_first_is_raised_and_notes_the_others() -> None:
    arrived = 0

    async def refusing(request: Request, to_server: Handler) -> Response:
        nonlocal arrived
        arrived += 1
        # Until the other one is there: both are refused in the same moment.
        while arrived < 2:
            await asyncio.sleep(0)
        return refusal(403, "Forbidden")

    async with control_plane(refusing) as plane:
        plane.informer(PODS, view=MetadataOnly)
        plane.informer(REPLICA_SETS, view=MetadataOnly)
        with pytest.raises(ForbiddenError) as failure:
            async with asyncio.timeout(600):
                await plane.run()
        first, other = failure.value.__notes__
        assert first.startswith("the informer of ")
        assert other.startswith("and at the same time: ")


@on_a_plane
async def test_bugs_that_came_together_are_raised_together(plane: ControlPlane) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    for name in "ab":
        plane.add(Controller(name, then=fail))
    with pytest.raises(ExceptionGroup) as failure:
        async with asyncio.timeout(60):
            await plane.run()
    assert failure.group_contains(ZeroDivisionError, match="a bug")


@on_a_plane
async def test_a_handler_that_fails_on_one_object_is_named_and_ends_nothing(
    plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    class Choosy:
        def on_add(self, obj: MetadataOnly) -> None:
            if obj.metadata.name == "odd":
                raise KeyError("spec")
            told.append(f"+{obj.metadata.name}")

        def on_update(self, old: MetadataOnly, new: MetadataOnly) -> None: ...

        def on_delete(self, obj: MetadataOnly) -> None:
            told.append(f"-{obj.metadata.name}")

    informer = plane.informer(PODS, view=MetadataOnly)
    informer.add_handler(Choosy())
    informer.add_handler(Choosy())
    plane.add(Controller())
    async with at_work(plane.run):
        for name in ("odd", "well"):
            await plane.client.create(PODS, pod(name), "default")
        await asyncio.sleep(1)
        await plane.client.delete(PODS, "odd", "default", options=DeleteOptions(grace_period_seconds=0))
        await asyncio.sleep(1)
        assert plane.complaint == ""
    assert told == ["+well", "+well", "-odd", "-odd"]
    assert informer.stats.handler_failures == 2
    lines = [each.getMessage() for each in caplog.records if "handler" in each.getMessage()]
    assert len(lines) == 2
    assert "Choosy failed on added of pods default/odd (UID " in lines[0]


@on_a_plane
async def test_what_was_told_by_the_end_is_written(plane: ControlPlane) -> None:
    recorder = plane.recorder("a")
    about = {"kind": "Pod", "namespace": "default", "name": "web", "uid": "u-1", "apiVersion": "v1"}
    plane.add(Controller(then=lambda: recorder.event(about, "Normal", "Begun", "It has begun.")))
    async with at_work(plane.run):
        await asyncio.sleep(0)
    [event] = (await plane.client.list(EVENTS, "default")).items
    assert (event["reason"], event["source"]["component"]) == ("Begun", "a")


@on_a_plane
async def test_a_part_of_a_resource_is_followed_by_itself(plane: ControlPlane) -> None:
    for name, labels in (("a", {"warm": ""}), ("b", {})):
        await plane.client.create(PODS, pod(name, metadata={"labels": labels}), "default")
    everything = plane.informer(PODS, view=MetadataOnly)
    warm = plane.informer(PODS, view=MetadataOnly, label_selector="warm")
    elsewhere = plane.informer(PODS, view=MetadataOnly, namespace="kube-system")
    assert len(plane.all_informers) == 3
    async with at_work(plane.run):
        await asyncio.sleep(1)
        assert [len(each.cache) for each in (everything, warm, elsewhere)] == [2, 1, 0]


class Blind(Controller):
    """Has caches of its own."""

    complaint = "its caches are not synced"


@on_a_plane
async def test_it_says_why_it_is_not_at_work(plane: ControlPlane) -> None:
    blind = Blind("blind")
    plane.informer(PODS, view=MetadataOnly)
    plane.add(Controller())
    plane.add(blind)
    assert plane.complaint == "the cache of pods is not synced"
    async with at_work(plane.run):
        await asyncio.sleep(1)
        assert plane.complaint == "blind: its caches are not synced"
        blind.complaint = ""
        assert plane.complaint == ""


def test_an_outage_is_told_once_reminded_of_ever_more_rarely_and_its_end_is_told() -> None:
    outage = OutageLog()
    told = [(at, said) for at in range(1000) if (said := outage.update("no" if 10 <= at < 500 else "", at))]
    assert [(at, level) for at, (level, _) in told] == [
        (11, logging.WARNING),
        (70, logging.WARNING),
        (130, logging.WARNING),
        (250, logging.WARNING),
        (490, logging.WARNING),
        (500, logging.INFO),
    ]
    assert told[-1][1][1] == "API server reachable again after 490 s"


def test_an_interruption_that_is_over_at_the_next_look_is_not_told() -> None:
    outage = OutageLog()
    assert [outage.update(complaint, at) for at, complaint in enumerate(("", "no", "", "no", ""))] == [
        None
    ] * 5


@virtual_time
async def test_a_server_that_is_away_costs_one_line_however_many_informers_there_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_away = False

    async def away(request: Request, to_server: Handler) -> Response:
        if is_away:
            raise UnreachableError("cannot connect")
        response = await to_server(request)
        if "watch" in request.query:
            response.body = cut(stream_of(response))
        return response

    async def cut(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """As long as the server is there."""

        async def read() -> bytes:
            return await anext(body)

        def reading() -> asyncio.Task[bytes]:
            return spawn(read(), name="watch", on_failure=lambda _: None)

        pending = reading()
        try:
            while not is_away:
                await asyncio.wait((pending,), timeout=0.5)
                if pending.done():
                    yield pending.result()
                    pending = reading()
            raise UnreachableError("cannot connect")
        finally:
            pending.cancel()

    async with control_plane(away) as plane:
        for ref in (PODS, REPLICA_SETS, EVENTS):
            plane.informer(ref, view=MetadataOnly)
        plane.add(Controller())
        caplog.set_level(logging.INFO, "podlife")
        async with at_work(plane.run):
            await asyncio.sleep(10)
            is_away = True
            await asyncio.sleep(30)
            is_away = False
            await asyncio.sleep(60)
            assert plane.complaint == ""
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "INFO"]
    running, lost, found = caplog.messages
    assert running == "running: a"
    assert lost.startswith("API server unreachable, controllers paused: pods: cannot connect")
    assert found.startswith("API server reachable again after ")
