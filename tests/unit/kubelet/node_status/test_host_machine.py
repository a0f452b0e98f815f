"""A machine read from its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.errors import ConfigError
from podlife.kubelet.node_status import HostMachine


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_facts_and_usage_are_those_of_the_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        "proc/meminfo",
        "MemTotal: 2048 kB\nMemAvailable: 512 kB\nSwapTotal: 4 kB\nHugePages_Total: 3\n",
    )
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
    with pytest.raises(ConfigError, match="does not tell how much memory"):
        HostMachine(tmp_path, root=tmp_path).facts()
    with pytest.raises(ConfigError, match="cannot be looked at: No such file"):
        HostMachine(tmp_path / "none").facts()


def test_this_machine_can_be_a_node(tmp_path: Path) -> None:
    facts = HostMachine(tmp_path).facts()
    assert facts.cores >= 1
    assert facts.memory_bytes > 2**20
    assert facts.architecture not in ("x86_64", "aarch64")
    assert facts.kernel_version
