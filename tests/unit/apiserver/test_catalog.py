from __future__ import annotations

from podlife.apiserver.catalog import RemoteVersion, ResourceCatalog, version_order
from podlife.apiserver.resource import Resource

WIDGETS = "widgets.example.com"


def widget(version: str) -> Resource:
    return Resource("example.com", version, "Widget", "widgets")


def test_rows_of_a_definition_are_served_after_the_built_in_ones() -> None:
    catalog = ResourceCatalog()
    catalog.set_rows(WIDGETS, [widget("v1beta1"), widget("v1")])
    assert catalog.find("example.com", "v1", "widgets") is not None
    assert catalog.group_versions[-2:] == (("example.com", "v1"), ("example.com", "v1beta1"))
    assert "widgets" in catalog.plurals


def test_rows_are_replaced_as_one_and_removed() -> None:
    catalog = ResourceCatalog()
    catalog.set_rows(WIDGETS, [widget("v1"), widget("v2")])
    catalog.set_rows(WIDGETS, [widget("v2")])
    assert catalog.find("example.com", "v1", "widgets") is None
    catalog.set_rows(WIDGETS, [])
    assert catalog.rows == ResourceCatalog().rows
    assert catalog.version == 3


def test_groups_of_other_servers_come_by_priority_and_take_over_none() -> None:
    catalog = ResourceCatalog()
    catalog.set_rows(WIDGETS, [widget("v1")])
    before = catalog.group_versions
    catalog.set_remote(
        {
            ("low.example.com", "v1"): RemoteVersion(100, 1),
            ("high.example.com", "v1"): RemoteVersion(2000, 1),
            ("high.example.com", "v1beta1"): RemoteVersion(2000, 9),
            ("apps", "v1"): RemoteVersion(20000, 9),
            ("apps", "v9"): RemoteVersion(20000, 9),
        }
    )
    assert catalog.group_versions[: len(before) - 1] == before[:-1]
    assert catalog.group_versions[len(before) - 1 :] == (
        ("apps", "v9"),
        ("high.example.com", "v1beta1"),
        ("high.example.com", "v1"),
        ("example.com", "v1"),
        ("low.example.com", "v1"),
    )
    assert catalog.is_local("apps", "v1")
    assert not catalog.is_local("apps", "v9")
    catalog.set_remote({})
    assert catalog.group_versions == before


def test_documents_are_kept_until_the_rows_change() -> None:
    catalog = ResourceCatalog()
    first = catalog.kept("document", object)
    assert catalog.kept("document", object) is first
    catalog.set_rows(WIDGETS, [widget("v1")])
    assert catalog.kept("document", object) is not first


def test_versions_are_in_the_order_of_kubernetes() -> None:
    preferred = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
    ]
    assert sorted(set(preferred), key=version_order) == preferred
