"""What is asked of the daemon, in CRI's numbers. Here, and not with the unit tests, since it needs protobuf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podlife.kubelet.runtime import ContainerConfig, InvalidContainerError, Resources, SandboxConfig
from podlife.kubelet.runtimes.containerd import ContainerdSettings
from podlife.kubelet.runtimes.containerd.messages import message
from podlife.kubelet.runtimes.containerd.requests import (
    RECORD_ANNOTATION,
    ContainerRecord,
    container_request,
    linux_resources,
    reported_resources,
    sandbox_request,
    selector,
)

SETTINGS = ContainerdSettings(Path("/var/lib/podlife/node-a"))
POD = SandboxConfig("uid", "default", "web")


def asked(**fields: Any) -> Any:
    record = ContainerRecord(ContainerConfig("c", "image", **fields), "sandbox", "uid")
    return container_request(POD, record, SETTINGS)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("SIGTERM", 0),
        ("SIGABRT", 1),
        ("SIGHUP", 8),
        ("SIGINT", 10),
        ("SIGKILL", 13),
        ("SIGQUIT", 18),
        ("SIGUSR1", 29),
        ("USR2", 30),
        ("SIGWINCH", 32),
        ("SIGRTMIN", 35),
        ("SIGRTMIN+1", 36),
        ("SIGRTMIN+15", 50),
        ("SIGRTMAX-14", 51),
        ("SIGRTMAX-1", 64),
        ("SIGRTMAX", 65),
    ],
)
def test_a_stop_signal_has_the_number_that_cri_gives_it(name: str, number: int) -> None:
    assert asked(stop_signal=name).stop_signal == number


@pytest.mark.parametrize(
    "name", ["", "SIG", "SIGNONE", "SIGRTMIN+16", "SIGRTMAX-15", "SIGRTMAX+1", "SIGTERM+1", "9"]
)
def test_a_stop_signal_that_cri_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidContainerError, match="unknown stop signal"):
        asked(stop_signal=name)


@pytest.mark.parametrize(
    ("wanted", "shares", "quota", "memory"),
    [
        (Resources(), 2, 0, 0),
        (Resources(cpu_request_millis=0), 2, 0, 0),
        (Resources(cpu_request_millis=1000, cpu_limit_millis=1500), 1024, 150_000, 0),
        (Resources(cpu_limit_millis=1), 2, 1000, 0),
        (Resources(cpu_limit_millis=500), 512, 50_000, 0),
        (Resources(cpu_request_millis=10**9, memory_limit_bytes=1 << 40), 262_144, 0, 1 << 40),
    ],
)
def test_bounds_are_in_the_words_of_the_kernel(
    wanted: Resources, shares: int, quota: int, memory: int
) -> None:
    request = asked(resources=wanted).linux.resources
    assert (request.cpu_shares, request.cpu_quota, request.memory_limit_in_bytes) == (shares, quota, memory)
    assert request.cpu_period == (100_000 if quota else 0)


def test_resources_that_a_daemon_reports_are_known_to_the_next_agent() -> None:
    created = Resources(100, 500, 1 << 20, 7, 1 << 19)
    for resized in (
        created,
        Resources(150, 1000, 1 << 21, 7, 1 << 19),
        Resources(None, None, None, 7, 1 << 19),
    ):
        status = message("ContainerStatus")(
            resources=message("ContainerResources")(linux=linux_resources(resized))
        )
        assert reported_resources(status, created) == resized
    assert reported_resources(message("ContainerStatus")(), created) == created


def test_text_that_protobuf_cannot_carry_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidContainerError, match="cannot be asked for"):
        asked(args=("\ud800",))


def test_what_a_user_put_into_labels_does_not_make_a_container_anybody_elses() -> None:
    request = asked(
        labels={**selector(ContainerdSettings(Path("/other"))), "app": "web"},
        annotations={RECORD_ANNOTATION: "x"},
    )
    assert dict(request.labels).items() >= (selector(SETTINGS, "uid") | {"app": "web"}).items()
    assert request.annotations[RECORD_ANNOTATION] != "x"


def test_a_sandbox_in_the_nodes_network_gets_no_name_of_its_own() -> None:
    config = SandboxConfig("uid", "default", "n" * 70)
    assert sandbox_request(config, SETTINGS).hostname == "n" * 63
    hosted = SandboxConfig("uid", "default", "web", hostname="web", host_network=True)
    request = sandbox_request(hosted, SETTINGS)
    assert request.hostname == ""
    assert request.linux.security_context.namespace_options.network == 2


def test_a_field_that_the_table_does_not_have_is_left_away() -> None:
    read = message("VersionResponse").FromString(b"\x0a\x01x\xaa\x06\x03new\x1a\x03two")
    assert (read.version, read.runtime_version) == ("x", "two")
