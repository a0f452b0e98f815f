from __future__ import annotations

import pytest

from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.printers import PLAIN
from podlife.apiserver.resource import Resource
from podlife.apiserver.resource_table import RESOURCES, STORED
from podlife.apiserver.strategies import SELECTABLE
from podlife.apiserver.strategies.strategy import Strategy

CATALOG = ResourceCatalog()


def test_resource_is_found_by_its_whole_name_only() -> None:
    deployments = CATALOG.find("apps", "v1", "deployments")
    assert deployments is not None
    assert (deployments.kind, deployments.key, deployments.api_version) == (
        "Deployment",
        "deployments.apps",
        "apps/v1",
    )
    assert CATALOG.find("", "v1", "deployments") is None
    assert CATALOG.find("apps", "v1beta1", "deployments") is None


def test_every_row_has_a_name_of_its_own() -> None:
    names = [(row.group, row.version, row.plural) for row in RESOURCES]
    assert len(set(names)) == len(names)


def test_groups_come_in_the_order_of_the_real_server() -> None:
    assert CATALOG.group_versions == (
        ("", "v1"),
        ("apiregistration.k8s.io", "v1"),
        ("apps", "v1"),
        ("events.k8s.io", "v1"),
        ("authentication.k8s.io", "v1"),
        ("authorization.k8s.io", "v1"),
        ("autoscaling", "v2"),
        ("autoscaling", "v1"),
        ("batch", "v1"),
        ("certificates.k8s.io", "v1"),
        ("networking.k8s.io", "v1"),
        ("policy", "v1"),
        ("rbac.authorization.k8s.io", "v1"),
        ("storage.k8s.io", "v1"),
        ("admissionregistration.k8s.io", "v1"),
        ("apiextensions.k8s.io", "v1"),
        ("scheduling.k8s.io", "v1"),
        ("coordination.k8s.io", "v1"),
        ("node.k8s.io", "v1"),
        ("discovery.k8s.io", "v1"),
        ("resource.k8s.io", "v1"),
        ("flowcontrol.apiserver.k8s.io", "v1"),
    )


def test_events_of_both_groups_are_kept_in_one_place() -> None:
    rows = [row for row in RESOURCES if row.kind == "Event"]
    assert [row.storage_key for row in rows] == ["events", "events"]


def test_what_is_only_asked_is_not_stored() -> None:
    assert {row.kind for row in RESOURCES} - {row.kind for row in STORED} == {
        "Binding",
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
        "TokenReview",
    }


def test_every_selectable_field_belongs_to_its_row() -> None:
    assert {row.key: row.selectable for row in STORED if row.selectable} == SELECTABLE


@pytest.mark.parametrize("row", STORED, ids=lambda row: row.key)
def test_row_has_a_strategy_and_a_printer_of_its_own(row: Resource) -> None:
    assert type(row.strategy) is not Strategy
    assert row.printer is not None


@pytest.mark.parametrize("row", STORED, ids=lambda row: row.key)
def test_row_prints_a_cell_for_every_column_even_of_a_bookmark(row: Resource) -> None:
    printer = row.printer or PLAIN
    cells = printer.cells({"metadata": {"resourceVersion": "7"}}, 1893499200.0)
    # As upstream, whose rows of addresses have an age without a column.
    assert len(cells) - (row.plural == "ipaddresses") == len(printer.columns)
