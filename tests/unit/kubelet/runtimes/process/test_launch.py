"""What a process container is started with, and what is refused before anything exists."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podlife.kubelet.runtime import (
    ContainerConfig,
    InvalidContainerError,
    Mount,
    Resources,
    SandboxConfig,
    User,
)
from podlife.kubelet.runtimes.process import ProcessSettings
from podlife.kubelet.runtimes.process import launch as launching
from podlife.kubelet.runtimes.process.cgroups import Cgroups
from podlife.kubelet.runtimes.process.launch import LaunchContext, launch_of

SANDBOX = SandboxConfig("uid", "default", "web", hostname="web-host")
CONFIG = ContainerConfig("main", image="nginx:1", command=("run",))
PLACE = LaunchContext("id-1", Path("/root-of-runtime/containers/id-1"), Path("/logs/main/0.log"))


def launch(config: ContainerConfig, cgroups: Cgroups | None = None) -> dict[str, Any]:
    return launch_of(SANDBOX, config, PLACE, ProcessSettings(Path("/root-of-runtime")), cgroups)


def test_command_and_arguments_are_what_runs() -> None:
    assert launch(replace(CONFIG, args=("-v", "x")))["argv"] == ["run", "-v", "x"]


@pytest.mark.parametrize("command", [(), ("",)])
def test_a_container_without_command_is_refused_with_what_to_do(command: tuple[str, ...]) -> None:
    with pytest.raises(InvalidContainerError) as refused:
        launch(replace(CONFIG, command=command, args=("-v",)))
    assert str(refused.value) == (
        "container 'main' has no command: this node runs commands of its own machine, not the image 'nginx:1'; "
        "set command (kubectl run NAME --image=nginx:1 --command -- PROGRAM), or use a node with --runtime containerd"
    )


def test_nothing_of_the_agents_environment_reaches_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "secret")
    env = launch(replace(CONFIG, env=(("A", "1"), ("PATH", "/mine"))))["env"]
    assert env == {
        "A": "1",
        "PATH": "/mine",
        "HOME": env["HOME"],
        "HOSTNAME": "web-host",
        "PODLIFE_CONTAINER_ID": "id-1",
        "PODLIFE_TERMINATION_LOG": "/root-of-runtime/containers/id-1/termination-log",
    }


def test_a_container_cannot_pass_for_another_one() -> None:
    env = launch(replace(CONFIG, env=(("PODLIFE_CONTAINER_ID", "other"),)))["env"]
    assert env["PODLIFE_CONTAINER_ID"] == "id-1"


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (replace(CONFIG, command=("a\0b",)), "NUL character"),
        (replace(CONFIG, env=(("A=B", "x"),)), "environment variable 'A=B'"),
        (replace(CONFIG, env=(("A", "x\0y"),)), "environment variable 'A'"),
        (replace(CONFIG, working_dir="relative"), "'relative' of container 'main' is not an absolute path"),
        (replace(CONFIG, stop_signal="SIGNOPE"), "stop signal 'SIGNOPE'"),
        (replace(CONFIG, mounts=(Mount("/", "/x"),)), "cannot mount at '/'|only an agent with"),
        (replace(CONFIG, mounts=(Mount("a/b", "/x"),)), "absolute path|only an agent with"),
        (replace(CONFIG, mounts=(Mount("/a/../b", "/x"),)), "absolute path|only an agent with"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_reason(config: ContainerConfig, text: str) -> None:
    with pytest.raises(InvalidContainerError, match=text):
        launch(config)


def test_an_agent_that_is_not_root_runs_nobody_as_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "getgid", lambda: 1000)
    monkeypatch.setattr(launching, "can_mount", lambda: False)
    assert launch(replace(CONFIG, user=User(1000, 1000)))["user"] is None
    with pytest.raises(InvalidContainerError, match="as user 0"):
        launch(replace(CONFIG, user=User(0)))
    with pytest.raises(InvalidContainerError, match="only an agent with the rights of root can mount"):
        launch(replace(CONFIG, mounts=(Mount("/data", "/x"),)))


def test_an_agent_that_cannot_mount_says_where_the_service_account_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launching, "can_mount", lambda: False)
    account = Mount("/var/run/secrets/kubernetes.io/serviceaccount", "/volume", readonly=True)
    launched = launch(replace(CONFIG, mounts=(account,)))
    assert (launched["mounts"], launched["env"]["PODLIFE_SERVICE_ACCOUNT"]) == ([], "/volume")
    with pytest.raises(InvalidContainerError, match="mounts /data: only an agent with the rights of root"):
        launch(replace(CONFIG, mounts=(account, Mount("/data", "/x"))))


def test_an_agent_that_is_root_gives_up_every_group_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert launch(replace(CONFIG, user=User(12345)))["user"] == {"uid": 12345, "gid": 0, "groups": []}
    wanted = User(12345, 7, (8, 9))
    assert launch(replace(CONFIG, user=wanted))["user"] == {"uid": 12345, "gid": 7, "groups": [8, 9]}


def test_working_directory_stop_signal_and_escalation() -> None:
    plain = launch(CONFIG)
    assert plain["cwd"] == "/root-of-runtime/containers/id-1/work"
    assert (plain["stop_signal"], plain["no_new_privileges"]) == (signal.SIGTERM, False)
    own = launch(replace(CONFIG, working_dir="/srv", stop_signal="SIGINT", allow_privilege_escalation=False))
    assert (own["cwd"], own["stop_signal"], own["no_new_privileges"]) == ("/srv", signal.SIGINT, True)


def test_memory_is_limited_by_rlimit_only_where_there_are_no_groups() -> None:
    config = replace(CONFIG, resources=Resources(memory_limit_bytes=1000))
    without = launch(config)
    assert (without["cgroups"], without["rlimits_without_cgroups"]) == ([], {"RLIMIT_DATA": 1000})
    within = launch(config, Cgroups(1, {"memory": Path("/cg/memory")}))
    assert within["cgroups"] == [{"path": "/cg/memory/id-1", "values": {"memory.limit_in_bytes": "1000"}}]
