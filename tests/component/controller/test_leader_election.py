"""Who leads, when, and what stands in the Lease: on the embedded server, under virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object
from podlife.client import EVENTS, LEASES, Client
from podlife.clock import Clock, ManualClock
from podlife.controller import LeaderElector, LeaseLostError, make_identity
from podlife.controller.leader_election import claim, renew
from podlife.errors import ApiError, ConfigError
from podlife.events import Recorder
from podlife.testing import LoopClock
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import Disturbance, connect, refusal, start
from tests.kit.worlds import in_world


def now() -> float:
    return asyncio.get_running_loop().time()


class Candidate:
    """An elector whose work is to note when it is done."""

    def __init__(
        self, client: Client, identity: str, *, work_ends_after: float = 0.0, **settings: Any
    ) -> None:
        self.elector = LeaderElector(
            client, "kube-system", "gc", identity, clock=settings.pop("clock", LoopClock()), **settings
        )
        self.terms: list[list[float]] = []
        self.work_ends_after = work_ends_after
        self.task = asyncio.get_running_loop().create_task(self.elector.run(self.work))

    async def work(self) -> None:
        self.terms.append([now()])
        try:
            await asyncio.sleep(1_000_000)
        finally:
            if self.work_ends_after:
                await asyncio.sleep(self.work_ends_after)
            self.terms[-1].append(now())

    async def stop(self) -> None:
        await cancel_and_wait(self.task, seconds=100)


class Election:
    """A server, and the candidates of one lease on it; those that are left at the end of a test are stopped."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.client = connect(handler)
        self._candidates: list[Candidate] = []

    def candidate(self, identity: str, disturb: Disturbance | None = None, **settings: Any) -> Candidate:
        client = self.client if disturb is None else connect(self.handler, disturb)
        made = Candidate(client, identity, **settings)
        self._candidates.append(made)
        return made

    async def lease(self) -> Object:
        return await self.client.get(LEASES, "gc", "kube-system")

    async def spec(self) -> Object:
        return (await self.lease())["spec"]

    async def end(self) -> None:
        for each in reversed(self._candidates):
            await each.stop()


@asynccontextmanager
async def election() -> AsyncIterator[Election]:
    made = Election(await start())
    try:
        yield made
    finally:
        await made.end()


electing = in_world(election, "election")


class Stall:
    """Lets requests through until it is switched: then they hang, before or after the server has seen them, or answers
    to writes come after 4.9 seconds."""

    def __init__(self) -> None:
        self.before = self.after = self.is_late = False

    async def __call__(self, request: Request, handler: Handler) -> Response:
        if self.before:
            await asyncio.sleep(1_000_000)
        response = await handler(request)
        if self.after:
            await asyncio.sleep(1_000_000)
        if self.is_late and request.method == "PUT":
            await asyncio.sleep(4.9)
        return response


@electing
async def test_the_first_makes_the_lease_and_leads_at_once(election: Election) -> None:
    one = election.candidate("one")
    await asyncio.sleep(1)
    assert one.elector.is_leader
    assert (await election.spec()) == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2030-01-01T00:00:00.000000Z",
        "renewTime": "2030-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


@electing
async def test_the_leader_renews_every_two_seconds_and_changes_nothing_else(election: Election) -> None:
    election.candidate("one")
    await asyncio.sleep(21)
    spec = await election.spec()
    assert spec["renewTime"] == "2030-01-01T00:00:20.000000Z"
    assert spec["acquireTime"] == "2030-01-01T00:00:00.000000Z"
    assert spec["leaseTransitions"] == 0


@electing
async def test_a_leader_that_stops_gives_the_lease_back_and_the_next_need_not_wait_for_it_to_run_out(
    election: Election,
) -> None:
    one, two = election.candidate("one"), election.candidate("two")
    await asyncio.sleep(60)
    await one.stop()
    released = await election.spec()
    assert (released["holderIdentity"], released["leaseDurationSeconds"]) == ("", 1)
    await asyncio.sleep(2 * 2.2 + 0.1)
    assert two.elector.is_leader
    spec = await election.spec()
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("two", 1)
    assert spec["acquireTime"] > "2030-01-01T00:01:00"


