"""Joining a cluster: what is checked before anything is sent."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from podlife.apiserver.identities import prepare_identities
from podlife.apiserver.settings import ApiServerSettings
from podlife.clock import SystemClock
from podlife.daemons import join
from podlife.daemons.join import JoinSettings, ca_hash
from podlife.errors import ConfigError, PodlifeError

URL = "https://127.0.0.1:6443"
HASH = f"sha256:{'a' * 64}"
COMPLETE = JoinSettings("n1", Path("/nowhere"), URL, token="t", ca_hash=HASH)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (replace(COMPLETE, where="/nowhere/join"), "file not found"),
        (replace(COMPLETE, token=""), "requires --token"),
        (replace(COMPLETE, ca_hash=""), "requires --ca-hash or --certificate-authority"),
        (replace(COMPLETE, ca_hash="md5:1"), "expected sha256: and 64 hexadecimal digits"),
    ],
)
async def test_what_is_missing_to_join_is_said_before_anything_is_asked(
    settings: JoinSettings, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        await join.run(settings)


async def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PodlifeError, match="does not answer"):
        await join.run(replace(COMPLETE, data=tmp_path, where="https://127.0.0.1:1"))


def test_the_hash_is_of_the_public_key_as_kubeadm_has_it(tmp_path: Path) -> None:
    prepare_identities(ApiServerSettings(), tmp_path, SystemClock())
    pem = (tmp_path / "pki" / "ca.crt").read_bytes()
    key = x509.load_pem_x509_certificate(pem).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert ca_hash(pem) == f"sha256:{sha256(der).hexdigest()}"
