"""CSINodes: the CSI drivers of a node."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, duplicate, required, too_long
from podlife.api.names import check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.field_checks import check_at, immutable, non_negative, unique
from podlife.apiserver.strategies.strategy import Strategy

_LONGEST_DRIVER = 63
_LONGEST_NODE_ID = 256


class CSINodeStrategy(Strategy):
    returns_deleted_object = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        # Go writes both even if there are none.
        obj["spec"].setdefault("drivers", None)
        for driver in obj["spec"]["drivers"] or ():
            driver.setdefault("topologyKeys", None)

    def validate(self, obj: Object) -> list[FieldError]:
        seen: set[str] = set()
        errors: list[FieldError] = []
        for index, driver in enumerate(obj["spec"]["drivers"] or ()):
            errors += _validate_driver(f"spec.drivers[{index}]", driver, seen)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before = {driver["name"]: _without_count(driver) for driver in old["spec"]["drivers"] or ()}
        after = [_without_count(driver) for driver in new["spec"]["drivers"] or ()]
        return [
            error
            for driver in after
            if driver["name"] in before
            for error in immutable("spec.drivers", driver, before[driver["name"]])
        ]


def _without_count(driver: Object) -> Object:
    return {field: value for field, value in driver.items() if field != "allocatable"}


def _validate_driver(path: str, driver: Object, seen: set[str]) -> FieldErrors:
    name, node_id = driver["name"], driver["nodeID"]
    if not name:
        yield required(f"{path}.name")
    else:
        if len(name) > _LONGEST_DRIVER:
            yield too_long(f"{path}.name", _LONGEST_DRIVER)
        for problem in check_dns_subdomain(name.lower()):
            yield bad_value(f"{path}.name", name, problem)
    if not node_id:
        yield required(f"{path}.nodeID")
    if len(node_id.encode()) > _LONGEST_NODE_ID:
        yield bad_value(f"{path}.nodeID", node_id, f"must be {_LONGEST_NODE_ID} characters or less")
    yield from non_negative(f"{path}.allocatable.count", (driver.get("allocatable") or {}).get("count"))
    yield from unique(f"{path}.name", name, seen)
    keys: set[str] = set()
    for key in driver["topologyKeys"] or ():
        if not key:
            yield required(path)
        if key in keys:
            yield duplicate(path, key)
        keys.add(key)
        yield from check_at(path, key, check_label_key)
