"""The control socket: what is said of a cluster that does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.errors import ConfigError
from podlife.localcluster.control_socket import ask
from podlife.localcluster.state_dir import StateDir


def test_an_up_that_is_about_to_stop_is_not_said_to_be_none(tmp_path: Path) -> None:
    folder = StateDir(tmp_path)
    with pytest.raises(ConfigError, match="no `podlife up` runs on"):
        ask(folder, {"do": "status"})
    folder.record_holder("https://127.0.0.1:6443")
    with pytest.raises(ConfigError, match="is starting or stopping; try again"):
        ask(folder, {"do": "status"})
    folder.clear_holder()
    with pytest.raises(ConfigError, match="no `podlife up` runs on"):
        ask(folder, {"do": "status"})
