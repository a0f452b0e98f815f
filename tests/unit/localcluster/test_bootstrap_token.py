"""How nodes join a cluster of `podlife up`: the token, the file, and what is checked before anything is sent."""

from __future__ import annotations

import json
import stat
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from podlife.apiserver.authn import TokenFile
from podlife.apiserver.identities import prepare_identities
from podlife.apiserver.settings import ApiServerSettings
from podlife.cli.apiserver_exec import prepare
from podlife.cli.connection import ConnectionOptions
from podlife.clock import SystemClock
from podlife.daemons.join import join
from podlife.errors import ConfigError, PodlifeError
from podlife.localcluster.bootstrap_token import Joining, authority_hash, reachable_url
from podlife.localcluster.state_dir import UpFolder

URL = "https://127.0.0.1:6443"
HASH = f"sha256:{'a' * 64}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    prepare_identities(ApiServerSettings(), tmp_path, SystemClock())
    return tmp_path


def token_in(file: Path) -> str:
    return str(yaml.safe_load(file.read_text())["users"][0]["user"]["token"])


def test_the_token_of_a_run_gives_one_right_and_ends_with_the_run(folder: Path) -> None:
    joining, tokens = Joining(folder), TokenFile(folder / "tokens.csv")
    joining.open(URL)
    token = token_in(joining.file)
    user = tokens.find(token)
    assert user is not None
    assert user.groups == ("system:bootstrappers", "system:authenticated")
    joining.close()
    assert tokens.find(token) is None
    assert not joining.file.exists()


def test_a_token_of_a_run_that_was_killed_counts_no_more(folder: Path) -> None:
    joining, tokens = Joining(folder), TokenFile(folder / "tokens.csv")
    joining.open(URL)
    first = token_in(joining.file)
    Joining(folder).open(URL)
    assert tokens.find(first) is None
    assert len((folder / "tokens.csv").read_text().splitlines()) == 3


def test_the_file_is_for_its_owner_and_has_the_other_way_to_join_at_its_top(folder: Path) -> None:
    joining = Joining(folder)
    joining.open(URL)
    assert stat.S_IMODE(joining.file.stat().st_mode) == 0o600
    authority = (folder / "pki" / "ca.crt").read_bytes()
    expected = (
        f"# podlife node --join {URL} --token {token_in(joining.file)} --ca-hash {authority_hash(authority)}"
    )
    assert joining.file.read_text().splitlines()[0] == expected


def test_the_hash_is_of_the_public_key_as_kubeadm_has_it(folder: Path) -> None:
    pem = (folder / "pki" / "ca.crt").read_bytes()
    key = x509.load_pem_x509_certificate(pem).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert authority_hash(pem) == f"sha256:{sha256(der).hexdigest()}"


@pytest.mark.parametrize(
    ("bind", "names", "url"),
    [
        ("127.0.0.1", (), URL),
        ("127.0.0.1", ("elsewhere",), URL),
        ("0.0.0.0", ("my-host",), "https://my-host:6443"),
        ("::", ("2001:db8::1",), "https://[2001:db8::1]:6443"),
        ("localhost", (), URL),
    ],
)
def test_others_are_told_an_address_that_they_can_reach(bind: str, names: tuple[str, ...], url: str) -> None:
    assert reachable_url(URL, bind, names) == url


@pytest.mark.parametrize(
    ("where", "ca_hash", "options", "told"),
    [
        ("/nowhere/join", "", ConnectionOptions(), "there is no such file"),
        (URL, HASH, ConnectionOptions(), "needs --token"),
        (URL, "", ConnectionOptions(token="t"), "needs --ca-hash or --certificate-authority"),
        (URL, "md5:1", ConnectionOptions(token="t"), "write sha256: and 64 hexadecimal digits"),
    ],
)
def test_what_is_missing_to_join_is_said_before_anything_is_asked(
    tmp_path: Path, where: str, ca_hash: str, options: ConnectionOptions, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        join("n1", tmp_path, where, ca_hash, options)


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PodlifeError, match="does not answer"):
        join("n1", tmp_path, "https://127.0.0.1:1", HASH, ConnectionOptions(token="t"))


@pytest.mark.parametrize("is_alive", [False, True])
def test_a_server_does_not_take_the_token_of_an_up_that_was_killed(folder: Path, is_alive: bool) -> None:
    """The token was to end with that `up`; that of one that runs stays."""
    Joining(folder).open(URL)
    up = UpFolder(folder)
    up.sign(URL)
    if not is_alive:
        holder = json.loads((folder / "up.json").read_text())
        (folder / "up.json").write_text(json.dumps(holder | {"started": holder["started"] - 1}))
    prepare(ApiServerSettings(in_memory=True), folder)
    assert ("system:bootstrap:" in (folder / "tokens.csv").read_text()) is is_alive
    assert Joining(folder).file.exists() is is_alive
