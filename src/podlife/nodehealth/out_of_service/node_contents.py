"""What the taint releases on a node: read from the server, because it is needed for few nodes.

Pods that tolerate the taint forever are not counted: nothing deletes them, and the taint would stay with them. Pods
that are being deleted are counted, because the pod garbage collector removes them because of the taint. A server
without VolumeAttachments has none.
"""

from __future__ import annotations

import math
from collections import Counter

from podlife.client import PODS, Client, ListOptions, Ref
from podlife.errors import NotFoundError
from podlife.nodehealth.out_of_service.record import OUT_OF_SERVICE, VALUE
from podlife.nodehealth.out_of_service.views import Attachment, PodOnNode
from podlife.nodehealth.taints import NO_EXECUTE, seconds_to_bear
from podlife.nodehealth.views import NodeTaint

_ATTACHMENTS = Ref("storage.k8s.io", "v1", "volumeattachments", namespaced=False, kind="VolumeAttachment")
_TAINTS = (NodeTaint(OUT_OF_SERVICE, VALUE, NO_EXECUTE),)


async def count_freed_pods(client: Client, node: str) -> int:
    """Raises PodlifeError if the pods cannot be listed."""
    options = ListOptions(field_selector=f"spec.nodeName={node}")
    return sum(map(_is_freed, (await client.list_all(PODS, options=options, view=PodOnNode)).items))


def _is_freed(pod: PodOnNode) -> bool:
    is_going = pod.metadata.deletion_timestamp is not None
    return is_going or seconds_to_bear(_TAINTS, pod.spec.tolerations) != math.inf


async def attachments_by_node(client: Client) -> Counter[str]:
    """Counts for all nodes: VolumeAttachments have no field selector for the node."""
    try:
        found = (await client.list_all(_ATTACHMENTS, view=Attachment)).items
    except NotFoundError:
        return Counter()
    return Counter(each.spec.node_name for each in found)
