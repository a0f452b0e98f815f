"""`kubectl apply --server-side` and `kubectl diff --server-side` say on our server what they say on kube-apiserver."""

from __future__ import annotations

import json
from typing import Any

from tests.real.clients import objects
from tests.real.clients.pair import One, Pair, manifest


def _apply(pair: Pair, obj: Any, *flags: str, code: int = 0) -> str:
    said = pair("apply", "--server-side", *flags, "-f", "-", stdin=manifest(obj), code=code)
    return said.text


def _managers(pair: Pair, what: str) -> dict[str, Any]:
    """The fields of each manager, the same on both servers. Their order depends on when a second began."""

    def of(one: One) -> dict[str, Any]:
        found = one("get", what, "--show-managed-fields", "-o", "json").out
        entries = json.loads(found)["metadata"]["managedFields"]
        return {
            f"{each['manager']} {each['operation']} {each.get('subresource', '')}": each["fieldsV1"]
            for each in entries
        }

    ours = of(pair.ours)
    assert ours == of(pair.theirs)
    return ours


def test_apply_creates_changes_and_prunes(pair: Pair) -> None:
    assert "serverside-applied" in _apply(pair, objects.config_map("a", x="1", y="2"))
    _apply(pair, objects.config_map("a", x="1", y="2"))
    _apply(pair, objects.config_map("a", x="3"))
    assert _managers(pair, "configmap/a") == {"kubectl Apply ": {"f:data": {"f:x": {}}}}
    assert pair("get", "configmap/a", "-o", "jsonpath={.data}").out == '{"x":"3"}'


def test_conflicts_are_reported_and_forced(pair: Pair) -> None:
    _apply(pair, objects.deployment("d", replicas=2))
    said = _apply(pair, objects.deployment("d", replicas=3), "--field-manager=other", code=1)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas' in said
    _apply(pair, objects.deployment("d", replicas=3), "--field-manager=other", "--force-conflicts")
    _managers(pair, "deployment/d")


def test_an_edit_conflicts_with_what_was_applied(pair: Pair) -> None:
    _apply(pair, objects.deployment("d", replicas=2))
    pair("scale", "deployment/d", "--replicas=5")
    pair("label", "deployment/d", "a=b")
    pair("annotate", "deployment/d", "c=d", "--field-manager=noter")
    pair("set", "image", "deployment/d", "*=other:1")
    said = _apply(pair, objects.deployment("d", replicas=2), code=1)
    assert "2 conflicts" in said
    _managers(pair, "deployment/d")
    _apply(pair, objects.deployment("d", replicas=2), "--force-conflicts")
    _managers(pair, "deployment/d")


def test_objects_of_client_side_apply_move_over(pair: Pair) -> None:
    """kubectl takes over the fields of `kubectl-client-side-apply` and keeps the annotation up to date."""
    pair("apply", "-f", "-", stdin=manifest(objects.config_map("a", x="1", y="2")))
    _managers(pair, "configmap/a")
    _apply(pair, objects.config_map("a", x="2"))
    assert _managers(pair, "configmap/a").keys() == {"kubectl Apply ", "kubectl-last-applied Apply "}
    pair("get", "configmap/a", "-o", "yaml")
    pair("apply", "-f", "-", stdin=manifest(objects.config_map("a", x="3")), code=0)
    _managers(pair, "configmap/a")


def test_diff_asks_the_server(pair: Pair) -> None:
    _apply(pair, objects.config_map("a", x="1"))
    assert pair("diff", "--server-side", "-f", "-", stdin=manifest(objects.config_map("a", x="1"))).text == ""
    said = pair.ours(
        "diff", "--server-side", "-f", "-", stdin=manifest(objects.config_map("a", x="2")), code=1
    )
    assert '-  x: "1"\n+  x: "2"' in said.out
    assert pair("get", "configmap/a", "-o", "jsonpath={.data}").out == '{"x":"1"}'


def test_a_dry_run_stores_nothing(pair: Pair) -> None:
    _apply(pair, objects.config_map("a", x="1"), "--dry-run=server", "-o", "yaml")
    assert pair.is_gone("configmap", "a")


def test_an_unknown_field_is_refused(pair: Pair) -> None:
    obj = {**objects.config_map("a"), "dada": {"x": "y"}}
    assert "field not declared in schema" in _apply(pair, obj, "--validate=false", code=1)
