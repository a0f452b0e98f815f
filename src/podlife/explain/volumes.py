"""Volume claims that a pod waits for, and objects mounted as volumes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podlife.api.codec import Object
from podlife.explain import kubectl_commands as commands
from podlife.explain.cluster_snapshot import ClusterSnapshot, is_ready
from podlife.explain.explanation import Cause, Remedy, UpcomingAction
from podlife.explain.objects import is_terminating, items, metadata, moment, spec, status, text
from podlife.explain.risks import TAINTED

_NOT_FOUND = re.compile(r'(?P<kind>configmap|secret)s? "(?P<name>[^"]+)" not found')
_NO_KEY = re.compile(
    r"couldn't find key (?P<key>\S+) in (?P<kind>ConfigMap|Secret) (?P<namespace>[^/\s]+)/(?P<name>\S+)"
)


def claims_of(pod: Object) -> list[str]:
    """The names of the claims it uses; an ephemeral volume's is the pod's name and its own."""
    found = []
    for volume in items(spec(pod), "volumes"):
        if "persistentVolumeClaim" in volume:
            found.append(text(volume["persistentVolumeClaim"] or {}, "claimName"))
        elif "ephemeral" in volume:
            found.append(f"{text(metadata(pod), 'name')}-{text(volume, 'name')}")
    return found


def claim_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    if world.claims is None:
        return
    namespace = text(metadata(pod), "namespace")
    for name in claims_of(pod):
        claim = world.claims.get((namespace, name))
        if claim is None:
            yield _missing(pod, namespace, name)
        elif is_terminating(claim) or text(status(claim), "phase") not in ("Bound", ""):
            yield _unbound(claim)


def _missing(pod: Object, namespace: str, name: str) -> Cause:
    wanted: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "<SIZE>"}}},
    }
    risk = "The pod gets an empty volume, of the default storage class, where it may expect its data."
    since = moment(metadata(pod).get("creationTimestamp"))
    said = f"its claim {name} does not exist"
    return Cause("claim-missing", said, since, (Remedy(commands.create(wanted), risk),))


def _unbound(claim: Object) -> Cause:
    name, phase = text(metadata(claim), "name"), text(status(claim), "phase")
    class_name = spec(claim).get("storageClassName")
    asked = f" of storage class {class_name}" if class_name else ""
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"generateName": f"{name}-"},
        "spec": {
            "accessModes": items(spec(claim), "accessModes") or ["ReadWriteOnce"],
            "capacity": {"storage": _asked_storage(claim)},
            "claimRef": {"namespace": text(metadata(claim), "namespace"), "name": name},
            "hostPath": {"path": "<PATH>"},
            "persistentVolumeReclaimPolicy": "Retain",
            **({"storageClassName": class_name} if class_name else {}),
        },
    }
    going = ", and is being deleted" if is_terminating(claim) else ""
    said = f"its claim {name}{asked} is {phase or 'not bound'}{going}: does a provisioner run for it?"
    since = moment(metadata(claim).get("creationTimestamp"))
    remedy = Remedy(commands.create(volume), "A folder of one node: the data stays there if the pod moves.")
    wait = UpcomingAction("the volume controller", "binds the claim when a volume fits it or is provisioned")
    return Cause("claim-unbound", said, since, (remedy,), (wait,))


def attached_elsewhere(world: ClusterSnapshot, pod: Object) -> Cause | None:
    """A volume that only one node may have, and another has it: it is let go of when that node is out of service."""
    here, namespace = text(spec(pod), "nodeName"), text(metadata(pod), "namespace")
    claims = [(world.claims or {}).get((namespace, name)) or {} for name in claims_of(pod)]
    volumes = {text(spec(claim), "volumeName") for claim in claims} - {""}
    for each in world.attachments:
        volume, node = (
            text(spec(each).get("source") or {}, "persistentVolumeName"),
            text(spec(each), "nodeName"),
        )
        if volume not in volumes or node == here:
            continue
        there = (world.nodes or {}).get(node)
        known = "" if there is None else " (ready)" if is_ready(there) else " (not ready)"
        said = f"its volume {volume} is still attached to node {node}{known}"
        remedy = Remedy(commands.out_of_service(node), TAINTED)
        wait = UpcomingAction(
            "the attach-detach controller", "detaches it when no pod of that node uses it any more"
        )
        since = moment(metadata(each).get("creationTimestamp"))
        return Cause("volume-attached-elsewhere", said, since, (remedy,), (wait,))
    return None


def _asked_storage(claim: Object) -> str:
    requests = (spec(claim).get("resources") or {}).get("requests") or {}
    return text(requests, "storage") or "1Gi"


def missing_object(pod: Object, message: str) -> Remedy | None:
    """The ConfigMap or Secret, or the key of one, that an agent says it does not find."""
    flag = commands.namespace_flag(pod)
    if match := _NO_KEY.search(message):
        field = "data" if match["kind"] == "ConfigMap" else "stringData"
        body = {field: {match["key"]: "<VALUE>"}}
        obj = {"metadata": {"namespace": match["namespace"], "name": match["name"].rstrip(".,")}}
        risk = "Whoever else reads the object sees the key as well."
        return Remedy(commands.patch(match["kind"].lower(), obj, body, type_="merge"), risk)
    if match := _NOT_FOUND.search(message):
        words = ["create", "configmap"] if match["kind"] == "configmap" else ["create", "secret", "generic"]
        literals = [f"--from-literal={key}=<VALUE>" for key in _keys_of(pod, match["name"])]
        risk = "The values have to be the ones that the program expects."
        return Remedy(commands.kubectl(*words, match["name"], *flag, *literals), risk)
    return None


def _keys_of(pod: Object, name: str) -> list[str]:
    """The keys that the pod's variables take from an object, as far as they are named."""
    containers = [*items(spec(pod), "initContainers"), *items(spec(pod), "containers")]
    sources = [
        variable.get("valueFrom") or {} for container in containers for variable in items(container, "env")
    ]
    refs = [source.get("configMapKeyRef") or source.get("secretKeyRef") or {} for source in sources]
    return list(dict.fromkeys(text(ref, "key") for ref in refs if text(ref, "name") == name))
