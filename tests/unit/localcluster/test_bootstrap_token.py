"""The bootstrap token of a local cluster, and its join file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from podlife.apiserver.authn import TokenFile
from podlife.apiserver.identities import prepare_identities
from podlife.apiserver.settings import ApiServerSettings
from podlife.clock import SystemClock
from podlife.daemons.join import ca_hash
from podlife.localcluster.bootstrap_token import BootstrapToken, reachable_url

URL = "https://127.0.0.1:6443"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    prepare_identities(ApiServerSettings(), tmp_path, SystemClock())
    return tmp_path


def token_in(file: Path) -> str:
    return str(yaml.safe_load(file.read_text())["users"][0]["user"]["token"])


def test_the_token_of_a_run_gives_one_right_and_ends_with_the_run(folder: Path) -> None:
    token_of_run, tokens = BootstrapToken(folder), TokenFile(folder / "tokens.csv")
    token_of_run.issue(URL)
    token = token_in(token_of_run.join_file)
    user = tokens.find(token)
    assert user is not None
    assert user.groups == ("system:bootstrappers", "system:authenticated")
    token_of_run.revoke()
    assert tokens.find(token) is None
    assert not token_of_run.join_file.exists()


def test_a_token_of_a_run_that_was_killed_counts_no_more(folder: Path) -> None:
    token_of_run, tokens = BootstrapToken(folder), TokenFile(folder / "tokens.csv")
    token_of_run.issue(URL)
    first = token_in(token_of_run.join_file)
    BootstrapToken(folder).issue(URL)
    assert tokens.find(first) is None
    assert len((folder / "tokens.csv").read_text().splitlines()) == 3


def test_the_file_is_for_its_owner_and_has_the_other_way_to_join_at_its_top(folder: Path) -> None:
    token_of_run = BootstrapToken(folder)
    token_of_run.issue(URL)
    assert stat.S_IMODE(token_of_run.join_file.stat().st_mode) == 0o600
    authority = (folder / "pki" / "ca.crt").read_bytes()
    expected = f"# podlife node --join {URL} --token {token_in(token_of_run.join_file)} --ca-hash {ca_hash(authority)}"
    assert token_of_run.join_file.read_text().splitlines()[0] == expected


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
