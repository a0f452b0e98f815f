"""What admission expressions may refer to, with upstream's names and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podlife.api.cel import BOOL, DYN, INT, STRING, CelType, Environment, list_of, map_of, parse_type, struct

_TEXTS = list_of(STRING)
_TIME = parse_type("timestamp")


def _texts(*names: str) -> dict[str, CelType]:
    return dict.fromkeys(names, STRING)


_KIND = struct("kubernetes.GroupVersionKind", _texts("group", "version", "kind"))
_RESOURCE = struct("kubernetes.GroupVersionResource", _texts("group", "version", "resource"))
_USER = struct(
    "kubernetes.UserInfo",
    {**_texts("username", "uid"), "groups": _TEXTS, "extra": map_of(STRING, _TEXTS)},
)
_REQUEST = struct(
    "kubernetes.AdmissionRequest",
    {
        **_texts("name", "namespace", "operation", "subResource", "requestSubResource"),
        "kind": _KIND,
        "requestKind": _KIND,
        "resource": _RESOURCE,
        "requestResource": _RESOURCE,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_CONDITION = struct(
    "kubernetes.NamespaceCondition",
    {**_texts("status", "type", "message", "reason"), "lastTransitionTime": _TIME},
)
_NAMESPACE = struct(
    "kubernetes.Namespace",
    {
        "metadata": struct(
            "kubernetes.NamespaceMetadata",
            {
                **_texts("name", "generateName", "namespace", "UID", "resourceVersion"),
                **dict.fromkeys(("labels", "annotations"), map_of(STRING, STRING)),
                **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
                **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
                "finalizers": _TEXTS,
            },
        ),
        "spec": struct("kubernetes.NamespaceSpec", {"finalizers": _TEXTS}),
        "status": struct("kubernetes.NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}),
    },
)
_AUTHORIZER = {
    "authorizer": parse_type("kubernetes.authorization.Authorizer"),
    "authorizer.requestResource": parse_type("kubernetes.authorization.ResourceCheck"),
}
_JSON_PATCH = struct("JSONPatch", {**_texts("op", "path", "from"), "value": DYN})
_OBJECT = "Object"


class _AnyField(Mapping[str, CelType]):
    """The fields of an object without a schema."""

    def __getitem__(self, name: str) -> CelType:
        return DYN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _PatchTypes(_AnyField):
    """What mutations construct: `JSONPatch`, `Object`, and `Object.spec` for its field spec, at any depth."""

    def __getitem__(self, name: str) -> CelType:
        if name == _JSON_PATCH.name:
            return _JSON_PATCH
        if name == _OBJECT or name.startswith(f"{_OBJECT}."):
            return struct(name, _AnyField())
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Declarations:
    """Which of the variables are known, and their types where a schema gives them. `variables` are those that a policy
    composes; None if it has none."""

    has_params: bool = False
    has_authorizer: bool = True
    has_patch_types: bool = False
    variables: Mapping[str, CelType] | None = None
    object_type: CelType = DYN
    params_type: CelType = DYN

    def environment(self) -> Environment:
        known = dict.fromkeys(("object", "oldObject"), self.object_type)
        known |= {"request": _REQUEST, "namespaceObject": _NAMESPACE}
        if self.has_params:
            known["params"] = self.params_type
        if self.has_authorizer:
            known |= _AUTHORIZER
        if self.variables is not None:
            known["variables"] = struct("kubernetes.variables", self.variables)
        if not self.has_patch_types:
            return Environment(known)
        return Environment(known, _PatchTypes(), with_json_patch=True)
