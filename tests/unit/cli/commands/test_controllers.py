"""`podlife controllers`: with what controllers are made, and what is said of mistakes."""

from __future__ import annotations

import re

from podlife.cli.commands.controllers import ControllersElection, SyncOptions
from podlife.cli.commands.out_of_service_options import OutOfServiceOptions
from podlife.client import Client, InProcessTransport
from podlife.controller import ControlPlane
from podlife.daemons.catalog import choose, known_controllers
from podlife.daemons.controllers import ControllerSet, stop_seconds
from podlife.wire import Request, Response
from podlife.workloads import CONTROLLERS
from tests.kit.real_parts import ROOT
from tests.unit.cli.conftest import Refused
from tests.unit.cli.test_main import imports_of, podlife

ALL = [known.name for known in known_controllers()]


def test_the_scheduler_runs_only_where_it_is_named() -> None:
    chosen = [each.name for each in choose(("*", "scheduler"))]
    assert chosen == [name for name in ALL if name not in ("out-of-service", "local-path-provisioner")]
    assert SyncOptions(scheduler_name="mine").of("scheduler") == {"scheduler_name": "mine"}


def test_a_wrong_name_is_said_before_anything_is_connected_to(refused: Refused) -> None:
    line = refused("controllers", "run", "--controllers=deploymnt,replicaset")
    assert "unknown --controllers value 'deploymnt'" in line


def test_the_list_shows_every_name_with_what_it_is_for() -> None:
    lines = podlife("controllers", "list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "SHORT", "WHAT", "IT", "KEEPS"]
    assert [line.split()[0] for line in lines[1:]] == ALL
    assert all(len(line.split(maxsplit=2)) == 3 for line in lines[1:])
    assert podlife("controllers", "list", "--names").stdout.split() == ALL


def test_every_workload_has_a_flag_for_its_workers() -> None:
    syncs = SyncOptions(concurrent_replicaset_syncs=9, concurrent_gc_syncs=7, terminated_pod_gc_threshold=3)
    assert syncs.of("replicaset-controller") == {"workers": 9}
    assert syncs.of("garbage-collector-controller") == {"workers": 7}
    assert syncs.of("pod-garbage-collector-controller") == {"threshold": 3, "quarantine_seconds": 40.0}
    # Of budgets kube-controller-manager works on one at a time, and has no flag for more.
    for name in CONTROLLERS.keys() - {"disruption-controller"}:
        assert syncs.of(name).keys() == {"workers"}, name


def test_nothing_under_way_outlives_a_lost_lease() -> None:
    assert stop_seconds(ControllersElection(leader_elect=False).settings()) == 10
    assert stop_seconds(ControllersElection().settings()) == 2.5
    quick = ControllersElection(
        leader_elect_lease_duration=1.5, leader_elect_renew_deadline=1.0, leader_elect_retry_period=0.5
    )
    assert stop_seconds(quick.settings()) == 0.25


async def test_every_controller_is_made_and_all_its_numbers_are_shown() -> None:
    from prometheus_client import CollectorRegistry, generate_latest

    async def refuse(_: Request) -> Response:
        raise AssertionError("numbers are read, nothing is asked for")

    plane = ControlPlane(Client(InProcessTransport(refuse)))
    fenced = OutOfServiceOptions(fence_command=["true"])
    options = {name: {**SyncOptions().of(name), **fenced.of(name)} for name in ALL}
    work = ControllerSet(plane, known_controllers(), options, stop_seconds=2.5)
    assert [controller.name for controller in plane.controllers] == ALL
    registry = CollectorRegistry()
    work.export(registry)
    read = registry.get_sample_value
    for queue in ("replicaset", "podgc"):
        assert read("workqueue_depth", {"name": queue}) == 0
    workers = {"controller": "replicaset-controller"}
    assert read("podlife_controller_active_workers", workers) == 0
    pods = {"resource": "pods", "view": "podlife.workloads.views.WorkloadPod"}
    assert read("podlife_informer_live", pods) == 0
    assert read("podlife_informer_objects", pods) == 0
    assert read("podlife_informer_lists_total", pods) == 0
    assert read("podlife_gc_live") == 0
    assert "is not synced" in work.complaint
    families = re.findall(r"^# TYPE (\S+)", generate_latest(registry).decode(), re.MULTILINE)
    assert len(families) == len(set(families)), "each is shown once, with all its labels"


def test_the_page_names_every_controller_every_metric_and_the_lease() -> None:
    page = (ROOT / "docs" / "controllers.md").read_text()
    for known in known_controllers():
        assert f"| `{known.name}` | `{known.short}` | {known.about.partition(';')[0]}" in page
    assert ControllersElection().leader_elect_resource_name in page
    shown = podlife("controllers", "run", "--help", COLUMNS="200").stdout
    for flag in re.findall(r"--[a-z-]+", shown):
        name = flag.removeprefix("--no-")
        # Of a family of flags the page names the first and the rest by their ends.
        assert (
            flag in page or name.startswith(("--leader-elect-", "--concurrent-")) or flag in ("--v", "--help")
        )


def test_what_runs_without_metrics_loads_none_and_nobody_elses_controllers() -> None:
    heavy = {"prometheus_client", "rich", "podlife.podgc", "podlife.ownergc", "podlife.workloads.job"}
    flags = ["--controllers=replicaset", "--leader-elect=false", "--token=x", "--server"]
    assert not heavy & imports_of("controllers", "run", *flags, "http://127.0.0.1:1", code=1)
