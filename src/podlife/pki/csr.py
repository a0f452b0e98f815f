"""A certificate from the cluster: asked for by a CertificateSigningRequest, and waited for until somebody signs it."""

from __future__ import annotations

import asyncio
import base64
from typing import Protocol

from podlife.api.codec import Object
from podlife.client import Client, Ref
from podlife.errors import PodlifeError

__all__ = ["ClusterSigning", "NotSignedError", "Signing"]

SIGNING_REQUESTS = Ref(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    namespaced=False,
    kind="CertificateSigningRequest",
)
_SIGNER = "kubernetes.io/kubelet-serving"
_FIRST_SECONDS, _MOST_SECONDS = 0.5, 60.0
# A request that nobody decided is forgotten by the cluster after a day.
_WAIT_SECONDS = 24 * 3600.0


class NotSignedError(PodlifeError):
    """The request was denied, has failed, or nobody has decided it."""


class Signing(Protocol):
    async def signed(self, node_name: str, names: tuple[str, ...]) -> tuple[bytes, bytes]:
        """A key and its signed certificate, both PEM. Raises PodlifeError."""
        ...


class ClusterSigning:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def signed(self, node_name: str, names: tuple[str, ...]) -> tuple[bytes, bytes]:
        from .node_certificates import make_request

        key, request = make_request(node_name, names)
        asked = await self._client.create(SIGNING_REQUESTS, _object(request))
        return key, await self._certificate(asked)

    async def _certificate(self, asked: Object) -> bytes:
        seconds = _FIRST_SECONDS
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                while (certificate := _decided(asked)) is None:
                    await asyncio.sleep(seconds)
                    seconds = min(seconds * 2, _MOST_SECONDS)
                    asked = await self._client.get(SIGNING_REQUESTS, asked["metadata"]["name"])
        except TimeoutError:
            raise NotSignedError(f"nobody has decided {asked['metadata']['name']}") from None
        return certificate


def _object(request: bytes) -> Object:
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": _SIGNER,
            "usages": ["digital signature", "server auth"],
        },
    }


def _decided(asked: Object) -> bytes | None:
    """The certificate, or None while there is none; raises NotSignedError where there will be none."""
    status = asked.get("status") or {}
    if text := status.get("certificate"):
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise NotSignedError("the certificate in the answer is not base64") from None
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Denied", "Failed"):
            raise NotSignedError(
                f"{condition['type']}: {condition.get('message') or condition.get('reason')}"
            )
    return None
