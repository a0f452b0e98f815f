"""The identity of a StatefulSet's pod: name and ordinal, labels, hostname and volumes. Pure.

A pod belongs to the ordinal at the end of its name, in canonical form: `web-01` belongs to no ordinal.
"""

from __future__ import annotations

import re

from podlife.api.codec import Object
from podlife.podcontrol import Owner, pod_from_template
from podlife.workloads.statefulset.views import StatefulSet
from podlife.workloads.views import Template, WorkloadPod

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"

_ORDINAL = re.compile(r"-(0|[1-9][0-9]{0,9})$")
_MOST = 2**31 - 1


def pod_name(set_name: str, ordinal: int) -> str:
    return f"{set_name}-{ordinal}"


def ordinal_of(pod: WorkloadPod) -> int:
    """The ordinal at the end of its name; -1 if there is none."""
    found = _ORDINAL.search(pod.metadata.name)
    ordinal = int(found[1]) if found else -1
    return ordinal if ordinal <= _MOST else -1


def is_member(stateful_set: StatefulSet, pod: WorkloadPod) -> bool:
    """Whether its name makes it a pod of the set."""
    ordinal = ordinal_of(pod)
    return ordinal >= 0 and pod.metadata.name == pod_name(stateful_set.metadata.name, ordinal)


def revision_of(pod: WorkloadPod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def claim_name(template: Object, set_name: str, ordinal: int) -> str:
    return f"{_name_of(template)}-{set_name}-{ordinal}"


def _name_of(template: Object) -> str:
    # Go writes no empty name.
    return str((template.get("metadata") or {}).get("name") or "")


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def has_identity(pod: WorkloadPod) -> bool:
    """By its name label alone: pods from before 1.28 have no index label, which is set together with it."""
    return pod.metadata.labels.get(POD_NAME_LABEL) == pod.metadata.name


def has_storage(stateful_set: StatefulSet, pod: WorkloadPod) -> bool:
    """Whether every claim of the set is one of its volumes."""
    claims = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    ordinal, name = ordinal_of(pod), stateful_set.metadata.name
    return all(
        claims.get(_name_of(template)) == claim_name(template, name, ordinal)
        for template in stateful_set.spec.volume_claim_templates
    )


def volumes(stateful_set: StatefulSet, ordinal: int) -> list[Object]:
    return [
        {
            "name": _name_of(template),
            "persistentVolumeClaim": {"claimName": claim_name(template, stateful_set.metadata.name, ordinal)},
        }
        for template in stateful_set.spec.volume_claim_templates
    ]


def new_pod(
    stateful_set: StatefulSet, owner: Owner, ordinal: int, revision: str, template: Template
) -> Object:
    """The pod with this ordinal and the template of this revision. Raises as `pod_from_template`."""
    pod = pod_from_template(template, owner, owner.controller_ref())
    name = pod_name(owner.name, ordinal)
    pod["metadata"].update(name=name, namespace=owner.namespace)
    pod["metadata"]["labels"] |= {**identity_labels(name, ordinal), REVISION_LABEL: revision}
    spec = pod["spec"]
    spec["hostname"] = name
    if stateful_set.spec.service_name:
        spec["subdomain"] = stateful_set.spec.service_name
    else:
        spec.pop("subdomain", None)
    own = volumes(stateful_set, ordinal)
    names = {volume["name"] for volume in own}
    # A claim replaces a volume of the template with the same name.
    others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in names]
    if own or others:
        spec["volumes"] = own + others
    return pod
