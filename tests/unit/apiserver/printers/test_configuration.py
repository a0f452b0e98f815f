from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver import printers

from .situation import ANY_AGE, NOW, Situation, named, with_any_age

PRINTERS = {
    "Namespace": printers.NAMESPACES,
    "ConfigMap": printers.CONFIG_MAPS,
    "Secret": printers.SECRETS,
    "ServiceAccount": printers.SERVICE_ACCOUNTS,
}


def kept(kind: str, name: str, cells: list[Any], *, deleting: bool = False, **fields: Any) -> Situation:
    obj = {"apiVersion": "v1", "kind": kind, "metadata": named(name, deleting=deleting), **fields}
    return Situation(name, obj, [name, *cells, ANY_AGE])


def situations(now: float) -> list[Situation]:
    return [
        kept("Namespace", "active", ["Active"], status={"phase": "Active"}),
        kept("Namespace", "ending", ["Terminating"], deleting=True, status={"phase": "Terminating"}),
        kept("ConfigMap", "empty", [0]),
        kept("ConfigMap", "both", [3], data={"a": "1", "b": "2"}, binaryData={"c": "AA=="}),
        kept("Secret", "opaque", ["Opaque", 2], type="Opaque", data={"a": "AA==", "b": "AA=="}),
        kept("Secret", "none", ["Opaque", 0], type="Opaque"),
        kept("ServiceAccount", "robot", []),
    ]


@pytest.mark.parametrize("case", situations(NOW), ids=lambda case: f"{case.obj['kind']}-{case.name}")
def test_object_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    printer = PRINTERS[case.obj["kind"]]
    assert with_any_age(printer.cells(case.obj, NOW), printer.columns) == case.cells
