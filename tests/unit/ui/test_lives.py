"""Lives over time: states, marks, predictions and their outcome, from objects as a server sends them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from podlife.api.codec import encode, format_time
from podlife.api.views import MetadataOnly
from podlife.client.watch import EventType, WatchEvent
from podlife.diagnosis import acting_rules
from podlife.informer.cache import Added, Cache
from podlife.ui import ended
from podlife.ui.life import MOST_MARKS, NodeLife, PodLife, milliseconds
from podlife.ui.lives import Lives
from podlife.ui.views import SeenEvent, SeenJob, SeenLease, SeenNode, SeenPod
from tests.unit.explain.objects import NOW, a_node, a_pod, ago, an_event, deleted

Object = dict[str, Any]
RUNNING = {"running": {"startedAt": ago(minutes=59)}}


def at(**length: float) -> datetime:
    return NOW + timedelta(**length)


def ms(**length: float) -> int:
    return milliseconds(at(**length))


class World:
    """Lives, with objects put in as dictionaries."""

    def __init__(self) -> None:
        self.lives = Lives(acting_rules())

    def pod(self, obj: Object, now: datetime = NOW) -> PodLife:
        self.lives.put_pod(msgspec.json.decode(encode(obj), type=SeenPod), now)
        self.pass_to(now)
        life = self.lives.get(obj["metadata"]["uid"])
        assert isinstance(life, PodLife)
        return life

    def node(self, obj: Object, now: datetime = NOW) -> NodeLife:
        self.lives.put_node(msgspec.json.decode(encode(obj), type=SeenNode), now)
        self.pass_to(now)
        life = self.lives.get(obj["metadata"]["uid"])
        assert isinstance(life, NodeLife)
        return life

    def event(self, obj: Object, namespace: str = "shop") -> None:
        """About the pod shop/web, unless the event says otherwise."""
        about = {"namespace": "shop", **obj["involvedObject"]}
        event = {**obj, "metadata": {"name": "e", "namespace": namespace}, "involvedObject": about}
        self.lives.put_event(msgspec.convert(event, SeenEvent), NOW)

    def lease(self, now: datetime) -> None:
        """That of n1, renewed now."""
        lease = {"metadata": {"name": "n1"}, "spec": {"renewTime": format_time(now)}}
        self.lives.put_lease(msgspec.convert(lease, SeenLease), now)
        self.pass_to(now)

    def gone(self, obj: Object, now: datetime) -> None:
        self.lives.drop_pod(msgspec.json.decode(encode(obj), type=SeenPod), now)

    def pass_to(self, now: datetime) -> None:
        while self.lives.settle(now, 1):
            pass


@pytest.fixture
def world() -> World:
    world = World()
    world.node(a_node())
    return world


def ready_pod(**metadata: Any) -> Object:
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(minutes=59, seconds=50)},
        {"type": "Ready", "status": "True", "lastTransitionTime": ago(minutes=59)},
    ]
    status = {
        "conditions": conditions,
        "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "state": RUNNING}],
    }
    return a_pod(status=status, **metadata)


def kinds(life: PodLife | NodeLife) -> list[str]:
    return [mark[1] for mark in life.marks]


def open_predictions(life: PodLife) -> list[tuple[str, str]]:
    return [(each.who, each.state) for each in life.next if each.until is None]


# States


def test_a_pod_that_existed_before_has_the_states_that_its_conditions_tell(world: World) -> None:
    life = world.pod(ready_pod())
    assert life.segs == [
        (ms(hours=-1), "pending"),
        (ms(minutes=-59, seconds=-50), "starting"),
        (ms(minutes=-59), "ready"),
    ]
    assert (life.start, life.to, life.ready, life.stage) == (ms(hours=-1), None, "1/1", "running and ready")
    assert kinds(life)[0] == "created"
    assert {"scheduled", "started"} <= set(kinds(life))


def test_a_pod_that_was_ready_and_ended_is_shown_ready_until_then(world: World) -> None:
    ended = {"terminated": {"startedAt": ago(minutes=50), "finishedAt": ago(minutes=10), "exitCode": 0}}
    status = {
        "phase": "Succeeded",
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(minutes=10)}],
        "containerStatuses": [{"name": "main", "state": ended}],
    }
    life = world.pod(a_pod(status=status))
    assert [state for _, state in life.segs] == ["pending", "ready", "succeeded"]
    assert life.segs[-1][0] == ms(minutes=-10)


def test_each_change_that_is_seen_is_a_state_from_then_on(world: World) -> None:
    world.pod(a_pod(spec={"nodeName": ""}, status={"phase": "Pending"}, creationTimestamp=ago(seconds=1)))
    world.pod(a_pod(status={"phase": "Pending"}), at(seconds=1))
    world.pod(ready_pod(), at(seconds=3))
    life = world.pod(ready_pod(), at(seconds=5))
    assert life.segs == [
        (ms(seconds=-1), "pending"),
        (ms(seconds=1), "starting"),
        (ms(seconds=3), "ready"),
    ]


def test_init_containers_and_failed_probes_have_states_of_their_own(world: World) -> None:
    starting = {"phase": "Pending", "initContainerStatuses": [{"name": "first", "ready": False}]}
    assert world.pod(a_pod(status=starting)).state == "init"
    unready = {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(seconds=5)}]}
    assert world.pod(a_pod(status=unready), at(seconds=1)).state == "unready"


def test_a_pod_recreated_under_its_name_is_a_second_life(world: World) -> None:
    world.pod(ready_pod())
    world.gone(ready_pod(), at(seconds=1))
    second = world.pod(ready_pod(uid="u-2"), at(seconds=2))
    first = world.lives.get("u-1")
    assert first is not None
    assert (first.to, first.name) == (ms(seconds=1), second.name)
    assert second.to is None


def test_news_of_a_pod_that_is_gone_does_not_bring_it_back(world: World) -> None:
    world.pod(ready_pod())
    world.gone(ready_pod(), at(seconds=1))
    life = world.pod(ready_pod(), at(seconds=2))
    assert life.to == ms(seconds=1)


# A deletion, step by step


def test_a_deletion_is_marked_step_by_step(world: World) -> None:
    hook = {"name": "main", "image": "i", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}
    plain = {"name": "side", "image": "i"}
    pod = ready_pod(**deleted(30, seconds=0))
    pod["spec"]["containers"] = [hook, plain]
    life = world.pod(pod)
    assert (life.state, life.deleted, life.grace) == ("terminating", ms(), 30)
    for name in ("main", "side"):
        path = f"spec.containers{{{name}}}"
        world.event(an_event("Killing", f"Stopping container {name}", minutes=-0.02, fieldPath=path))
    world.pass_to(at(seconds=31))
    world.gone(pod, at(seconds=32))
    steps = [kind for kind in kinds(life) if kind in ("delete", "prestop", "term", "kill", "gone")]
    assert steps == ["delete", "prestop", "term", "kill", "gone"]
    assert "grace 30 s" in next(mark[2] for mark in life.marks if mark[1] == "delete")


def test_a_pod_that_ends_at_once_still_shows_the_grace_it_was_given(world: World) -> None:
    world.pod(ready_pod())
    for grace in (30, 0):
        last = ready_pod(deletionTimestamp=format_time(at(seconds=grace)), deletionGracePeriodSeconds=grace)
        world.lives.put_pod(msgspec.json.decode(encode(last), type=SeenPod), NOW)
    world.gone(last, NOW)
    life = world.lives.get(last["metadata"]["uid"])
    assert isinstance(life, PodLife)
    assert life.grace == 30
    deletes = [text for _, kind, text, _ in life.marks if kind == "delete"]
    assert "grace 30 s" in deletes[0], deletes


def test_a_container_that_was_killed_in_its_grace_is_marked_as_killed(world: World) -> None:
    ended = {"terminated": {"finishedAt": format_time(at(seconds=2)), "exitCode": 137}}
    pod = ready_pod(**deleted(30, seconds=0))
    pod["status"]["containerStatuses"][0]["state"] = ended
    assert "kill" in kinds(world.pod(pod, at(seconds=3)))


def test_a_kill_is_marked_though_the_last_delete_of_the_node_comes_at_once(world: World) -> None:
    world.pod(ready_pod(**deleted(4, seconds=0)))
    for grace in (4, 0):
        asked = {"deletionTimestamp": format_time(at(seconds=5)), "deletionGracePeriodSeconds": grace}
        last = ready_pod(**(deleted(4, seconds=0) if grace else asked))
        ended = {"terminated": {"finishedAt": format_time(at(seconds=4)), "exitCode": 137}}
        last["status"]["containerStatuses"][0]["state"] = ended
        world.lives.put_pod(msgspec.json.decode(encode(last), type=SeenPod), at(seconds=5))
    world.gone(last, at(seconds=5))
    life = world.lives.get("u-1")
    assert isinstance(life, PodLife)
    assert "kill" in kinds(life)


def test_who_is_waited_for_is_said_while_a_pod_terminates(world: World) -> None:
    life = world.pod(ready_pod(**deleted(30, seconds=0)))
    assert "inside its grace of 30 s" in life.waits
    assert len(life.stuck) == 0
    world.pass_to(at(seconds=70))
    assert life.stuck == "agent-does-not-end-it"


def test_a_pod_that_only_finalizers_keep_is_held(world: World) -> None:
    pod = ready_pod(**deleted(0, seconds=60), finalizers=["example.com/keep"])
    life = world.pod(pod)
    assert (life.state, life.stuck) == ("held", "finalizer")


# Predictions


def test_a_kill_is_predicted_and_happens(world: World) -> None:
    pod = ready_pod(**deleted(30, seconds=0))
    life = world.pod(pod)
    [kill] = life.next
    assert (kill.who, kill.at, kill.state) == ("the node's agent", ms(seconds=30), "due")
    world.gone(pod, at(seconds=30.5))
    assert (kill.state, kill.until) == ("happened", ms(seconds=30.5))


def test_a_pod_that_ends_before_its_kill_withdraws_the_prediction(world: World) -> None:
    pod = ready_pod(**deleted(30, seconds=0))
    life = world.pod(pod)
    world.gone(pod, at(seconds=5))
    assert [each.state for each in life.next] == ["withdrawn"]


def test_a_kill_that_does_not_come_is_missed_until_it_comes(world: World) -> None:
    pod = ready_pod(**deleted(30, seconds=0))
    life = world.pod(pod)
    world.pass_to(at(seconds=30.1))
    world.pass_to(at(seconds=33))
    [kill] = life.next
    assert (kill.state, kill.until, kill.missed) == ("missed", None, ms(seconds=33))
    world.gone(pod, at(seconds=50))
    # Between the two it was missed, and a look at the past shows that.
    assert (kill.state, kill.until, kill.missed) == ("happened", ms(seconds=50), ms(seconds=33))


def test_a_kill_that_comes_a_moment_late_is_not_missed(world: World) -> None:
    pod = ready_pod(**deleted(30, seconds=0))
    life = world.pod(pod)
    world.pass_to(at(seconds=30.1))
    [kill] = life.next
    assert (kill.state, kill.until) == ("due", None)
    world.gone(pod, at(seconds=31))
    assert (kill.state, kill.missed) == ("happened", None)


def test_what_another_actor_has_done_is_withdrawn(world: World) -> None:
    world.node(a_node("Unknown"))
    pod = ready_pod(**deleted(30, seconds=60))
    life = world.pod(pod)
    assert open_predictions(life) == [("the node's agent", "due")]
    # The agent is not there: somebody else has removed it.
    world.gone(pod, at(seconds=5))
    assert [each.state for each in life.next] == ["withdrawn"]


def test_a_node_that_is_tainted_as_foreseen(world: World) -> None:
    life = world.node(a_node("Unknown"), at(seconds=1))
    taint = {
        "key": "node.kubernetes.io/unreachable",
        "effect": "NoExecute",
        "timeAdded": format_time(at(seconds=2)),
    }
    world.node(a_node("Unknown", taints=[taint]), at(seconds=2))
    assert [each.state for each in life.next if each.what.startswith("taints")] == ["happened"]
    world.node(a_node("True"), at(seconds=9))
    assert {each.state for each in life.next} == {"happened"}


def tainted(world: World, now: datetime = NOW) -> None:
    taint = {"key": "maintenance", "effect": "NoExecute", "timeAdded": format_time(now)}
    world.node(a_node(taints=[taint]), now)


def tolerant() -> Object:
    pod = ready_pod()
    pod["spec"]["tolerations"] = [
        {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    ]
    return pod


def test_a_taint_on_its_node_predicts_the_eviction_of_a_pod_that_did_not_change(world: World) -> None:
    life = world.pod(tolerant())
    assert not life.next
    tainted(world, at(seconds=10))
    [eviction] = life.next
    assert (eviction.who, eviction.at) == ("taint eviction", ms(seconds=70))
    world.pod(tolerant() | {"metadata": tolerant()["metadata"] | deleted(30, seconds=-70)}, at(seconds=70))
    assert (eviction.state, eviction.until) == ("happened", ms(seconds=70))


def test_a_taint_that_is_taken_off_withdraws_the_eviction(world: World) -> None:
    life = world.pod(tolerant())
    tainted(world)
    world.node(a_node(), at(seconds=20))
    assert [(each.state, each.until) for each in life.next] == [("withdrawn", ms(seconds=20))]


def test_an_eviction_that_does_not_come_is_missed(world: World) -> None:
    life = world.pod(tolerant())
    tainted(world)
    world.pass_to(at(seconds=63))
    assert open_predictions(life) == [("taint eviction", "missed")]
    world.node(a_node(), at(seconds=90))
    assert open_predictions(life) == []


def test_what_is_due_at_once_is_not_missed_at_once(world: World) -> None:
    life = world.pod(ready_pod())
    taint = {"key": "maintenance", "effect": "NoExecute", "timeAdded": ago(minutes=5)}
    world.node(a_node(taints=[taint]))
    world.pass_to(at(seconds=10))
    assert open_predictions(life) == [("taint eviction", "due")]
    world.pass_to(at(seconds=31))
    assert open_predictions(life) == [("taint eviction", "missed")]


def a_job(*, is_finished: bool) -> SeenJob:
    ended = {"type": "Complete", "status": "True", "lastTransitionTime": format_time(NOW)}
    spec, status = {"ttlSecondsAfterFinished": 60}, {"conditions": [ended] if is_finished else []}
    return msgspec.convert({"metadata": {"uid": "j", "name": "sum"}, "spec": spec, "status": status}, SeenJob)


def test_the_time_to_live_of_its_job_ends_a_pod_that_has_ended(world: World) -> None:
    owner = {"kind": "Job", "name": "sum", "uid": "j", "controller": True}
    pod = a_pod(status={"phase": "Succeeded"}, ownerReferences=[owner])
    world.lives.put_job(a_job(is_finished=False), NOW)
    life = world.pod(pod)
    assert [(each.who, each.at) for each in life.next] == [("the TTL controller", None)]
    world.lives.put_job(a_job(is_finished=True), NOW)
    world.pass_to(NOW)
    expiry = life.next[-1]
    assert (expiry.at, "ttlSecondsAfterFinished: 60" in expiry.what) == (ms(seconds=60), True)
    # The Job goes first.
    world.lives.drop_job(a_job(is_finished=True), at(seconds=60))
    world.pod(pod, at(seconds=60.5))
    world.gone(pod, at(seconds=61))
    assert expiry.state == "happened"


def test_a_prediction_that_moves_leaves_what_was_predicted_before(world: World) -> None:
    life = world.pod(tolerant())
    tainted(world)
    tainted(world, at(seconds=30))
    first, second = life.next
    assert (first.at, first.until, first.state) == (ms(seconds=60), ms(seconds=30), "withdrawn")
    assert (second.since, second.at, second.state) == (ms(seconds=30), ms(seconds=90), "due")


def test_a_prediction_relative_to_now_does_not_move_along_with_every_look(world: World) -> None:
    pod = a_pod(spec={"nodeName": "lost"}, status=ready_pod()["status"])
    life = world.pod(pod)
    [orphan] = [each for each in life.next if "orphaned" in each.what]
    before = orphan.at
    life = world.pod(pod, at(seconds=20))
    assert [each.at for each in life.next if "orphaned" in each.what] == [before]


def test_a_pod_that_starts_too_slowly_is_looked_at_again_without_a_change(world: World) -> None:
    pending = {"phase": "Pending", "startTime": ago(seconds=0)}
    life = world.pod(a_pod(status=pending, creationTimestamp=ago(seconds=0)))
    assert len(life.stuck) == 0
    world.pass_to(at(seconds=32))
    assert life.stuck == "not-picked-up"


def test_a_ready_pod_is_not_computed_again_when_nothing_changes(world: World) -> None:
    world.pod(ready_pod())
    world.lives.take_changed()
    world.pass_to(at(hours=1))
    assert "u-1" not in world.lives.take_changed()


# Nodes


def test_a_node_shows_its_conditions_taints_and_cordon(world: World) -> None:
    tainted(world)
    life = world.node(a_node("False", unschedulable=True), at(seconds=5))
    assert life.segs[-1] == (ms(seconds=5), "not-ready")
    assert (life.taints, life.cordoned, life.conditions) == ([], True, {"Ready": "False"})
    assert [mark[2] for mark in life.marks if mark[1] == "taint"] == [
        "taint maintenance:NoExecute added",
        "taint maintenance:NoExecute removed",
    ]


def test_a_node_whose_lease_is_not_renewed_becomes_silent_and_its_pods_know(world: World) -> None:
    pod = world.pod(ready_pod())
    world.lease(NOW)
    world.pass_to(at(seconds=39))
    node = world.lives.get("n-1")
    assert node is not None
    assert node.state == "ready"
    world.pass_to(at(seconds=41))
    assert (node.state, pod.stuck) == ("silent", "kubelet-silent")
    world.lease(at(seconds=42))
    assert (node.state, pod.stuck) == ("ready", "")
    assert pod.troubles == [(ms(seconds=41), "kubelet-silent"), (ms(seconds=42), "")]


def test_no_node_becomes_silent_while_leases_are_not_heard_nor_for_its_time_afterwards(world: World) -> None:
    world.lease(NOW)
    world.lives.listen(hears=False, now=at(seconds=20))
    world.pass_to(at(seconds=100))
    world.lives.listen(hears=True, now=at(seconds=100))
    world.pass_to(at(seconds=139))
    node = world.lives.get("n-1")
    assert node is not None
    assert [state for _, state in node.segs][-1] == "ready"
    assert not node.next
    world.pass_to(at(seconds=141))
    assert node.segs[-1] == (ms(seconds=141), "silent")
    # One that was silent before stays so.
    world.lives.listen(hears=False, now=at(seconds=150))
    world.lives.listen(hears=True, now=at(seconds=200))
    world.pass_to(at(seconds=201))
    assert node.segs[-1] == (ms(seconds=141), "silent")


def test_a_renewed_lease_keeps_its_node_ready_and_costs_nothing(world: World) -> None:
    world.lease(NOW)
    world.lives.take_changed()
    for seconds in range(10, 200, 10):
        world.lease(at(seconds=seconds))
    assert world.lives.take_changed() == []


def test_pods_of_a_node_that_is_gone_are_explained_again(world: World) -> None:
    life = world.pod(ready_pod())
    world.lives.drop_node(msgspec.convert(a_node(), SeenNode), at(seconds=1))
    world.pass_to(at(seconds=1))
    assert life.stuck == "node-gone"
    node = world.lives.get("n-1")
    assert node is not None
    assert node.to == ms(seconds=1)


def test_nothing_is_concluded_from_nodes_that_may_not_be_read() -> None:
    world = World()
    world.lives.can_see_nodes = False
    assert not world.pod(ready_pod()).stuck


# Bounds


def test_marks_are_bounded_and_keep_the_beginning(world: World) -> None:
    life = world.pod(ready_pod())
    for number in range(200):
        world.event(an_event("BackOff", f"failed {number}", minutes=4 - number / 1000))
    assert len(life.marks) == MOST_MARKS
    assert kinds(life)[0] == "created"


@pytest.mark.parametrize(
    ("about", "namespace"),
    [({}, "evil"), ({"namespace": "evil"}, "evil"), ({"name": "other"}, "shop"), ({"kind": "Node"}, "evil")],
)
def test_an_event_marks_only_what_its_author_may_write_about(
    world: World, about: Object, namespace: str
) -> None:
    life = world.pod(ready_pod())
    before = list(life.marks)
    world.event(an_event("Killing", **about), namespace)
    assert life.marks == before


def test_events_of_the_future_do_not_displace_what_happened(world: World) -> None:
    life = world.pod(ready_pod())
    before = list(life.marks)
    for number in range(200):
        world.event(an_event("BackOff", f"{number}", minutes=-9000 - number))
    assert life.marks == before


def test_what_a_life_takes_from_a_pod_is_bounded(world: World) -> None:
    life = world.pod(ready_pod(labels={f"l{number}": "x" for number in range(20_000)}))
    world.event({**an_event("BackOff"), "source": {"component": "x" * 1_000_000}})
    assert len(msgspec.json.encode(life)) < 10_000


def test_ended_lives_are_forgotten_by_number_and_by_age(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended, "MOST_ENDED", 2)
    for number in range(4):
        world.pod(ready_pod(uid=f"u-{number}"))
        world.gone(ready_pod(uid=f"u-{number}"), at(seconds=number))
    world.pass_to(at(seconds=5))
    assert world.lives.take_forgotten() == ["u-0", "u-1"]
    world.pass_to(at(hours=2))
    assert world.lives.take_forgotten() == ["u-2", "u-3"]
    assert world.lives.uids == ["n-1"]


def test_ended_lives_are_forgotten_by_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended, "MOST_BYTES", 20_000)
    for number in range(100):
        world.pod(ready_pod(uid=f"u-{number}", labels={"l": "x" * 200}))
        world.gone(ready_pod(uid=f"u-{number}"), at(seconds=number))
    world.pass_to(at(seconds=100))
    assert sum(len(encode(world.lives.record(uid))) for uid in world.lives.uids) < 22_000
    assert world.lives.uids[-2] == "u-99"


def test_a_late_event_is_marked_on_a_life_that_has_ended_and_only_once(world: World) -> None:
    hook = {"name": "main", "image": "i", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}
    pod = ready_pod(**deleted(30, seconds=0))
    pod["spec"]["containers"] = [hook]
    killing = an_event("Killing", "Stopping container main", minutes=0, fieldPath="spec.containers{main}")
    world.pod(pod)
    world.event(killing)
    world.gone(pod, at(seconds=9))
    # Told again by a watch that began again, when the hook is not known any more.
    world.event(killing)
    world.event({**an_event("Odd", "late", minutes=0), "type": "Warning"})
    life = world.lives.get("u-1")
    assert isinstance(life, PodLife)
    steps = [kind for kind in kinds(life) if kind in ("prestop", "term", "warning", "gone")]
    assert sorted(steps) == ["gone", "prestop", "warning"]


def test_an_informer_keeps_one_event_per_namespace_and_tells_all() -> None:
    cache: Cache[SeenEvent] = Cache()
    told = []
    for number in range(1, 50):
        metadata = {"name": f"e-{number}", "namespace": "shop", "uid": f"u-{number}"}
        event = msgspec.convert(
            {"metadata": metadata | {"resourceVersion": str(number)}, "message": str(number)}, SeenEvent
        )
        found = cache.apply(WatchEvent(EventType.ADDED, event, str(number)))
        told += [each.object.message for each in found if isinstance(each, Added)]
    assert (len(cache), told) == (1, [str(number) for number in range(1, 50)])


def test_a_watch_that_began_again_ends_what_it_does_not_know(world: World) -> None:
    first, second = world.pod(ready_pod()), world.pod(ready_pod(uid="u-2"))
    world.lives.drop_others(SeenPod, ["u-2"], at(seconds=9))
    assert (first.to, second.to) == (ms(seconds=9), None)


def test_strange_pods_are_shown_as_far_as_they_can_be(world: World) -> None:
    seen = msgspec.json.decode(b'{"metadata":{"uid":"u","name":"x"},"spec":null,"status":[1]}', type=SeenPod)
    world.lives.put_pod(seen, NOW)
    world.pass_to(NOW)
    found = world.lives.get("u")
    assert found is not None
    assert ("u" in world.lives.take_changed(), found.state) == (True, "pending")


def test_of_an_owner_the_deployment_is_shown_and_not_its_replica_set(world: World) -> None:
    deployment = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    found = {"metadata": {"uid": "r", "ownerReferences": [deployment]}}
    world.lives.put_replica_set(msgspec.convert(found, MetadataOnly), NOW)
    owner = {"kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True, "apiVersion": "apps/v1"}
    life = world.pod(ready_pod(ownerReferences=[owner]))
    assert life.owner is not None
    assert (life.owner.kind, life.owner.name) == ("Deployment", "web")
