"""The write of a node's silence: the server is asked once more, and only the node that was meant is written to."""

from __future__ import annotations

from podlife.client import NODES
from podlife.nodehealth.node_health import ClockReading, Examination, examine
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.unknown_status import UnknownStatusWriter
from podlife.nodehealth.views import Lease, MonitoredNode
from podlife.testing import LoopClock, virtual_time
from tests.kit import embedded

READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}


@virtual_time
async def test_a_node_recreated_since_it_was_seen_to_be_silent_is_neither_written_nor_known() -> None:
    """What was decided is about the node before; its successor is seen for the first time by the next pass."""
    handler = await embedded.start()
    client, clock = embedded.connect(handler), LoopClock()
    await client.create(NODES, {"metadata": {"name": "n1"}})
    await client.patch(NODES, "n1", {"status": {"conditions": [READY]}}, subresource="status")
    silent = await client.get(NODES, "n1", view=MonitoredNode)
    await client.delete(NODES, "n1")
    await client.create(NODES, {"metadata": {"name": "n1"}})
    await client.patch(NODES, "n1", {"status": {"conditions": [READY]}}, subresource="status")

    def as_long_silent(node: MonitoredNode, lease: Lease | None) -> Examination:
        known = examine(node, lease, None, ClockReading(clock.now(), -1000.0), NodeHealthSettings()).health
        return examine(node, lease, known, ClockReading(clock.now(), 0.0), NodeHealthSettings())

    silences = UnknownStatusWriter(client, clock, patience_seconds=10.0)
    assert await silences.write(silent, as_long_silent) is None
    found = await client.get(NODES, "n1")
    assert [each["status"] for each in found["status"]["conditions"]] == ["True"]

    successor = await client.get(NODES, "n1", view=MonitoredNode)
    look = await silences.write(successor, as_long_silent)
    assert look is not None
    assert look.node.metadata.uid == successor.metadata.uid
    found = await client.get(NODES, "n1")
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]}["Ready"] == "Unknown"
    await client.close()
