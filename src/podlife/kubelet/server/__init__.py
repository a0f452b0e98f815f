"""The node's own HTTPS endpoint, as a kubelet has one: logs, exec, pods, health, metrics.

    access = ApiAccess(client, "n1")
    node = Node("n1", pods, runtime, clock, registry)
    certificate = CertificateSettings("n1", folder, names=addresses, client_authority=connection.certificate_authority)
    endpoint = NodeEndpoint(node, access, EndpointSettings(certificate), signing=ClusterSigning(client), clock=clock)
    group.create_task(endpoint.run())
    await endpoint.ready.wait()  # then endpoint.port goes into the node's status

What the endpoint asks of the agent is `KnownPods`; everything else it takes from the runtime and the API server.
"""

from __future__ import annotations

from podlife.pki.csr import CertificateSigner, ClusterSigner

from .auth.access import ApiAccess
from .auth.authentication import Caller
from .http_error import RefusedError
from .pod_lookup import KnownPods
from .served_node import Node
from .server import (
    DECLARED_FEATURES,
    Access,
    EndpointSettings,
    NodeEndpoint,
)
from .serving_certificate import CertificateSettings

__all__ = [
    "DECLARED_FEATURES",
    "Access",
    "ApiAccess",
    "Caller",
    "CertificateSettings",
    "CertificateSigner",
    "ClusterSigner",
    "EndpointSettings",
    "KnownPods",
    "Node",
    "NodeEndpoint",
    "RefusedError",
]
