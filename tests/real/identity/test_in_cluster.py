"""A pod reaches the API server as its service account, by the in-cluster configuration of any client library."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.kit.real_parts import part
from tests.real.conftest import require
from tests.real.containerd.conftest import require_containerd
from tests.real.containerd.daemon import containerd_daemon
from tests.real.containerd.image import make_image
from tests.real.identity.in_cluster import ACCOUNT, IMAGE, ask, ask_in, containers


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a volume for a process")
def test_processes_know_who_they_are(tmp_path: Path) -> None:
    require("kubectl")

    assert ask(tmp_path, "process") == dict.fromkeys(containers("process"), ACCOUNT)


def test_containers_know_who_they_are() -> None:
    require("kubectl")
    require_containerd()
    with containerd_daemon() as daemon:
        daemon.import_image(make_image(part("busybox-static"), added={"kubectl": part("kubectl")}), IMAGE)
        address = daemon.make_gateway()
        flags = ("--containerd-socket", str(daemon.socket), "--advertise-address", address)
        done = ask_in(daemon.network, *flags)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(containers("containerd"), ACCOUNT)