@electing
async def test_a_leader_that_dies_is_followed_after_the_lease_has_run_out_and_not_before(
    election: Election,
) -> None:
    stall = Stall()
    one, two = election.candidate("one", stall), election.candidate("two")
    await asyncio.sleep(61)
    stall.before = True
    one.task.cancel()
    await asyncio.sleep(100)
    last_renewal = 60.0
    # It saw the last renewal at some time after it was made, and looks again every few seconds.
    assert last_renewal + 15 <= two.terms[0][0] <= last_renewal + 15 + 3 * 4.4


@electing
async def test_a_leader_cut_off_stops_its_work_within_the_renew_deadline_and_before_the_next_begins(
    election: Election,
) -> None:
    stall = Stall()
    one, two = election.candidate("one", stall), election.candidate("two")
    await asyncio.sleep(61)
    stall.before = True
    with pytest.raises(LeaseLostError, match=r"lease kube-system/gc was not renewed for 10 s"):
        await one.task
    assert one.terms == [[0, 70]]
    assert not one.elector.is_leader
    await asyncio.sleep(60)
    assert two.terms[0][0] >= 75


@electing
async def test_work_that_does_not_end_is_told_and_does_not_hold_up_the_loss(
    election: Election, caplog: pytest.LogCaptureFixture
) -> None:
    stall = Stall()
    one = election.candidate("one", stall, work_ends_after=1000)
    await asyncio.sleep(61)
    stall.before = True
    with pytest.raises(LeaseLostError):
        await one.task
    assert now() == pytest.approx(75)
    assert "its work does not stop" in caplog.text
    await asyncio.sleep(2000)


@electing
async def test_while_work_ends_after_a_stop_the_lease_is_still_renewed(election: Election) -> None:
    one, two = election.candidate("one", work_ends_after=60), election.candidate("two")
    await asyncio.sleep(10)
    await one.stop()
    assert one.terms == [[0, 70]]
    await asyncio.sleep(10)
    assert two.terms[0][0] > 70


@electing
async def test_answers_that_take_almost_half_the_renew_deadline_do_not_cost_the_lease(
    election: Election,
) -> None:
    stall = Stall()
    one, two = election.candidate("one", stall), election.candidate("two")
    await asyncio.sleep(61)
    stall.is_late = True
    await asyncio.sleep(600)
    assert (one.terms, two.terms) == ([[0]], [])


@electing
async def test_an_answer_that_comes_late_does_not_prolong_the_lease(election: Election) -> None:
    """client-go counts from the answer, and would work on until almost 17 seconds after the write."""
    stall = Stall()
    one, two = election.candidate("one", stall), election.candidate("two")
    await asyncio.sleep(61)
    stall.is_late = True
    await asyncio.sleep(2)
    stall.before = True
    with pytest.raises(LeaseLostError):
        await one.task
    assert one.terms == [[0, 72]], "the write that was answered late began at 62"
    await asyncio.sleep(60)
    assert two.terms[0][0] >= 77


@electing
async def test_a_renewal_whose_answer_is_lost_is_gone_on_with(election: Election) -> None:
    stall = Stall()
    one = election.candidate("one", stall)
    await asyncio.sleep(61)
    stall.after = True
    await asyncio.sleep(4)
    stall.after = False
    await asyncio.sleep(60)
    assert one.elector.is_leader
    assert (await election.spec())["leaseTransitions"] == 0
    assert one.terms == [[0]]
    await one.stop()
    assert (await election.spec())["holderIdentity"] == ""


@electing
async def test_a_lease_whose_last_renewal_got_no_answer_is_given_back_too(election: Election) -> None:
    stall = Stall()
    one = election.candidate("one", stall)
    await asyncio.sleep(61)
    stall.after = True
    await asyncio.sleep(1.5)
    stall.after = False
    await one.stop()
    assert (await election.spec())["holderIdentity"] == ""


@electing
async def test_a_leader_that_sees_another_in_its_lease_stops_at_once(election: Election) -> None:
    one = election.candidate("one")
    await asyncio.sleep(61)
    found = await election.lease()
    found["spec"]["holderIdentity"] = "usurper"
    await election.client.update(LEASES, found)
    with pytest.raises(LeaseLostError, match="was taken by usurper"):
        await one.task
    assert one.terms == [[0, 62]]
    assert (await election.spec())["holderIdentity"] == "usurper"


