"""lightkube, unmodified, through its own loading of the kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.batch_v1 import Job
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import CascadeType, PatchType

from tests.kit.real_parts import Server
from tests.real.clients import objects


@pytest.fixture
def client(podlife_server: Server, namespace: str) -> Iterator[Client]:
    with Client(KubeConfig.from_file(str(podlife_server.kubeconfig)), namespace=namespace) as client:
        yield client


def test_a_pod_is_created_read_patched_evicted_and_deleted(client: Client) -> None:
    client.create(Pod.from_dict(objects.pod("p", nodeName="node-x")))
    client.patch(Pod.Status, "p", objects.READY)
    client.patch(Pod, "p", {"metadata": {"labels": {"x": "y"}}}, patch_type=PatchType.MERGE)
    read = client.get(Pod, "p")
    assert read.status is not None
    assert read.status.phase == "Running"
    eviction = Pod.Eviction.from_dict({"metadata": {"name": "p"}})
    client.create(eviction, "p")
    marked = client.get(Pod, "p").metadata
    assert marked is not None
    assert marked.deletionTimestamp is not None
    client.delete(Pod, "p", grace_period=0)
    with pytest.raises(ApiError) as caught:
        client.get(Pod, "p")
    assert caught.value.status.code == 404


def test_pages_add_up_to_the_whole_list(client: Client) -> None:
    for number in range(5):
        client.create(ConfigMap(metadata=ObjectMeta(name=f"m-{number}"), data={"k": "v"}))
    names = [item.metadata.name for item in client.list(ConfigMap, chunk_size=2) if item.metadata]
    assert names == [f"m-{number}" for number in range(5)]
    client.deletecollection(ConfigMap)
    assert list(client.list(ConfigMap)) == []


def test_a_watch_sees_what_happens(client: Client) -> None:
    client.create(Pod.from_dict(objects.pod("p")))
    seen = []
    for kind, pod in client.watch(Pod, server_timeout=120):
        assert pod.metadata is not None
        seen.append((kind, pod.metadata.name))
        if kind == "ADDED":
            client.delete(Pod, "p")
        if kind == "DELETED":
            break
    assert seen == [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]


def test_deployments_jobs_and_leases_are_kept(client: Client) -> None:
    client.create(Deployment.from_dict(objects.deployment("web")))
    scale = client.get(Deployment.Scale, "web")
    scale.spec = ScaleSpec(replicas=4)
    client.replace(scale, "web")
    deployment = client.get(Deployment, "web")
    assert deployment.spec is not None
    assert deployment.spec.replicas == 4
    client.delete(Deployment, "web", cascade=CascadeType.BACKGROUND)
    client.create(Job.from_dict(objects.job("once")))
    client.delete(Job, "once", cascade=CascadeType.BACKGROUND)
    assert list(client.list(Job)) == []
    client.create(Lease.from_dict(objects.lease("held", "me")))
    lease = client.get(Lease, "held")
    assert lease.spec is not None
    assert lease.spec.holderIdentity == "me"


def test_wait_ends_with_the_condition(client: Client) -> None:
    client.create(Pod.from_dict(objects.pod("p")))
    client.patch(Pod.Status, "p", objects.READY)
    assert client.wait(Pod, "p", for_conditions=["Ready"]).metadata is not None


def test_errors_carry_the_status_of_the_server(client: Client) -> None:
    with pytest.raises(ApiError, match="restartPolicy") as caught:
        client.create(Pod.from_dict(objects.pod("p", restartPolicy="Sometimes")))
    assert (caught.value.status.code, caught.value.status.reason) == (422, "Invalid")
    client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}), field_manager="me")
    with pytest.raises(ApiError, match=r'conflict with "me": \.data\.x') as refused:
        client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "2"}), field_manager="you")
    assert refused.value.status.code == 409
    client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "2"}), field_manager="you", force=True)
