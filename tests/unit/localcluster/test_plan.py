"""From the settings of a local cluster to its components."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podlife.localcluster.plan import ClusterPlan, LocalClusterSettings, keep_port
from podlife.localcluster.state_dir import StateDir


def plan_of(**settings: Any) -> ClusterPlan:
    made = replace(LocalClusterSettings(), **settings)
    return ClusterPlan(made, StateDir(Path("/data")))


async def test_every_node_has_a_process_and_a_folder_of_its_own() -> None:
    parts = plan_of(nodes=3).make_nodes()
    assert [each.name for each in parts] == ["node-0", "node-1", "node-2"]
    assert len({each.config["data"] for each in parts}) == 3
    assert len({each.log for each in parts}) == 3


async def test_simulated_nodes_share_a_process_and_have_no_pods_to_stop() -> None:
    plan = plan_of(nodes=100, runtime="sim")
    [fleet] = plan.make_nodes()
    assert (fleet.kind, fleet.config["nodes"]) == ("hollow-nodes", 100)
    assert plan.make_pod_shutdowns() == []


async def test_without_nodes_there_is_nothing_to_run() -> None:
    assert plan_of(nodes=0).make_nodes() == plan_of(nodes=0, runtime="sim").make_nodes() == []


async def test_every_order_can_be_sent() -> None:
    plan = plan_of(nodes=1)
    parts = [plan.make_apiserver(), plan.make_controllers(), *plan.make_nodes(), *plan.make_pod_shutdowns()]
    for part in parts:
        assert json.loads(json.dumps(part.config)) == part.config


async def test_the_page_has_a_random_token_and_the_settings_of_the_collector() -> None:
    first, second = plan_of(pod_gc_quarantine_seconds=7.0).make_ui(), plan_of().make_ui()
    assert first is not None
    assert second is not None
    assert first.config["quarantine_seconds"] == 7.0
    assert first.config["token"] != second.config["token"]
    assert json.loads(json.dumps(first.config)) == first.config
    assert plan_of(ui=False).make_ui() is None


async def test_a_server_that_is_started_again_keeps_the_port_it_found() -> None:
    apiserver = plan_of(port=0).make_apiserver()
    keep_port(apiserver, "https://127.0.0.1:41234")
    assert apiserver.config["port"] == 41234


@pytest.mark.parametrize(
    ("controllers", "needs"),
    [(("*",), True), (("*", "-serviceaccount"), False), (("serviceaccount", "root-ca-cert-publisher"), True)],
)
async def test_pods_need_accounts_where_controllers_create_them(
    controllers: tuple[str, ...], needs: bool
) -> None:
    plan = plan_of(controllers=controllers)
    assert plan.make_apiserver().config["needs_accounts"] == needs
    options = plan.make_controllers().config["options"]
    assert options["serviceaccount-token-controller"] == {"private_key_file": "/data/pki/sa.key"}


@pytest.mark.parametrize(
    ("settings", "advertised"),
    [
        ({}, ""),
        ({"runtime": "containerd"}, "198.51.100.7"),
        ({"runtime": "containerd", "bind": "0.0.0.0"}, ""),
        ({"runtime": "containerd", "advertise_address": "10.0.0.1"}, "10.0.0.1"),
    ],
)
async def test_server_is_advertised_to_pods_with_a_network_of_their_own(
    settings: dict[str, Any], advertised: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podlife.daemons.node.own_address", lambda _: "198.51.100.7")
    assert plan_of(**settings).make_apiserver().config["advertise_address"] == advertised


@pytest.mark.parametrize(
    ("given", "path"), [(None, "/data/audit/audit.log"), ("", ""), ("/elsewhere/log", "/elsewhere/log")]
)
async def test_an_audit_log_is_kept_in_the_data_folder_unless_told_otherwise(
    given: str | None, path: str
) -> None:
    config = plan_of(audit_log_path=given).make_apiserver().config
    assert (config["audit_log_path"], config["audit_log_max_mb"], config["audit_log_max_backups"]) == (
        path,
        10,
        3,
    )
