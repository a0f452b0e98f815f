"""The real parts start, answer, work together and end."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from podlife.client import NAMESPACES, PODS, REPLICA_SETS, Bookmark, Client, Flags, load
from tests.kit.real_parts import NotReadyError, Server, Settings, kube_apiserver
from tests.real.conftest import Kubectl, StartControllerManager

PATIENCE_SECONDS = 120


def test_a_kubeconfig_is_for_its_owner_alone(kube: Server) -> None:
    assert stat.S_IMODE(kube.kubeconfig.stat().st_mode) == 0o600


def test_kubectl_is_recent_and_speaks_to_the_server(kube: Server, kubectl: Kubectl) -> None:
    done = kubectl("version", "-o", "json", kubeconfig=kube.kubeconfig)
    versions = json.loads(done.stdout)
    assert versions["serverVersion"]["minor"] == "36"
    assert int(versions["clientVersion"]["minor"]) >= 36


async def test_kube_controller_manager_runs_the_chosen_controllers(
    kube: Server, start_controller_manager: StartControllerManager
) -> None:
    import asyncio
    from contextlib import aclosing

    start_controller_manager(["replicaset-controller"], kube)
    connection = load(Flags(kubeconfig=str(kube.kubeconfig)), {})
    async with Client.connect(connection) as client, asyncio.timeout(PATIENCE_SECONDS):
        namespace = (await client.create(NAMESPACES, {"metadata": {"generateName": "kcm-"}}))["metadata"][
            "name"
        ]
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        await client.create(REPLICA_SETS, {"metadata": {"name": "r"}, "spec": spec}, namespace)
        seen: set[str] = set()
        async with aclosing(client.list_watch(PODS, namespace)) as events:
            while len(seen) < 2:
                event = await anext(events)
                if not isinstance(event, Bookmark):
                    seen.add(event.object["metadata"]["name"])
    assert all(name.startswith("r-") for name in seen)


def test_a_server_that_cannot_start_says_why_and_leaves_no_process(tmp_path: Path) -> None:
    settings = Settings(flags=("--no-such-flag",))
    with pytest.raises(NotReadyError, match="no-such-flag"), kube_apiserver(tmp_path, settings):
        pass
    assert not _processes_that_mention(tmp_path)


def test_a_server_ends_with_its_block(tmp_path: Path) -> None:
    with kube_apiserver(tmp_path) as server:
        assert Path(f"/proc/{server.pid}").exists()
        assert len(_processes_that_mention(tmp_path)) == 2
    assert not _processes_that_mention(tmp_path)


def _processes_that_mention(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in command:
                found.append(int(entry.name))
    return found
