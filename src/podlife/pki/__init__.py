"""Certificates: the CA of a data folder, key pairs, private files and kubeconfigs.

`podlife.pki.csr` gets a certificate from a cluster, and needs a client. `podlife.pki.certificates` loads
`cryptography`: import it where a certificate is made.
"""

from podlife.pki.ca import CertificateAuthority, names_for, server_context, write_private
from podlife.pki.credentials import (
    ClusterAccess,
    KeyPair,
    RequestedCertificate,
    Subject,
    format_kubeconfig,
    node_subject,
)

__all__ = [
    "CertificateAuthority",
    "ClusterAccess",
    "KeyPair",
    "RequestedCertificate",
    "Subject",
    "format_kubeconfig",
    "names_for",
    "node_subject",
    "server_context",
    "write_private",
]
