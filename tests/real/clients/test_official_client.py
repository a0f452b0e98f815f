"""The official Python client (kubernetes), unmodified, through its own loading of the kubeconfig."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from tests.kit.real_parts import Server
from tests.real.clients import objects

PATIENCE_SECONDS = 120


@pytest.fixture
def api(podlife_server: Server) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(podlife_server.kubeconfig)) as api:
        yield api


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


def test_a_pod_is_created_read_patched_and_deleted(core: client.CoreV1Api, namespace: str) -> None:
    made = core.create_namespaced_pod(namespace, objects.pod("p", nodeName="node-x"))
    assert made.spec.termination_grace_period_seconds == 30
    core.patch_namespaced_pod("p", namespace, {"metadata": {"labels": {"x": "y"}}})
    core.patch_namespaced_pod_status("p", namespace, objects.READY)
    read = core.read_namespaced_pod("p", namespace)
    assert (read.metadata.labels, read.status.phase) == ({"app": "web", "x": "y"}, "Running")
    marked = core.delete_namespaced_pod("p", namespace, grace_period_seconds=5)
    assert marked.metadata.deletion_grace_period_seconds == 5
    core.delete_namespaced_pod("p", namespace, body=client.V1DeleteOptions(grace_period_seconds=0))
    with pytest.raises(ApiException) as caught:
        core.read_namespaced_pod("p", namespace)
    assert (caught.value.status, caught.value.reason) == (404, "Not Found")


def test_a_typed_object_is_replaced_and_a_stale_one_conflicts(core: client.CoreV1Api, namespace: str) -> None:
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"k": "v"})
    stale = core.create_namespaced_config_map(namespace, body)
    fresh = core.read_namespaced_config_map("a", namespace)
    fresh.data["k"] = "w"
    core.replace_namespaced_config_map("a", namespace, fresh)
    with pytest.raises(ApiException) as caught:
        core.replace_namespaced_config_map("a", namespace, stale)
    assert caught.value.status == 409
    assert core.read_namespaced_config_map("a", namespace).data == {"k": "w"}


def test_pages_add_up_to_the_whole_list(core: client.CoreV1Api, namespace: str) -> None:
    for number in range(7):
        core.create_namespaced_config_map(namespace, objects.config_map(f"m-{number}"))
    names: list[str] = []
    token: str | None = None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=3, _continue=token)
        assert len(page.items) <= 3
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert names == [f"m-{number}" for number in range(7)]


def test_a_watch_sees_what_happens_and_ends_in_time(core: client.CoreV1Api, namespace: str) -> None:
    start = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, objects.pod("p"))
    core.patch_namespaced_pod("p", namespace, {"metadata": {"labels": {"x": "y"}}})
    core.delete_namespaced_pod("p", namespace)
    stream = watch.Watch().stream(
        core.list_namespaced_pod, namespace, resource_version=start, timeout_seconds=PATIENCE_SECONDS
    )
    # The last change before the end is the mark of the deletion.
    seen = []
    for event in stream:
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            break
    assert seen == [("ADDED", "p"), ("MODIFIED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]
    quiet = watch.Watch().stream(core.list_namespaced_config_map, namespace, timeout_seconds=1)
    assert list(quiet) == []


def test_an_eviction_obeys_the_budget(api: client.ApiClient, core: client.CoreV1Api, namespace: str) -> None:
    policy = client.PolicyV1Api(api)
    core.create_namespaced_pod(namespace, objects.pod("p", nodeName="node-x"))
    core.patch_namespaced_pod_status("p", namespace, objects.READY)
    policy.create_namespaced_pod_disruption_budget(namespace, objects.budget("b", minAvailable=1))
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p", namespace=namespace))
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod_eviction("p", namespace, eviction)
    assert caught.value.status == 429
    policy.delete_namespaced_pod_disruption_budget("b", namespace)
    core.create_namespaced_pod_eviction("p", namespace, eviction)
    assert core.read_namespaced_pod("p", namespace).metadata.deletion_timestamp is not None


def test_deployments_jobs_and_their_subresources(api: client.ApiClient, namespace: str) -> None:
    apps, batch = client.AppsV1Api(api), client.BatchV1Api(api)
    apps.create_namespaced_deployment(namespace, objects.deployment("web"))
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 4}})
    assert apps.read_namespaced_deployment_scale("web", namespace).spec.replicas == 4
    apps.patch_namespaced_deployment_status("web", namespace, {"status": {"replicas": 2}})
    read = apps.read_namespaced_deployment("web", namespace)
    assert (read.spec.replicas, read.status.replicas) == (4, 2)
    batch.create_namespaced_job(namespace, objects.job("once"))
    job = batch.read_namespaced_job("once", namespace)
    assert job.spec.selector.match_labels == {"batch.kubernetes.io/controller-uid": job.metadata.uid}
    batch.delete_namespaced_job("once", namespace, propagation_policy="Background")
    assert batch.list_namespaced_job(namespace).items == []
    assert apps.delete_collection_namespaced_deployment(namespace).status in ("Success", None)
    assert apps.list_namespaced_deployment(namespace).items == []


def test_an_invalid_object_names_its_field(core: client.CoreV1Api, namespace: str) -> None:
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod(namespace, objects.pod("p", restartPolicy="Sometimes"))
    assert caught.value.status == 422
    assert '"field":"spec.restartPolicy"' in caught.value.body


def test_the_dynamic_client_finds_kinds_by_discovery(api: client.ApiClient, namespace: str) -> None:
    found = dynamic.DynamicClient(api)
    pods = found.resources.get(api_version="v1", kind="Pod")
    pods.create(body=objects.pod("p"), namespace=namespace)
    pods.patch(
        body={"metadata": {"annotations": {"a": "b"}}},
        name="p",
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    assert pods.get(name="p", namespace=namespace).metadata.annotations.a == "b"
    budgets = found.resources.get(api_version="policy/v1", kind="PodDisruptionBudget")
    assert budgets.get(namespace=namespace).items == []


def test_one_candidate_leads_and_the_next_follows_when_it_stops(
    podlife_server: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The lock of the official client knows only the configuration of the whole process.
    monkeypatch.setattr(client.Configuration, "_default", None)
    config.load_kube_config(str(podlife_server.kubeconfig))
    first, second = (Candidate(name, namespace) for name in ("first", "second"))
    first.start()
    assert first.leads.wait(PATIENCE_SECONDS)
    assert holder(namespace) == "first"
    assert second.election.try_acquire_or_renew() is False
    first.stop()
    second.start()
    assert second.leads.wait(PATIENCE_SECONDS)
    assert holder(namespace) == "second"
    second.stop()


def holder(namespace: str) -> object:
    return client.CoordinationV1Api().read_namespaced_lease("leader", namespace).spec.holder_identity


class Candidate:
    """One that wants to lead, in a thread of its own."""

    def __init__(self, name: str, namespace: str) -> None:
        self.leads, self._stop = threading.Event(), threading.Event()
        lock = LeaseLock("leader", namespace, name)
        settings = electionconfig.Config(lock, 3, 2, 1, self._lead, self._stop.set)
        self.election = leaderelection.LeaderElection(settings)
        self._thread = threading.Thread(target=self.election.run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def _lead(self) -> None:
        self.leads.set()
        self._stop.wait(PATIENCE_SECONDS)
        raise RuntimeError("told to stop")  # the only way to stop that the official client knows
