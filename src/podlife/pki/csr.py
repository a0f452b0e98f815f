"""Certificates signed by the cluster: creates a CertificateSigningRequest and waits until it is decided."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Protocol

from podlife.api.codec import Object
from podlife.client import Client, Ref
from podlife.errors import PodlifeError
from podlife.pki.credentials import KeyPair, Subject, node_subject

SIGNING_REQUESTS = Ref(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    namespaced=False,
    kind="CertificateSigningRequest",
)
_FIRST_POLL_SECONDS, _MOST_POLL_SECONDS = 0.5, 60.0
# The cluster removes an undecided request after a day.
_WAIT_SECONDS = 24 * 3600.0


class NotSignedError(PodlifeError):
    """The request was denied, has failed, or was not decided in time."""


@dataclass(frozen=True, slots=True)
class Signer:
    """One of the cluster's signers, and its requirements."""

    name: str
    usage: str
    generate_name: str


KUBELET_SERVING = Signer("kubernetes.io/kubelet-serving", "server auth", "csr-")
KUBELET_CLIENT = Signer("kubernetes.io/kube-apiserver-client-kubelet", "client auth", "node-csr-")


async def request_certificate(
    client: Client,
    signer: Signer,
    subject: Subject,
    *,
    wait_seconds: float = _WAIT_SECONDS,
    most_poll_seconds: float = _MOST_POLL_SECONDS,
) -> KeyPair:
    """Return a new key with its signed certificate. Raises NotSignedError and the client's errors."""
    from podlife.pki.certificates import make_request

    key, request = make_request(subject)
    csr = await client.create(SIGNING_REQUESTS, _object(signer, request))
    poll_seconds = _FIRST_POLL_SECONDS
    name = csr["metadata"]["name"]
    try:
        async with asyncio.timeout(wait_seconds):
            while (certificate := _certificate_in(csr)) is None:
                await asyncio.sleep(poll_seconds)
                poll_seconds = min(poll_seconds * 2, most_poll_seconds)
                csr = await client.get(SIGNING_REQUESTS, name)
    except TimeoutError:
        raise NotSignedError(
            f"certificate signing request {name} was not approved within {wait_seconds:.0f}s: "
            f"run `kubectl certificate approve {name}`"
        ) from None
    return KeyPair(certificate, key)


class CertificateSigner(Protocol):
    async def signed(self, node_name: str, names: tuple[str, ...]) -> tuple[bytes, bytes]:
        """Return a key and its signed serving certificate, both PEM. Raises PodlifeError."""
        ...


class ClusterSigner:
    """Gets serving certificates from the cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def signed(self, node_name: str, names: tuple[str, ...]) -> tuple[bytes, bytes]:
        subject = node_subject(node_name, (node_name, *names))
        pair = await request_certificate(self._client, KUBELET_SERVING, subject)
        return pair.key, pair.certificate


def _object(signer: Signer, request: bytes) -> Object:
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": signer.generate_name},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": signer.name,
            "usages": ["digital signature", signer.usage],
        },
    }


def _certificate_in(csr: Object) -> bytes | None:
    """The certificate, or None if the request is undecided; raises NotSignedError if it was denied or has failed."""
    status = csr.get("status") or {}
    if text := status.get("certificate"):
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise NotSignedError("the signed certificate is not valid base64") from None
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Denied", "Failed"):
            raise NotSignedError(
                f"{condition['type']}: {condition.get('message') or condition.get('reason')}"
            )
    return None
