"""Requests for certificates are approved, signed and removed, on the embedded server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.certificates import CsrApprovingController, CsrCleanerController, CsrSigningController
from podlife.client import Client
from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from podlife.errors import ForbiddenError, NotFoundError
from podlife.pki import CertificateAuthority, Subject
from podlife.pki.certificates import make_request
from podlife.pki.csr import SIGNING_REQUESTS
from podlife.testing import LoopClock, virtual_time
from tests.certificates.scenarios import SCENARIOS, Scenario, play
from tests.kit.embedded import connect, start
from tests.workloads.runs import at_work


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    CertificateAuthority(tmp_path, SystemClock()).ensure_authority()
    return tmp_path / "ca.pem"


@asynccontextmanager
async def controllers(client: Client, authority: Path) -> AsyncIterator[None]:
    plane = ControlPlane(client, clock=LoopClock())
    plane.add(CsrApprovingController(plane))
    plane.add(CsrSigningController(plane, signing_cert_file=str(authority)))
    plane.add(CsrCleanerController(plane))
    async with at_work(plane.run):
        yield


def request_for(signer: str, name: str = "jane", *groups: str, **spec: Any) -> dict[str, Any]:
    _, request = make_request(Subject(name, groups))
    told = {"request": base64.b64encode(request).decode(), "signerName": signer, "usages": ["client auth"]}
    return {"metadata": {"name": "r"}, "spec": {**told, **spec}}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
@virtual_time
async def test_scenario(scenario: Scenario, authority: Path) -> None:
    client = connect(await start())
    async with controllers(client, authority):
        assert await play(client, scenario) == (scenario.conditions, scenario.certificate)


@pytest.mark.parametrize(
    ("decision", "hours"), [("", 24), ("Denied", 1), ("Approved", 1)], ids=["pending", "denied", "signed"]
)
@virtual_time
async def test_an_old_request_is_removed(decision: str, hours: int, authority: Path) -> None:
    client = connect(await start())
    async with controllers(client, authority):
        made = await client.create(SIGNING_REQUESTS, request_for("kubernetes.io/kube-apiserver-client"))
        if decision:
            now = made["metadata"]["creationTimestamp"]
            condition = {"type": decision, "status": "True", "reason": "Test", "lastUpdateTime": now}
            made["status"] = {"conditions": [condition]}
            await client.update(SIGNING_REQUESTS, made, subresource="approval")
        await asyncio.sleep((hours - 0.5) * 3600)
        assert (await client.get(SIGNING_REQUESTS, "r"))["metadata"]["uid"] == made["metadata"]["uid"]
        await asyncio.sleep(1.6 * 3600)
        with pytest.raises(NotFoundError):
            await client.get(SIGNING_REQUESTS, "r")


@virtual_time
async def test_nobody_asks_for_the_group_of_administrators() -> None:
    client = connect(await start())
    words = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    with pytest.raises(ForbiddenError, match=words):
        await client.create(
            SIGNING_REQUESTS, request_for("kubernetes.io/kube-apiserver-client", "jane", "system:masters")
        )
    await client.create(SIGNING_REQUESTS, request_for("example.com/signer", "jane", "system:masters"))