@electing
async def test_another_change_to_the_lease_object_does_not_disturb_its_holder(election: Election) -> None:
    one, _ = election.candidate("one"), election.candidate("two")
    for _ in range(20):
        await asyncio.sleep(1.5)
        await election.client.patch(
            LEASES, "gc", {"metadata": {"labels": {"at": f"{now():.0f}"}}}, "kube-system"
        )
    assert one.terms == [[0]]
    assert (await election.lease())["metadata"]["labels"] == {"at": "30"}


@electing
async def test_a_lease_deleted_under_its_holder_is_made_anew(election: Election) -> None:
    one = election.candidate("one")
    await asyncio.sleep(61)
    await election.client.delete(LEASES, "gc", "kube-system")
    await asyncio.sleep(3)
    assert (await election.spec())["holderIdentity"] == "one"
    assert one.terms == [[0]]


@pytest.mark.parametrize(
    "clock",
    [LoopClock(off_seconds=-86_400), LoopClock(off_seconds=86_400), ManualClock()],
    ids=["a day late", "a day early", "stands still"],
)
@electing
async def test_the_clock_of_the_other_is_not_trusted(election: Election, clock: Clock) -> None:
    one, two = election.candidate("one", clock=clock), election.candidate("two")
    await asyncio.sleep(300)
    assert (one.terms, two.terms) == ([[0]], [])
    await one.stop()
    await asyncio.sleep(10)
    assert two.elector.is_leader


@pytest.mark.parametrize(("promise", "seconds"), [({}, 15), ({"leaseDurationSeconds": 120}, 120)])
@electing
async def test_the_duration_that_the_holder_promised_counts_and_ours_where_it_promised_none(
    election: Election, promise: Object, seconds: int
) -> None:
    body = {"metadata": {"name": "gc"}, "spec": {"holderIdentity": "slow", **promise}}
    await election.client.create(LEASES, body, "kube-system")
    one = election.candidate("one")
    await asyncio.sleep(180)
    assert seconds <= one.terms[0][0] <= seconds + 5
    assert (await election.spec())["leaseDurationSeconds"] == 15


@electing
async def test_who_comes_back_under_its_name_takes_its_lease_again_at_once(election: Election) -> None:
    stall = Stall()
    one = election.candidate("one", stall)
    await asyncio.sleep(61)
    stall.before = True
    one.task.cancel()
    await asyncio.sleep(0.1)
    again = election.candidate("one")
    await asyncio.sleep(0.1)
    assert again.elector.is_leader
    spec = await election.spec()
    assert (spec["leaseTransitions"], spec["acquireTime"]) == (0, "2030-01-01T00:00:00.000000Z")


@electing
async def test_a_server_that_is_ill_for_less_than_the_renew_deadline_costs_nothing(
    election: Election,
) -> None:
    is_ill = False

    async def on_the_way(request: Request, handler: Handler) -> Response:
        return refusal(500, "InternalError") if is_ill else await handler(request)

    one = election.candidate("one", on_the_way)
    for _ in range(5):
        await asyncio.sleep(21)
        is_ill = True
        await asyncio.sleep(7)
        assert "no: 500" in one.elector.complaint
        is_ill = False
    await asyncio.sleep(3)
    assert one.elector.complaint == ""
    assert one.terms == [[0]]


@electing
async def test_a_busy_controller_does_not_lose_its_lease_behind_its_own_requests(election: Election) -> None:

    async def on_the_way(request: Request, handler: Handler) -> Response:
        if request.path.endswith("/pods"):
            await asyncio.sleep(59)
        return await handler(request)

    client = connect(election.handler, on_the_way, timeout_seconds=600)
    one = Candidate(client, "one")
    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(client.request("GET", "/api/v1/pods"))
    assert now() > 150
    assert one.terms == [[0]]
    await one.stop()


