"""Certificates requested from the cluster."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography import x509

from podlife.client import Client
from podlife.errors import ApiError
from podlife.pki.csr import ClusterSigner, NotSignedError
from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.kit.embedded import connect, refusal


class Cluster:
    """Serves a request that is decided after a while."""

    def __init__(self, *statuses: dict[str, Any]) -> None:
        self.statuses = list(statuses)
        self.asked: dict[str, Any] = {}

    async def __call__(self, request: Request) -> Response:
        if request.method == "POST":
            self.asked = json.loads(request.body)
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        body = {**self.asked, "metadata": {"name": "csr-x"}, "status": status}
        return Response(200 if request.method == "GET" else 201, json.dumps(body).encode())

    def signing(self) -> ClusterSigner:
        client: Client = connect(self)
        return ClusterSigner(client)


@virtual_time
async def test_a_request_that_is_approved_after_a_while_is_waited_for() -> None:
    signed = {"certificate": base64.b64encode(b"PEM").decode()}
    cluster = Cluster({}, {}, {"conditions": [{"type": "Approved"}]}, signed)
    key, certificate = await cluster.signing().signed("n1", ("10.0.0.1", "host"))
    assert b"PRIVATE KEY" in key
    assert certificate == b"PEM"
    spec = cluster.asked["spec"]
    assert (spec["signerName"], spec["usages"]) == (
        "kubernetes.io/kubelet-serving",
        ["digital signature", "server auth"],
    )
    request = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
    assert request.subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"
    names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["n1", "10.0.0.1", "host"]


@virtual_time
async def test_a_request_that_is_denied_is_told() -> None:
    denied = {"conditions": [{"type": "Denied", "reason": "No", "message": "not you"}]}
    with pytest.raises(NotSignedError, match="Denied: not you"):
        await Cluster({}, denied).signing().signed("n1", ())


@virtual_time
async def test_a_request_that_nobody_decides_is_given_up_after_a_day() -> None:
    with pytest.raises(NotSignedError, match="csr-x was not approved within 86400s"):
        await Cluster({}).signing().signed("n1", ())


@virtual_time
async def test_a_server_that_knows_no_requests_says_so() -> None:
    async def server(request: Request) -> Response:
        return refusal(404, "NotFound")

    with pytest.raises(ApiError):
        await ClusterSigner(connect(server)).signed("n1", ())
