"""The scenarios of persistent volumes: each acts on a stage, and yields where the sides are compared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from podlife.api.codec import Object
from podlife.client import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from tests.volumes.stage import Stage

Scenario = Callable[[Stage], AsyncIterator[None]]
SCENARIOS: dict[str, Scenario] = {}
CLAIMS, VOLUMES = PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
DELAYED: Object = {"volumeBindingMode": "WaitForFirstConsumer"}
LOCAL: Object = {
    "hostPath": None,
    "local": {"path": "/data"},
    "nodeAffinity": {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]}
            ]
        }
    },
}


def template(stage: Stage) -> Object:
    """Of a class of its own: volumes belong to the whole cluster."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"labels": {"kind": "scratch"}, "annotations": {"note": "kept"}}
    return {"metadata": meta, "spec": spec | {"storageClassName": stage.own("slow")}}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


@scenario
async def smallest_volume_that_fits(stage: Stage) -> AsyncIterator[None]:
    for name, size in (("small", "1Gi"), ("large", "10Gi"), ("right", "5Gi")):
        await stage.volume(name, size)
        await stage.until(VOLUMES, name, "Available")
    await stage.claim("data", "3Gi")
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def claim_waits_for_a_volume_of_its_class(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("other", storageClassName="fast")
    await stage.until(VOLUMES, "other", "Available")
    await stage.claim("data")
    await stage.until(VOLUMES, "other", "Available")
    yield
    await stage.volume("suitable")
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def no_volume_and_no_class(stage: Stage) -> AsyncIterator[None]:
    await stage.claim("data", storageClassName="")
    yield


@scenario
async def access_modes(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("once")
    await stage.volume("many", accessModes=["ReadWriteOnce", "ReadWriteMany"])
    await stage.until(VOLUMES, "many", "Available")
    await stage.until(VOLUMES, "once", "Available")
    await stage.claim("shared", accessModes=["ReadWriteMany"])
    await stage.claim("single", accessModes=["ReadWriteOncePod"])
    await stage.until(CLAIMS, "shared", "Bound")
    yield


@scenario
async def fewest_access_modes_before_size(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("small", "1Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"])
    await stage.volume("plain", "5Gi")
    await stage.until(VOLUMES, "small", "Available")
    await stage.until(VOLUMES, "plain", "Available")
    await stage.claim("data")
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def selector(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("one", metadata={"labels": {"tier": "cold"}})
    await stage.volume("two", "2Gi", metadata={"labels": {"tier": "hot"}})
    await stage.until(VOLUMES, "one", "Available")
    await stage.until(VOLUMES, "two", "Available")
    await stage.claim("data", selector={"matchLabels": {"tier": "hot"}})
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def volume_mode(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("files")
    await stage.until(VOLUMES, "files", "Available")
    await stage.claim("device", volumeMode="Block")
    yield
    await stage.volume("disk", volumeMode="Block")
    await stage.until(CLAIMS, "device", "Bound")
    yield


@scenario
async def volume_reserved_for_a_claim(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("reserved", "5Gi", claimRef={"name": "data"})
    await stage.volume("free", "1Gi")
    await stage.until(VOLUMES, "reserved", "Available")
    await stage.until(VOLUMES, "free", "Available")
    await stage.claim("other", "2Gi")
    yield
    await stage.claim("data", "2Gi")
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def claim_names_a_volume(stage: Stage) -> AsyncIterator[None]:
    await stage.claim("data", volumeName="mine")
    yield
    await stage.volume("mine")
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def named_volume_is_too_small(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("mine", "1Gi")
    await stage.until(VOLUMES, "mine", "Available")
    await stage.claim("data", "2Gi", volumeName="mine")
    yield


@scenario
async def named_volume_of_another_class(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("mine")
    await stage.until(VOLUMES, "mine", "Available")
    await stage.claim("data", volumeName="mine", storageClassName="fast")
    yield


@scenario
async def named_volume_is_taken(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("mine")
    await stage.until(VOLUMES, "mine", "Available")
    await stage.claim("first", volumeName="mine")
    await stage.until(CLAIMS, "first", "Bound")
    await stage.claim("second", volumeName="mine")
    yield


@scenario
async def retained_volume_is_released(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("kept")
    await stage.until(VOLUMES, "kept", "Available")
    await stage.claim("data")
    await stage.until(CLAIMS, "data", "Bound")
    await stage.delete(CLAIMS, "data")
    await stage.until(VOLUMES, "kept", "Released")
    yield
    # A claim of the same name is another claim.
    await stage.claim("data")
    yield
    await stage.patch(VOLUMES, "kept", {"spec": {"claimRef": None}})
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def local_volume_cannot_be_deleted(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("local", persistentVolumeReclaimPolicy="Delete", **LOCAL)
    await stage.until(VOLUMES, "local", "Available")
    await stage.claim("data")
    await stage.until(CLAIMS, "data", "Bound")
    await stage.delete(CLAIMS, "data")
    await stage.until(VOLUMES, "local", "Failed")
    yield


@scenario
async def host_path_outside_tmp_cannot_be_deleted(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("host", persistentVolumeReclaimPolicy="Delete")
    await stage.until(VOLUMES, "host", "Available")
    await stage.claim("data")
    await stage.until(CLAIMS, "data", "Bound")
    await stage.delete(CLAIMS, "data")
    await stage.until(VOLUMES, "host", "Failed")
    yield


@scenario
async def provisioned_volume_is_left_to_its_provisioner(stage: Stage) -> AsyncIterator[None]:
    annotations = {"pv.kubernetes.io/provisioned-by": "example.com/disk"}
    await stage.volume("disk", metadata={"annotations": annotations}, persistentVolumeReclaimPolicy="Delete")
    await stage.until(VOLUMES, "disk", "Available")
    await stage.claim("data")
    await stage.until(CLAIMS, "data", "Bound")
    await stage.delete(CLAIMS, "data")
    await stage.until(VOLUMES, "disk", "Released")
    yield


@scenario
async def local_volume_cannot_be_recycled(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("local", persistentVolumeReclaimPolicy="Recycle", **LOCAL)
    await stage.until(VOLUMES, "local", "Available")
    await stage.claim("data")
    await stage.until(CLAIMS, "data", "Bound")
    await stage.delete(CLAIMS, "data")
    await stage.until(VOLUMES, "local", "Failed")
    yield


@scenario
async def claim_loses_its_volume(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("mine")
    await stage.until(VOLUMES, "mine", "Available")
    await stage.claim("data")
    await stage.until(CLAIMS, "data", "Bound")
    await stage.delete(VOLUMES, "mine")
    yield
    # Protected until it is not bound any more, which only force can bring about.
    await stage.patch(VOLUMES, "mine", {"metadata": {"finalizers": None}})
    await stage.until(CLAIMS, "data", "Lost")
    yield


@scenario
async def volume_is_deleted_while_available(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("mine")
    await stage.until(VOLUMES, "mine", "Available")
    await stage.delete(VOLUMES, "mine")
    await stage.until(VOLUMES, "mine", "")
    yield


@scenario
async def claim_in_use_is_kept(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("mine")
    await stage.until(VOLUMES, "mine", "Available")
    await stage.claim("data")
    await stage.pod("user", "data", node="node-a")
    await stage.until(CLAIMS, "data", "Bound")
    await stage.delete(CLAIMS, "data")
    yield
    await stage.delete(PODS, "user")
    await stage.until(CLAIMS, "data", "")
    await stage.until(VOLUMES, "mine", "Released")
    yield


@scenario
async def claim_of_a_pod_without_a_node_is_not_in_use(stage: Stage) -> AsyncIterator[None]:
    await stage.claim("data")
    await stage.pod("user", "data")
    await stage.until_told("ProvisioningFailed")
    await stage.delete(CLAIMS, "data")
    await stage.until(CLAIMS, "data", "")
    yield


@scenario
async def protection_is_added_to_what_lacks_it(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("mine")
    await stage.until(VOLUMES, "mine", "Available")
    await stage.claim("data")
    await stage.until(CLAIMS, "data", "Bound")
    await stage.patch(CLAIMS, "data", {"metadata": {"finalizers": None}})
    await stage.patch(VOLUMES, "mine", {"metadata": {"finalizers": None}})
    yield


@scenario
async def claim_waits_for_its_first_consumer(stage: Stage) -> AsyncIterator[None]:
    await stage.storage_class("slow", "kubernetes.io/no-provisioner", **DELAYED)
    await stage.volume("mine")
    await stage.until(VOLUMES, "mine", "Available")
    await stage.claim("data")
    yield
    # The scheduler reserves a volume.
    reserved = {"namespace": stage.namespace, "name": "data"}
    await stage.patch(VOLUMES, "mine", {"spec": {"claimRef": reserved}})
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def provisioner_is_asked_after_a_node_was_selected(stage: Stage) -> AsyncIterator[None]:
    await stage.storage_class("slow", **DELAYED)
    await stage.claim("data")
    yield
    annotations = {"volume.kubernetes.io/selected-node": "node-a"}
    await stage.patch(CLAIMS, "data", {"metadata": {"annotations": annotations}})
    yield
    found = await stage.get(CLAIMS, "data")
    assert found is not None
    annotations = {"pv.kubernetes.io/provisioned-by": "example.com/disk"}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "data"}
    reference["uid"] = found["metadata"]["uid"]
    await stage.volume("disk", metadata={"annotations": annotations}, claimRef=reference)
    await stage.until(CLAIMS, "data", "Bound")
    yield


@scenario
async def provisioner_is_asked_at_once(stage: Stage) -> AsyncIterator[None]:
    await stage.storage_class("slow")
    await stage.claim("data")
    yield


@scenario
async def class_without_a_provisioner(stage: Stage) -> AsyncIterator[None]:
    await stage.storage_class("slow", "kubernetes.io/no-provisioner")
    await stage.claim("data")
    yield


@scenario
async def class_comes_after_the_claim(stage: Stage) -> AsyncIterator[None]:
    await stage.claim("data")
    yield
    await stage.storage_class("slow")
    yield
    await stage.delete(STORAGE_CLASSES, "slow")
    yield


@scenario
async def default_class_comes_after_the_claim(stage: Stage) -> AsyncIterator[None]:
    await stage.claim("data", storageClassName=None)
    yield
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    meta = {"name": stage.own("usual"), "annotations": annotations}
    await stage.storage_class("usual", metadata=meta)
    yield
    await stage.claim("next", storageClassName=None)
    yield
    await stage.delete(STORAGE_CLASSES, "usual")


@scenario
async def ephemeral_volume(stage: Stage) -> AsyncIterator[None]:
    await stage.volume("scratch")
    await stage.until(VOLUMES, "scratch", "Available")
    await stage.pod("user", ephemeral={"volumeClaimTemplate": template(stage)})
    await stage.until(CLAIMS, "user-data", "Bound")
    yield


@scenario
async def ephemeral_volume_whose_name_is_taken(stage: Stage) -> AsyncIterator[None]:
    await stage.claim("user-data", storageClassName="")
    await stage.pod("user", ephemeral={"volumeClaimTemplate": template(stage)})
    yield
