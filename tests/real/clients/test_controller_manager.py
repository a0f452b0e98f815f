"""kube-controller-manager v1.36, unmodified, on our server: with JSON, and with its own protobuf.

Nobody runs the pods: the test says of them what a node's agent would.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.real.clients import objects
from tests.real.clients.conftest import make_namespace
from tests.real.clients.managed import ABANDONED, CONTENT_TYPES, KEPT, Managed, manage
from tests.real.clients.pair import manifest
from tests.real.clients.world import Object, World, open_world
from tests.real.conftest import require

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def managers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Managed]]:
    """Servers of their own: these controllers would tidy up what other tests leave lying about.

    All of them start together, since what the pod garbage collector does takes it a minute."""
    require("kube-controller-manager", "kubectl")
    with ExitStack() as stack:
        yield {
            content_type: stack.enter_context(manage(tmp_path_factory.mktemp("managed"), content_type))
            for content_type in CONTENT_TYPES
        }


@pytest.fixture(params=CONTENT_TYPES, ids=CONTENT_TYPES.get, scope="module")
def managed(request: pytest.FixtureRequest, managers: dict[str, Managed]) -> Managed:
    return managers[request.param]


@pytest.fixture
def world(managed: Managed) -> Iterator[World]:
    name = f"managed-{next(_NUMBERS)}"
    make_namespace(managed.server, name)
    with open_world(managed.server, name) as world:
        yield world


def owner(thing: Object) -> tuple[str, str] | None:
    for reference in thing["metadata"].get("ownerReferences", []):
        if reference.get("controller"):
            return reference["kind"], reference["name"]
    return None


def images(pods: dict[str, Object]) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in pods.values()}


def test_a_deployment_rolls_out_changes_and_goes_back(world: World) -> None:
    kubectl = world.kubectl
    kubectl("create", "-f", "-", stdin=manifest(objects.deployment("web", replicas=2)))
    first = world.pods(2)
    (replica_set,) = world.until("replicasets", lambda sets: len(sets) == 1)
    assert {owner(pod) for pod in first.values()} == {("ReplicaSet", replica_set)}
    world.make_ready(*first)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=180s").out
    kubectl("set", "image", "deployment/web", "main=new:2")
    new = world.until("pods", lambda pods: "new:2" in images(pods))
    world.make_ready(*(name for name in new if name not in first))
    both = world.until("pods", lambda pods: len(pods.keys() - first.keys()) == 2)
    world.make_ready(*(both.keys() - first.keys()))
    kubectl("rollout", "status", "deployment/web", "--timeout=180s")
    assert images(world.pods(2)) == {"new:2"}
    assert kubectl("rollout", "history", "deployment/web").out.split()[-4:] == ["1", "<none>", "2", "<none>"]
    kubectl("rollout", "undo", "deployment/web")
    world.until("pods", lambda pods: "registry.example/main:1" in images(pods))
    kubectl("scale", "deployment", "web", "--replicas=0")
    assert world.until("pods", lambda pods: not pods) == {}


def test_a_replica_set_adopts_replaces_and_releases(world: World) -> None:
    kubectl = world.kubectl
    kubectl("create", "-f", "-", stdin=manifest(objects.pod("lone", app="web")))
    kubectl("create", "-f", "-", stdin=manifest(objects.replica_set("web", replicas=2)))
    world.until("pods", lambda pods: len(pods) == 2 and owner(pods["lone"]) == ("ReplicaSet", "web"))
    kubectl("delete", "pod", "lone")
    pods = world.until("pods", lambda pods: len(pods) == 2 and "lone" not in pods)
    released = next(iter(pods))
    kubectl("label", "pod", released, "app=mine", "--overwrite")
    after = world.until("pods", lambda pods: len(pods) == 3 and owner(pods[released]) is None)
    assert {owner(pod) for name, pod in after.items() if name != released} == {("ReplicaSet", "web")}


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_a_cascade_takes_the_replica_set_and_its_pods_along(world: World, cascade: str) -> None:
    world.kubectl("create", "-f", "-", stdin=manifest(objects.deployment("web", replicas=2)))
    world.pods(2)
    world.kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--timeout=180s")
    world.until("replicasets", lambda sets: not sets)
    world.until("pods", lambda pods: not pods)


def test_orphans_stay_and_are_adopted_by_the_next_deployment(world: World) -> None:
    world.kubectl("create", "-f", "-", stdin=manifest(objects.deployment("web", replicas=2)))
    pods = world.pods(2)
    world.kubectl("delete", "deployment", "web", "--cascade=orphan", "--timeout=180s")
    world.until("replicasets", lambda sets: [owner(one) for one in sets.values()] == [None])
    assert world.kubectl.is_gone("deployment", "web")
    world.kubectl("create", "-f", "-", stdin=manifest(objects.deployment("web", replicas=2)))
    world.until("replicasets", lambda sets: [owner(one) for one in sets.values()] == [("Deployment", "web")])
    assert world.pods(2).keys() == pods.keys()


def test_a_stateful_set_makes_one_pod_after_the_other(world: World) -> None:
    world.kubectl("create", "-f", "-", stdin=manifest(objects.stateful_set("db", replicas=2)))
    assert world.pods(1).keys() == {"db-0"}
    # It has been seen to wait: the status says so of one pod that is not ready.
    world.until("statefulsets", lambda sets: sets["db"].get("status", {}).get("replicas") == 1)
    assert world.pods(1).keys() == {"db-0"}
    world.make_ready("db-0")
    assert world.pods(2).keys() == {"db-0", "db-1"}
    world.make_ready("db-1")
    world.kubectl("rollout", "status", "statefulset/db", "--timeout=180s")
    world.kubectl("scale", "statefulset", "db", "--replicas=1")
    assert world.pods(1).keys() == {"db-0"}


def test_a_job_is_complete_when_its_pods_have_succeeded(world: World) -> None:
    world.kubectl("create", "-f", "-", stdin=manifest(objects.job("once", completions=2, parallelism=2)))
    pods = world.pods(2)
    assert all("batch.kubernetes.io/job-tracking" in pod["metadata"]["finalizers"] for pod in pods.values())
    for name in pods:
        world.kubectl.set_status(f"pod/{name}", {"phase": "Succeeded"})
    world.kubectl("wait", "job/once", "--for=condition=Complete", "--timeout=180s")
    done = world.until(
        "pods", lambda pods: not any(pod["metadata"].get("finalizers") for pod in pods.values())
    )
    assert done.keys() == pods.keys()
    assert world.kubectl.get("job", "once")["status"]["succeeded"] == 2
    world.kubectl("delete", "job", "once", "--timeout=180s")
    world.until("pods", lambda pods: not pods)


def test_a_job_fails_when_its_pods_do(world: World) -> None:
    world.kubectl("create", "-f", "-", stdin=manifest(objects.job("once", backoffLimit=0)))
    (name,) = world.pods(1)
    world.kubectl.set_status(f"pod/{name}", {"phase": "Failed"})
    world.kubectl("wait", "job/once", "--for=condition=Failed", "--timeout=180s")
    assert world.kubectl.get("job", "once")["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"


def test_a_budget_counts_the_healthy_and_rules_evictions(world: World) -> None:
    web = objects.deployment("web", replicas=2)
    world.kubectl("create", "-f", "-", stdin=manifest(web, objects.budget("guard", minAvailable=1)))
    pods = world.pods(2)
    world.make_ready(*pods)
    allowed = world.until("poddisruptionbudgets", lambda all_: disruptions_allowed(all_) == 1)
    status = allowed["guard"]["status"]
    assert (status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]) == (2, 1, 2)
    evict(world, sorted(pods)[0])
    # The replacement is not ready, so the budget is spent.
    world.until("pods", lambda now: len(now) == 2 and now.keys() != pods.keys())
    world.until("poddisruptionbudgets", lambda all_: disruptions_allowed(all_) == 0)
    evict(world, sorted(pods)[1], code=1)


def disruptions_allowed(budgets: dict[str, Object]) -> int | None:
    allowed: int | None = budgets["guard"].get("status", {}).get("disruptionsAllowed")
    return allowed


def evict(world: World, name: str, code: int = 0) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/pods/{name}/eviction"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    world.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction), code=code)


def test_a_drain_moves_pods_one_by_one_as_their_budget_allows(world: World) -> None:
    web = objects.deployment("web", replicas=2)
    node = f"node-of-{world.namespace}"
    world.kubectl(
        "create", "-f", "-", stdin=manifest(web, objects.budget("guard", minAvailable=2), objects.node(node))
    )
    old = world.pods(2)
    for name in old:
        bind(world, name, node)
    world.make_ready(*old)
    drain = world.kubectl.start("drain", node, "--grace-period=0", "--timeout=180s")
    try:
        assert drain.stdout is not None
        next(line for line in drain.stdout if "disruption budget" in line)
        assert world.pods(2).keys() == old.keys()
        world.kubectl("scale", "deployment", "web", "--replicas=4")
        world.make_ready(*(world.pods(4).keys() - old.keys()))
        out, _ = drain.communicate(timeout=180)
        assert drain.returncode == 0, out
    finally:
        drain.kill()
    assert not world.pods(4).keys() & old.keys()


def bind(world: World, name: str, node: str) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/pods/{name}/binding"
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    world.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))


def test_a_daemon_set_has_a_pod_for_each_node_that_comes(world: World) -> None:
    kubectl, node = world.kubectl, f"node-of-{world.namespace}"
    labels = {"only": world.namespace}
    everywhere = objects.daemon_set("everywhere")
    everywhere["spec"]["template"]["spec"]["nodeSelector"] = labels
    kubectl("create", "-f", "-", stdin=manifest(everywhere))
    here = objects.node(node)
    here["metadata"]["labels"] = labels
    kubectl("create", "-f", "-", stdin=manifest(here))
    # No node lifecycle controller runs here that would do this.
    kubectl("taint", "node", node, "node.kubernetes.io/not-ready:NoSchedule-")
    assert {owner(pod) for pod in world.pods(1).values()} == {("DaemonSet", "everywhere")}
    kubectl("delete", "daemonset", "everywhere", "--timeout=180s")
    world.until("pods", lambda pods: not pods)


def test_a_finished_job_goes_when_its_time_is_up(world: World) -> None:
    world.kubectl("create", "-f", "-", stdin=manifest(objects.job("brief", ttlSecondsAfterFinished=0)))
    (name,) = world.pods(1)
    world.kubectl.set_status(f"pod/{name}", {"phase": "Succeeded"})
    world.until("jobs", lambda jobs: not jobs)
    world.until("pods", lambda pods: not pods)


def test_a_service_knows_the_addresses_of_its_ready_pods(world: World) -> None:
    pod = objects.pod("back", nodeName="node-x")
    world.kubectl("create", "-f", "-", stdin=manifest(objects.service("front"), pod))
    address = {"podIP": "192.0.2.7", "podIPs": [{"ip": "192.0.2.7"}]}
    world.kubectl.set_status("pod/back", {**objects.READY["status"], **address})
    world.kubectl.wait_for("endpoints/front", "{.subsets[0].addresses[0].ip}", "192.0.2.7")


def test_a_namespace_has_its_service_account(world: World) -> None:
    world.kubectl("wait", "serviceaccount/default", "--for=create", "--timeout=180s")


def test_the_manager_leads_by_its_lease(managed: Managed) -> None:
    with open_world(managed.server, "kube-system") as world:
        lease = world.kubectl.get("lease", "kube-controller-manager")
    assert lease["spec"]["holderIdentity"]


def test_a_namespace_ends_with_everything_in_it(world: World) -> None:
    kubectl = world.kubectl
    kubectl("create", "-f", "-", stdin=manifest(objects.deployment("web", replicas=2), objects.job("once")))
    world.pods(3)
    kubectl("delete", "namespace", world.namespace, "--timeout=180s")
    assert kubectl.is_gone("namespace", world.namespace)
    assert kubectl("get", "all", "-o", "name").out == ""


def test_the_manager_has_nothing_to_complain_about(managed: Managed, world: World) -> None:
    world.kubectl("create", "-f", "-", stdin=manifest(objects.deployment("web", replicas=1)))
    world.pods(1)
    complaints = [line for line in managed.log.read_text().splitlines() if _is_complaint(line)]
    assert complaints == []


# What the manager says on every server: its caches are behind its own writes for a moment, others write too.
_USUAL = re.compile(
    r'options\.go|the object has been modified|\\" not found|Precondition failed|being terminated|'
    r"read version: \d+ is not as new as written version"
)


def _is_complaint(line: str) -> bool:
    return line.startswith("E") and not _USUAL.search(line)


def test_pods_without_a_node_and_pods_that_ended_are_collected(managers: dict[str, Managed]) -> None:
    """The collector looks every 20 seconds and leaves orphans alone for another 40: so this is asked last."""
    for managed in managers.values():
        with open_world(managed.server, ABANDONED) as world:
            left = world.until("pods", lambda pods: "orphan" not in pods and len(pods) <= KEPT)
        assert all(name.startswith("ended-") for name in left)
