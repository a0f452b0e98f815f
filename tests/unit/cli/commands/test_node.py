"""The options of `podlife node`."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Refused


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--name", "Not A Name"],
            ["invalid node name 'Not A Name'", "letters, digits, dots and dashes"],
        ),
        (["--runtime", "docker"], ["unknown runtime 'docker'; choose from process, containerd, sim"]),
        (["--node-ip", "here"], ["invalid IP address 'here': expected an address such as 192.0.2.1"]),
        (["--labels", "disk"], ["invalid --labels value 'disk': expected KEY=VALUE"]),
        (["--register-with-taints", "a=b:Never"], ["expected KEY=VALUE:EFFECT", "NoExecute"]),
        (["--max-pods", "none"], ["invalid value 'none': expected a whole number"]),
        (["--listen", "here"], ["invalid --listen address 'here'"]),
    ],
)
def test_a_wrong_option_is_one_line(refused: Refused, flags: list[str], words: list[str]) -> None:
    line = refused("node", *flags)
    assert all(word in line for word in words), line
