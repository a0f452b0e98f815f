"""The options of `podlife node`."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Refused


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--name", "Not A Name"],
            ["'Not A Name' is no name for a node", "letters, digits, dots and dashes"],
        ),
        (["--runtime", "docker"], ["'docker' is no runtime: there are process, containerd, sim"]),
        (["--node-ip", "here"], ["'here' is no IP address: write it as 192.0.2.1"]),
        (["--labels", "disk"], ["--labels 'disk' is no label: write KEY=VALUE"]),
        (["--register-with-taints", "a=b:Never"], ["is no taint: write KEY=VALUE:EFFECT", "NoExecute"]),
        (["--max-pods", "none"], ["'none' is not a whole number"]),
        (["--listen", "here"], ["--listen 'here' is no address"]),
    ],
)
def test_a_wrong_option_is_one_line(refused: Refused, flags: list[str], words: list[str]) -> None:
    line = refused("node", *flags)
    assert all(word in line for word in words), line
