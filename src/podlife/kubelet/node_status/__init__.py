"""The Node object: registration, status, lease.

    reporter = NodeReporter(client, NodeSettings("n1"), clock, machine=HostMachine(data), runtime=runtime)
    ... await reporter.run() ...
    reporter.node()

Guarantees:
- The lease is renewed even if status updates fail.
- A status is sent only when it has changed or is due.
- Fields of the Node that other components own are never touched.
- One kubelet at a time serves a node, in the cluster that the node has joined.

`admission` decides which pods the node admits.
"""

from podlife.kubelet.node_status.kubelet_identity import KubeletIdentity
from podlife.kubelet.node_status.lease import NameInUseError
from podlife.kubelet.node_status.machine import FixedMachine, HostMachine, Machine, MachineFacts, MachineUsage
from podlife.kubelet.node_status.membership import CLUSTER_FILE, AnotherClusterError, ClusterMembership
from podlife.kubelet.node_status.reporter import NodeReporter
from podlife.kubelet.node_status.settings import NodeSettings, Thresholds

__all__ = [
    "CLUSTER_FILE",
    "AnotherClusterError",
    "ClusterMembership",
    "FixedMachine",
    "HostMachine",
    "KubeletIdentity",
    "Machine",
    "MachineFacts",
    "MachineUsage",
    "NameInUseError",
    "NodeReporter",
    "NodeSettings",
    "Thresholds",
]
