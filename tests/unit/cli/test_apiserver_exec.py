"""What is prepared before the API server is executed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podlife.apiserver.identities import prepare_identities
from podlife.apiserver.settings import ApiServerSettings
from podlife.cli.apiserver_exec import prepare
from podlife.clock import SystemClock
from podlife.localcluster.bootstrap_token import BootstrapToken
from podlife.localcluster.state_dir import StateDir

URL = "https://127.0.0.1:6443"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    prepare_identities(ApiServerSettings(), tmp_path, SystemClock())
    return tmp_path


@pytest.mark.parametrize("is_alive", [False, True])
def test_a_server_does_not_take_the_token_of_an_up_that_was_killed(folder: Path, is_alive: bool) -> None:
    """The token was to end with that `up`; that of one that runs stays."""
    BootstrapToken(folder).issue(URL)
    up = StateDir(folder)
    up.record_holder(URL)
    if not is_alive:
        holder = json.loads((folder / "up.json").read_text())
        (folder / "up.json").write_text(json.dumps(holder | {"started": holder["started"] - 1}))
    prepare(ApiServerSettings(in_memory=True), folder)
    assert ("system:bootstrap:" in (folder / "tokens.csv").read_text()) is is_alive
    assert BootstrapToken(folder).join_file.exists() is is_alive