@electing
async def test_when_the_work_ends_by_itself_the_lease_is_given_back(election: Election) -> None:
    elector = LeaderElector(election.client, "kube-system", "gc", "one", clock=LoopClock())

    async def work() -> None:
        await asyncio.sleep(5)

    await elector.run(work)
    assert now() == 5
    assert (await election.spec())["holderIdentity"] == ""
    assert elector.leader == ""


@electing
async def test_what_the_work_fails_with_is_raised_and_the_lease_is_given_back(election: Election) -> None:
    elector = LeaderElector(election.client, "kube-system", "gc", "one", clock=LoopClock())

    async def work() -> None:
        raise ApiError("the work failed")

    with pytest.raises(ApiError, match="the work failed"):
        await elector.run(work)
    assert (await election.spec())["holderIdentity"] == ""


@electing
async def test_an_elector_that_lost_its_lease_may_run_again(election: Election) -> None:
    stall = Stall()
    one = election.candidate("one", stall)
    await asyncio.sleep(61)
    stall.before = True
    with pytest.raises(LeaseLostError):
        await one.task
    stall.before = False
    one.task = asyncio.get_running_loop().create_task(one.elector.run(one.work))
    await asyncio.sleep(1)
    assert one.terms == [[0, 70], [70]]


@electing
async def test_a_server_that_forbids_it_is_asked_again_and_the_reason_is_told_once(
    election: Election, caplog: pytest.LogCaptureFixture
) -> None:
    is_forbidden = True

    async def on_the_way(request: Request, handler: Handler) -> Response:
        return refusal(403, "Forbidden") if is_forbidden else await handler(request)

    one = election.candidate("one", on_the_way)
    await asyncio.sleep(60)
    assert one.elector.complaint == "no: 403"
    assert [record.message for record in caplog.records] == ["lease kube-system/gc: no: 403"]
    is_forbidden = False
    await asyncio.sleep(5)
    assert one.elector.is_leader


@electing
async def test_leaders_are_told_of_and_recorded_as_events(election: Election) -> None:
    recorder = Recorder(election.client, "podlife-gc", clock=LoopClock())
    recording = asyncio.get_running_loop().create_task(recorder.run())
    told: list[str] = []
    one = election.candidate("one", recorder=recorder)
    two = election.candidate("two", on_new_leader=told.append)
    await asyncio.sleep(10)
    await one.stop()
    await asyncio.sleep(10)
    await two.stop()
    events = (await election.client.list(EVENTS, "kube-system")).items
    assert [(event["reason"], event["message"]) for event in events] == [
        ("LeaderElection", "one became leader"),
        ("LeaderElection", "one stopped leading"),
    ]
    assert events[0]["involvedObject"]["kind"] == "Lease"
    assert told == ["one", "two"]
    await cancel_and_wait(recording)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"identity": ""}, "identity"),
        ({"renew_seconds": 15}, "lease duration"),
        ({"retry_seconds": 9}, "renew deadline"),
        ({"retry_seconds": 0}, "retry period"),
    ],
)
def test_times_that_cannot_work_together_are_refused(settings: dict[str, Any], why: str) -> None:
    async def nobody(request: Request) -> Response:
        raise AssertionError

    settings = {"identity": "one", **settings}
    with pytest.raises(ConfigError, match=why):
        LeaderElector(connect(nobody), "ns", "gc", clock=LoopClock(), **settings)


def test_identities_differ() -> None:
    assert make_identity() != make_identity()


# A lease as somebody may have left it, at the ends of what the API holds: it can still be taken and renewed


NOW = datetime(2030, 1, 1, tzinfo=UTC)
LAST = "9999-12-31T23:59:59.999999Z"


def test_a_lease_that_changed_hands_as_often_as_can_be_counted_is_taken() -> None:
    old = {"holderIdentity": "b", "leaseTransitions": 2**31 - 1}
    assert claim(old, "a", 15.0, NOW)["leaseTransitions"] == 2**31 - 1


def test_a_lease_renewed_at_the_end_of_time_is_renewed_with_another_time() -> None:
    renewed = renew({"holderIdentity": "a", "renewTime": LAST}, NOW)
    assert renewed["renewTime"] != LAST
    assert renew(renewed, NOW)["renewTime"] != renewed["renewTime"]
