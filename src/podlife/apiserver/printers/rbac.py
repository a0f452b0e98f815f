"""Bindings of roles. Roles themselves have no columns of their own."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age, columns, name
from podlife.apiserver.resource import Printer


def _binding(obj: Object, now: float) -> list[Any]:
    role = obj.get("roleRef", {})
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        shown = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            shown = f"{subject.get('namespace', '')}/{shown}"
        subjects.get(subject.get("kind", ""), []).append(shown)
    held = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [name(obj), held, age(obj, now), *(", ".join(each) for each in subjects.values())]


ROLE_BINDINGS = Printer(columns("rolebindings.rbac.authorization.k8s.io"), _binding)
CLUSTER_ROLE_BINDINGS = Printer(columns("clusterrolebindings.rbac.authorization.k8s.io"), _binding)
