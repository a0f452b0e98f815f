"""The certificate that a node serves with: its own first, the cluster's when it is signed, a new one in time."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podlife.clock import ManualClock, SystemClock
from podlife.errors import ConfigError, UnreachableError
from podlife.kubelet.server.serving_certificate import CertificateSettings, ServingCertificate
from podlife.pki.certificates import self_signed, validity_of
from podlife.pki.csr import NotSignedError
from podlife.testing import virtual_time
from tests.kit.real_pki import Pki

START = SystemClock().now()


class Signing:
    """A cluster that signs, or says why not."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.failure: Exception | None = None
        self.certificate: bytes | None = None

    async def signed(self, node_name: str, names: tuple[str, ...]) -> tuple[bytes, bytes]:
        self.asked.append((node_name, names))
        if self.failure is not None:
            raise self.failure
        now = self.clock.now()
        pem = self_signed(node_name, names, now - timedelta(days=1), now + timedelta(days=9))
        at = pem.index(b"-----BEGIN CERTIFICATE")
        return pem[:at], pem[at:] if self.certificate is None else self.certificate


def shown(context: ssl.SSLContext) -> bytes:
    """The certificate that somebody who connects now is shown."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there), context.wrap_bio(there, back, server_side=True)]
    for _ in range(5):
        for end in ends:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return ends[0].getpeercert(binary_form=True) or b""


class World:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock = ManualClock(START)
        self.signing = Signing(self.clock)
        self.settings = CertificateSettings("n1", folder / "pki", ("127.0.0.1",), **settings)

    def open(self) -> ServingCertificate:
        made = ServingCertificate(self.settings, self.clock, self.signing)
        self.context = made.open()
        return made

    @property
    def kept(self) -> bytes:
        """What the cluster has signed, as it is shown."""
        return ssl.PEM_cert_to_DER_cert(_certificate(self.settings.folder / "kubelet-server.pem"))

    def end_of(self, name: str) -> float:
        """In how many days what is kept under this name ends."""
        _, end = validity_of((self.settings.folder / name).read_bytes())
        return round((end - self.clock.now()).total_seconds() / 86400)

    async def run(self, certificate: ServingCertificate, *, days: int = 0, step: int = 1) -> None:
        """Let it work, day after day, or so many days after so many."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(certificate.run())
            await asyncio.sleep(1)
            for _ in range(0, days, step):
                self.clock.advance(minutes=24 * 60 * step)
                await asyncio.sleep(4000)
            task.cancel()


@virtual_time
async def test_the_cluster_is_asked_and_the_signed_one_is_kept_for_the_next_start(tmp_path: Path) -> None:
    world = World(tmp_path)
    certificate = world.open()
    assert world.end_of("kubelet-self-signed.pem") == 365
    await world.run(certificate)
    assert world.signing.asked == [("n1", ("127.0.0.1",))]
    assert world.end_of("kubelet-server.pem") == 9
    assert shown(world.context) == world.kept
    await world.run(world.open())
    assert len(world.signing.asked) == 1
    assert shown(world.context) == world.kept


@virtual_time
async def test_a_certificate_is_renewed_well_before_it_ends(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run(world.open(), days=30)
    assert len(world.signing.asked) == 6
    assert world.end_of("kubelet-server.pem") >= 3


@virtual_time
async def test_where_the_cluster_does_not_sign_the_nodes_own_serves_and_is_renewed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.signing.failure = NotSignedError("Denied: no")
    certificate = world.open()
    await world.run(certificate, days=300, step=10)
    assert not (world.settings.folder / "kubelet-server.pem").exists()
    assert world.end_of("kubelet-self-signed.pem") > 60
    assert len(world.signing.asked) > 100


@virtual_time
async def test_a_server_that_cannot_be_reached_is_asked_again_soon(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.signing.failure = UnreachableError("refused")
    await world.run(world.open())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.open().run())
        await asyncio.sleep(12)
        world.signing.failure = None
        await asyncio.sleep(5)
        task.cancel()
    assert shown(world.context) == world.kept


@virtual_time
async def test_a_certificate_that_is_due_serves_until_there_is_another_or_it_has_ended(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    await world.run(world.open())
    signed = shown(world.context)
    world.signing.failure = NotSignedError("nobody is there")
    world.clock.advance(minutes=8 * 24 * 60)
    await world.run(world.open())
    assert shown(world.context) == signed
    world.clock.advance(minutes=2 * 24 * 60)
    await world.run(world.open())
    assert shown(world.context) != signed


@virtual_time
@pytest.mark.parametrize("certificate", [b"nonsense", b""])
async def test_a_certificate_that_is_none_is_not_kept(tmp_path: Path, certificate: bytes) -> None:
    world = World(tmp_path)
    world.signing.certificate = certificate
    opened = world.open()
    before = shown(world.context)
    await world.run(opened)
    assert shown(world.context) == before
    world.open()
    assert shown(world.context) == before


@virtual_time
async def test_a_folder_that_takes_nothing_more_does_not_end_the_node(tmp_path: Path) -> None:
    world = World(tmp_path)
    opened = world.open()
    before = shown(world.context)
    shutil.rmtree(world.settings.folder)
    world.settings.folder.write_text("in the way")
    await world.run(opened, days=2)
    assert len(world.signing.asked) > 1
    assert shown(world.context) == before


@virtual_time
async def test_a_node_that_joins_another_cluster_asks_that_one(tmp_path: Path) -> None:
    world = World(tmp_path, client_authority=Pki(tmp_path / "a").ca_file.read_bytes())
    await world.run(world.open())
    world.settings = replace(world.settings, client_authority=Pki(tmp_path / "b").ca_file.read_bytes())
    await world.run(world.open())
    assert len(world.signing.asked) == 2


async def test_an_authority_that_is_none_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the authority of client certificates is not in PEM"):
        World(tmp_path, client_authority=b"nonsense").open()


async def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.open()
    folder = world.settings.folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def _certificate(path: Path) -> str:
    text = path.read_text()
    return text[text.index("-----BEGIN CERTIFICATE") :]
