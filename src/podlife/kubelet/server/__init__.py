"""The kubelet's HTTPS server: logs, exec, pods, health, metrics.

    access = ApiAccess(client, "n1")
    node = ServedNode("n1", pods, runtime, clock, registry)
    certificate = CertificateSettings("n1", folder, names=addresses, client_authority=connection.certificate_authority)
    server = KubeletServer(node, access, ServerSettings(certificate), signing=ClusterSigner(client), clock=clock)
    group.create_task(server.run())
    await server.ready.wait()  # then server.port goes into the node's status

The server gets its pods from the kubelet (`ServedPods`), and everything else from the runtime and the API server.
"""

from __future__ import annotations

from podlife.pki.csr import CertificateSigner, ClusterSigner

from .auth import ApiAccess, Caller
from .request import HttpError, ServedNode
from .server import DECLARED_FEATURES, Access, KubeletServer, ServerSettings
from .serving_certificate import CertificateSettings

__all__ = [
    "DECLARED_FEATURES",
    "Access",
    "ApiAccess",
    "Caller",
    "CertificateSettings",
    "CertificateSigner",
    "ClusterSigner",
    "HttpError",
    "KubeletServer",
    "ServedNode",
    "ServerSettings",
]
