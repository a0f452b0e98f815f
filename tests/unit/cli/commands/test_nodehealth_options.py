"""The flags of node health, its place among the controllers, and its numbers."""

from __future__ import annotations

import dataclasses
import re

import pytest

from podlife.cli.commands.nodehealth_options import NodeHealthOptions
from podlife.daemons.catalog import choose
from podlife.nodehealth import NodeHealthSettings
from podlife.nodehealth.zones import ZoneCount
from tests.kit.real_parts import ROOT
from tests.unit.cli.conftest import Refused

BOTH = ["node-lifecycle-controller", "taint-eviction-controller"]


def names(*words: str) -> list[str]:
    return [each.name for each in choose(words)]


def test_one_word_names_both_and_leaves_out_both() -> None:
    assert names("nodehealth") == BOTH
    assert names("nodelifecycle") == BOTH[:1]
    assert not set(BOTH) & set(names("*", "-nodehealth"))
    assert names("nodehealth", "replicaset") == ["replicaset-controller", *BOTH]


def test_without_flags_the_settings_are_the_defaults() -> None:
    options = NodeHealthOptions()
    assert options.of("node-lifecycle-controller") == {"settings": NodeHealthSettings()}
    assert options.of("taint-eviction-controller") == options.of("replicaset-controller") == {}


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("--node-monitor-grace-period=40", "invalid duration '40': expected 40s"),
        ("--node-monitor-period=0", "duration must be positive: '0'"),
        ("--node-startup-grace-period=-1s", "duration must be positive: '-1s'"),
        ("--node-eviction-rate=fast", "invalid value 'fast': expected a rate in nodes per second"),
        ("--secondary-node-eviction-rate=-1", "invalid value '-1': expected a rate"),
        ("--node-eviction-rate=nan", "invalid value 'nan': expected a rate"),
        ("--unhealthy-zone-threshold=55", "invalid value '55': expected a share between 0 and 1"),
        ("--large-cluster-size-threshold=1.5", "invalid value '1.5': expected a whole number of 0 or more"),
    ],
)
def test_a_flag_that_cannot_be_is_one_line(refused: Refused, flag: str, line: str) -> None:
    said = refused("controllers", "run", "--controllers=nodehealth", flag)
    assert line in said
    assert flag.partition("=")[0] in said


async def test_its_numbers_have_kube_controller_managers_names() -> None:
    """NL-57, NL-78 and TE-20."""
    from prometheus_client import CollectorRegistry

    from podlife.nodehealth.metrics import EvictionMetrics, NodeMetrics
    from podlife.nodehealth.prometheus import export_node_lifecycle, export_taint_eviction

    lifecycle, eviction = NodeMetrics(), EvictionMetrics()
    registry = CollectorRegistry()
    export_node_lifecycle(registry, lifecycle)
    export_taint_eviction(registry, eviction)
    lifecycle.evictions["z"] += 2
    lifecycle.set_zones({"z": ZoneCount(3, 1)})
    eviction.deletions = 5
    eviction.delay_seconds.observe(0.2)
    read, zone = registry.get_sample_value, {"zone": "z"}
    assert read("node_collector_evictions_total", zone) == 2
    assert read("node_collector_zone_size", zone) == 4
    assert read("node_collector_zone_health", zone) == 75
    assert read("node_collector_unhealthy_nodes_in_zone", zone) == 1
    assert read("taint_eviction_controller_pod_deletions_total") == 5
    assert read("taint_eviction_controller_pod_deletion_duration_seconds_count") == 1
    assert read("node_collector_update_all_nodes_health_duration_seconds_count") == 0


def test_the_page_names_every_flag_with_its_default_and_every_metric() -> None:
    page = (ROOT / "docs" / "node-health.md").read_text()
    shown = {40.0: "40s", 5.0: "5s", 60.0: "1m"}
    for option in dataclasses.fields(NodeHealthOptions):
        assert isinstance(option.default, float | int)
        default = shown.get(option.default, f"{option.default:g}")
        assert f"| `--{option.name.replace('_', '-')}` | {default} |" in page
    source = (ROOT / "src" / "podlife" / "nodehealth" / "prometheus.py").read_text()
    for name in re.findall(r'"((?:node_collector|taint_eviction_controller)_[a-z_]+)"', source):
        assert name in page, name
