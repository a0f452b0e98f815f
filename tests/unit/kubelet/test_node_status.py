"""What a node tells of itself and when there is something to tell; and the machine under it, read from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podlife.errors import ConfigError
from podlife.kubelet.node_status import HostMachine
from podlife.kubelet.node_status.conditions import Pressure, ready_problem, with_own_conditions
from podlife.kubelet.node_status.machine import MachineFacts, MachineUsage
from podlife.kubelet.node_status.observer import PressureGauge
from podlife.kubelet.node_status.settings import NodeSettings, Thresholds
from podlife.kubelet.node_status.status import (
    Observation,
    allocatable,
    capacity,
    is_same_status,
    node_status,
    status_patch,
)

GIB = 2**30
FACTS = MachineFacts(2, 8 * GIB, 10 * GIB)
NOW, LATER = "2030-01-01T00:00:00Z", "2030-01-01T00:05:00Z"


def status_of(old: dict[str, Any], now: str = NOW, **changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"facts": FACTS, "runtime_version": "r://1", **changed}
    seen = Observation(**fields)
    return node_status(old, seen, NodeSettings("n", addresses=("192.0.2.1", "2001:db8::1")), now)[0]


def test_huge_pages_are_taken_from_the_memory_that_pods_get() -> None:
    facts = MachineFacts(2, 8 * GIB, 10 * GIB, hugepages=((2**21, 512), (GIB, 2)))
    amounts = capacity(facts, NodeSettings("n"), {})
    assert (amounts["hugepages-2Mi"], amounts["hugepages-1Gi"]) == ("1Gi", "2Gi")
    without_thresholds = NodeSettings("n", thresholds=Thresholds(None, None))
    assert allocatable(amounts, facts, without_thresholds)["memory"] == "5Gi"


def test_what_is_reserved_or_kept_free_is_not_for_pods_and_nothing_is_below_zero() -> None:
    settings = NodeSettings("n", reserved={"cpu": "300m", "memory": "20Gi", "example.com/gpu": "1"})
    amounts = allocatable(capacity(FACTS, settings, {}), FACTS, settings)
    assert amounts["cpu"] == "1700m"
    assert amounts["memory"] == "0"
    assert amounts["ephemeral-storage"] == "9Gi"
    assert "example.com/gpu" not in amounts


def test_a_status_told_again_is_the_same_whatever_the_time_and_however_amounts_are_written() -> None:
    old = status_of({})
    assert is_same_status(old, status_of(old, LATER))
    old["capacity"]["memory"] = "8192Mi"
    assert is_same_status(old, status_of(old, LATER))


def test_features_are_declared_once_and_a_server_that_drops_them_is_not_written_to_more_often() -> None:
    seen = Observation(FACTS, "r://1")
    settings = NodeSettings("n", declared_features=("ExtendWebSocketsToKubelet",))
    new, _ = node_status({}, seen, settings, NOW)
    assert new["declaredFeatures"] == ["ExtendWebSocketsToKubelet"]
    assert "declaredFeatures" not in status_patch(new, node_status(new, seen, settings, LATER)[0])
    dropped = {name: value for name, value in new.items() if name != "declaredFeatures"}
    again, _ = node_status(dropped, seen, settings, LATER)
    assert is_same_status(dropped, again)
    assert status_patch(dropped, again)["declaredFeatures"] == ["ExtendWebSocketsToKubelet"]


@pytest.mark.parametrize(
    "change",
    [
        {"problem": "down"},
        {"pressure": Pressure(pid=True)},
        {"runtime_version": "r://2"},
        {"facts": MachineFacts(3, 8 * GIB, 10 * GIB)},
        {"facts": MachineFacts(2, 8 * GIB, 10 * GIB, boot_id="b")},
    ],
)
def test_a_status_that_differs_in_anything_is_another(change: dict[str, Any]) -> None:
    old = status_of({})
    assert not is_same_status(old, status_of(old, LATER, **change))


def test_a_patch_holds_only_what_has_changed_and_the_nodes_own_conditions() -> None:
    old = status_of({"conditions": [{"type": "Mine", "status": "True"}]})
    patch = status_patch(old, status_of(old, LATER))
    assert patch.keys() == {"conditions"}
    own = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    assert [each["type"] for each in patch["conditions"]] == own
    assert status_patch({}, old).keys() == {
        "addresses",
        "allocatable",
        "capacity",
        "conditions",
        "daemonEndpoints",
        "declaredFeatures",
        "nodeInfo",
    }


def test_both_addresses_of_a_node_with_two_survive_the_merge() -> None:
    addresses = status_patch({}, status_of({}))["addresses"]
    assert [each.get("address") for each in addresses] == ["192.0.2.1", "2001:db8::1", "192.0.2.1", None]
    assert addresses[-1] == {"$patch": "replace"}


def test_a_node_named_by_its_address_has_it() -> None:
    seen = Observation(FACTS, "r://1")
    status, _ = node_status({}, seen, NodeSettings("192.0.2.7"), NOW)
    assert status["addresses"][0] == {"type": "InternalIP", "address": "192.0.2.7"}


def test_a_transition_has_its_time_and_a_heartbeat_keeps_it() -> None:
    first, events = with_own_conditions((), Pressure(), "", NOW)
    assert events == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]
    again, events = with_own_conditions(first, Pressure(), "", LATER)
    assert not events
    assert {each["lastTransitionTime"] for each in again} == {NOW}
    assert {each["lastHeartbeatTime"] for each in again} == {LATER}
    down, events = with_own_conditions(again, Pressure(memory=True), "no", LATER)
    assert events == ["NodeHasInsufficientMemory", "NodeNotReady"]
    assert {each["type"] for each in down if each["lastTransitionTime"] == LATER} == {
        "MemoryPressure",
        "Ready",
    }


def test_problems_are_told_each_once() -> None:
    assert ready_problem(()) == ""
    assert ready_problem(["a", "", "a"]) == "a"
    assert ready_problem(["a", "b", "a"]) == "[a, b]"


def test_what_is_not_known_is_no_shortage_and_thresholds_may_be_off() -> None:
    gauge = PressureGauge(Thresholds(), hold_seconds=10)
    assert gauge.read(MachineUsage(), 0) == Pressure()
    off = PressureGauge(Thresholds(None, None, None, None), hold_seconds=10)
    assert off.read(MachineUsage(0, 0.0, 0.0, 0.0), 0) == Pressure()


def test_a_shortage_is_held_from_its_last_sight() -> None:
    gauge = PressureGauge(Thresholds(memory_bytes=100, pids_percent=5.0), hold_seconds=10)
    assert gauge.read(MachineUsage(99, inodes_free_percent=1.0, pids_free_percent=1.0), 0) == Pressure(
        memory=True, disk=True, pid=True
    )
    assert gauge.read(MachineUsage(99), 9) == Pressure(memory=True, disk=True, pid=True)
    assert gauge.read(MachineUsage(100), 18) == Pressure(memory=True)
    assert gauge.read(MachineUsage(100), 19) == Pressure()


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_facts_and_usage_are_those_of_the_files(tmp_path: Path) -> None:
    memory = "MemTotal: 2048 kB\nMemAvailable: 512 kB\nSwapTotal: 4 kB\nHugePages_Total: 3\n"
    write(tmp_path, "proc/meminfo", memory)
    write(tmp_path, "etc/machine-id", "abc\n")
    write(tmp_path, "proc/sys/kernel/random/boot_id", "boot\n")
    write(tmp_path, "proc/sys/kernel/pid_max", "200\n")
    write(tmp_path, "proc/loadavg", "0.1 0.2 0.3 1/50 7\n")
    write(tmp_path, "etc/os-release", 'NAME=x\nPRETTY_NAME="An OS 1"\n')
    write(tmp_path, "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "5\n")
    machine = HostMachine(tmp_path, root=tmp_path)
    facts = machine.facts()
    assert (facts.memory_bytes, facts.swap_bytes) == (2048 * 1024, 4096)
    assert (facts.machine_id, facts.boot_id, facts.os_image) == ("abc", "boot", "An OS 1")
    assert facts.hugepages == ((2**21, 5),)
    assert facts.storage_bytes > 0
    usage = machine.usage()
    assert (usage.memory_free_bytes, usage.pids_free_percent) == (512 * 1024, 75.0)
    assert usage.storage_free_percent is not None


def test_facts_are_read_once_and_usage_each_time(tmp_path: Path) -> None:
    write(tmp_path, "proc/meminfo", "MemTotal: 2 kB\nMemAvailable: 2 kB\n")
    machine = HostMachine(tmp_path, root=tmp_path)
    before = machine.facts()
    write(tmp_path, "proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 1 kB\n")
    assert machine.facts() is before
    assert machine.usage().memory_free_bytes == 1024


def test_a_machine_without_memory_or_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no MemTotal"):
        HostMachine(tmp_path, root=tmp_path).facts()
    with pytest.raises(ConfigError, match=r"cannot access the folder .*: No such file"):
        HostMachine(tmp_path / "none").facts()


def test_this_machine_can_be_a_node(tmp_path: Path) -> None:
    facts = HostMachine(tmp_path).facts()
    assert facts.cores >= 1
    assert facts.memory_bytes > 2**20
    assert facts.architecture not in ("x86_64", "aarch64")
    assert facts.kernel_version
