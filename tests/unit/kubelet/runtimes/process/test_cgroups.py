"""Where control groups are found and what is written into them, for both versions; on made-up file systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.kubelet.runtime import Resources
from podlife.kubelet.runtimes.process.cgroups import Cgroups, discover

ALL = Resources(cpu_request_millis=250, cpu_limit_millis=500, memory_limit_bytes=1 << 20, pids_limit=7)


def proc(folder: Path, mountinfo: str, cgroup: str) -> Path:
    (folder / "proc").mkdir()
    (folder / "proc" / "mountinfo").write_text(mountinfo)
    (folder / "proc" / "cgroup").write_text(cgroup)
    return folder / "proc"


def version_2(folder: Path) -> Path:
    return proc(folder, f"30 25 0:27 / {folder}/cg rw - cgroup2 none rw\n", "0::/agent.service\n")


def test_version_1_makes_a_folder_below_the_agents_own_group_of_each_controller(tmp_path: Path) -> None:
    (tmp_path / "memory" / "agent").mkdir(parents=True)
    (tmp_path / "cpu").mkdir()
    found = discover(
        proc(
            tmp_path,
            f"30 25 0:27 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
            f"31 25 0:28 / {tmp_path}/cpu rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
            f"32 25 0:29 / {tmp_path}/unified rw - cgroup2 cgroup2 rw\n",
            "4:memory:/agent\n2:cpu,cpuacct:/\n0::/\n",
        )
    )
    assert found == Cgroups(1, {"memory": tmp_path / "memory/agent/podlife", "cpu": tmp_path / "cpu/podlife"})
    assert (tmp_path / "memory/agent/podlife").is_dir()


def test_a_group_that_this_mount_does_not_show_is_the_top_of_the_mount(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    mountinfo = f"30 25 0:27 /docker/abc {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
    found = discover(proc(tmp_path, mountinfo, "4:memory:/docker/abc\n"))
    assert found == Cgroups(1, {"memory": tmp_path / "memory/podlife"})


def test_version_2_hands_the_controllers_down(tmp_path: Path) -> None:
    (tmp_path / "cg" / "agent.service").mkdir(parents=True)
    found = discover(version_2(tmp_path))
    parent = tmp_path / "cg/agent.service/podlife"
    assert found == Cgroups(2, {"cpu": parent, "memory": parent, "pids": parent})
    for folder in (parent.parent, parent):
        assert (folder / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_version_2_takes_the_top_where_the_agents_own_group_has_processes(tmp_path: Path) -> None:
    (tmp_path / "cg" / "agent.service").mkdir(parents=True)
    # What the kernel answers with EBUSY is here a folder, which cannot be written to either.
    (tmp_path / "cg" / "agent.service" / "cgroup.subtree_control").mkdir()
    found = discover(version_2(tmp_path))
    assert found is not None
    assert found.parents["memory"] == tmp_path / "cg/podlife"


@pytest.mark.parametrize(
    "mountinfo", ["", "30 25 0:27 / /nowhere/at/all rw - cgroup2 none rw\n", "nonsense\n"]
)
def test_where_nothing_can_be_made_there_are_no_groups(tmp_path: Path, mountinfo: str) -> None:
    assert discover(proc(tmp_path, mountinfo, "0::/\n")) is None
    assert discover(tmp_path / "missing") is None


def test_values_of_version_1(tmp_path: Path) -> None:
    groups = Cgroups(1, {name: Path("/cg") / name for name in ("cpu", "memory", "pids")}).groups("id", ALL)
    assert groups == [
        {
            "path": "/cg/cpu/id",
            "values": {"cpu.shares": "256", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"},
        },
        {"path": "/cg/memory/id", "values": {"memory.limit_in_bytes": "1048576"}},
        {"path": "/cg/pids/id", "values": {"pids.max": "7"}},
    ]


def test_values_of_version_2_are_in_one_group() -> None:
    groups = Cgroups(2, dict.fromkeys(("cpu", "memory", "pids"), Path("/cg"))).groups("id", ALL)
    assert groups == [
        {
            "path": "/cg/id",
            "values": {
                "cpu.weight": "10",
                "cpu.max": "50000 100000",
                "memory.max": "1048576",
                "pids.max": "7",
            },
        }
    ]


def test_a_container_without_limits_gets_no_group_and_the_smallest_quota_is_a_millisecond() -> None:
    groups = Cgroups(1, {"cpu": Path("/cg")})
    assert groups.groups("id", Resources()) == []
    assert groups.groups("id", Resources(memory_limit_bytes=5)) == []
    [least] = groups.groups("id", Resources(cpu_limit_millis=1, cpu_request_millis=0))
    assert (least["values"]["cpu.cfs_quota_us"], least["values"]["cpu.shares"]) == ("1000", "2")
