"""Every scenario on kube-apiserver: with kube-controller-manager's controllers, and with ours."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from podlife.certificates import CsrApprovingController, CsrSigningController
from podlife.client import Client
from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from podlife.pki import CertificateAuthority
from tests.certificates.scenarios import SCENARIOS, Outcome, Scenario, play
from tests.kit.real_parts import Server, controller_manager
from tests.real.conftest import require
from tests.workloads.runs import at_work, connect

CONTROLLERS = tuple(
    f"certificatesigningrequest-{each}-controller" for each in ("approving", "signing", "cleaner")
)
# Nothing is to happen to some requests: that long is looked on.
_LOOKS = 30

Outcomes = Mapping[str, Outcome]


@pytest.fixture(scope="session")
def played(kube: Server, parts_folder: Path) -> tuple[Outcomes, Outcomes]:
    """What the requests came to with theirs, and with ours."""
    require("kube-controller-manager")
    folder = parts_folder / "certificates"
    CertificateAuthority(folder / "ca", SystemClock()).ensure_authority()
    authority = str(folder / "ca" / "ca.pem")
    flags = (f"--cluster-signing-cert-file={authority}", f"--cluster-signing-key-file={authority}")
    with controller_manager(folder / "kcm", kube, CONTROLLERS, *flags):
        theirs = asyncio.run(_play_all(kube, "theirs"))
    return theirs, asyncio.run(_play_ours(kube, authority))


async def _play_ours(server: Server, authority: str) -> Outcomes:
    async with connect(server.kubeconfig) as client:
        plane = ControlPlane(client)
        plane.add(CsrApprovingController(plane))
        plane.add(CsrSigningController(plane, signing_cert_file=authority))
        async with at_work(plane.run):
            return await _play_all(server, "ours")


async def _play_all(server: Server, prefix: str) -> Outcomes:
    async with connect(server.kubeconfig) as client:
        return {each.name: found for each in SCENARIOS for found in [await _play(client, each, prefix)]}


async def _play(client: Client, scenario: Scenario, prefix: str) -> Outcome:
    is_quiet = not scenario.conditions or scenario.certificate is None
    return await play(client, scenario, prefix, _LOOKS if is_quiet else 3)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_request_comes_to_the_same(scenario: Scenario, played: tuple[Outcomes, Outcomes]) -> None:
    theirs, ours = played
    assert theirs[scenario.name] == (scenario.conditions, scenario.certificate)
    assert ours[scenario.name] == theirs[scenario.name]
