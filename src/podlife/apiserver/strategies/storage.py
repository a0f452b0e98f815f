"""storage.k8s.io: classes of volumes, CSI drivers, their nodes and capacity, attachments."""

from __future__ import annotations

from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.defaults.fields import canonical, fill_absent
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    duplicate,
    forbidden,
    not_supported,
    required,
    too_long,
)
from podlife.api.labels import validate_label_selector
from podlife.api.names import check_dns_subdomain, check_label_key
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.core.persistent_volumes import default_volume_spec, validate_inline_volume
from podlife.apiserver.strategies.field_checks import (
    check_at,
    driver_name,
    immutable,
    non_negative,
    one_of,
    unique,
)
from podlife.apiserver.strategies.strategy import Strategy, keep_field

_LONGEST_NODE_ID = 256
_MOST_PARAMETERS = 512
_MOST_BYTES = 256 * 1024
_LONGEST_MESSAGE = 1024
_RECLAIM_POLICIES = frozenset({"Delete", "Retain"})
_BINDING_MODES = frozenset({"Immediate", "WaitForFirstConsumer"})
_FS_GROUP_POLICIES = frozenset({"File", "None", "ReadWriteOnceWithFSType"})
_LIFECYCLE_MODES = ("Persistent", "Ephemeral")
_SHORTEST_TOKEN_SECONDS, _LONGEST_TOKEN_SECONDS = 600, 1 << 32
_SHORTEST_UPDATE_SECONDS = 10


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
    yield from driver_name(f"{path}.name", name)
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


class StorageClassStrategy(Strategy):
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        fill_absent(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    def validate(self, obj: Object) -> list[FieldError]:
        errors = [*_validate_provisioner("provisioner", obj.get("provisioner", ""))]
        errors += _validate_parameters(obj.get("parameters") or {})
        if policy := obj["reclaimPolicy"]:
            errors += one_of("reclaimPolicy", policy, _RECLAIM_POLICIES)
        errors += one_of("volumeBindingMode", obj["volumeBindingMode"], _BINDING_MODES)
        return [*errors, *_validate_topologies(obj.get("allowedTopologies") or ())]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = immutable("parameters", new.get("parameters") or {}, old.get("parameters") or {})
        for field in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
            errors += immutable(field, new.get(field, ""), old.get(field, ""))
        return errors


def _validate_provisioner(path: str, name: str) -> FieldErrors:
    if not name:
        yield required(path)
        return
    for problem in check_label_key(name.lower()):
        yield bad_value(path, name.lower(), problem)


def _validate_parameters(parameters: Object) -> FieldErrors:
    if len(parameters) > _MOST_PARAMETERS:
        yield too_long("parameters", _MOST_PARAMETERS)
        return
    if "" in parameters:
        yield bad_value("parameters", "", "field can not be empty.")
    if _size(parameters) > _MOST_BYTES:
        yield too_long("parameters", _MOST_BYTES)


def _size(texts: Object) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in texts.items())


# Of the same error: all of them would be as many as the square of the terms.
_MOST_REPEATED = 10


def _validate_topologies(terms: Sequence[Object]) -> FieldErrors:
    # Upstream compares with as many empty terms as there are terms, so each empty one is reported that often.
    earlier: dict[frozenset[tuple[str, frozenset[str]]], int] = {frozenset(): len(terms)}
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        found: dict[str, frozenset[str]] = {}
        for number, each in enumerate(term.get("matchLabelExpressions") or ()):
            yield from _validate_topology(f"{path}[{number}]", each, found)
        key = frozenset(found.items())
        yield from [duplicate(path, "")] * min(earlier.get(key, 0), _MOST_REPEATED)
        earlier[key] = earlier.get(key, 0) + 1


def _validate_topology(path: str, each: Object, found: dict[str, frozenset[str]]) -> FieldErrors:
    key, values = each.get("key", ""), each.get("values") or ()
    if not values:
        yield required(f"{path}.values")
    seen: set[str] = set()
    for index, value in enumerate(values):
        yield from unique(f"{path}.values[{index}]", value, seen)
    yield from check_at(f"{path}.key", key, check_label_key)
    if key in found:
        yield duplicate(f"{path}.key", key)
    found[key] = frozenset(seen)


class VolumeAttributesClassStrategy(Strategy):
    returns_deleted_object = True

    def validate(self, obj: Object) -> list[FieldError]:
        parameters = obj.get("parameters") or {}
        errors = [*_validate_provisioner("driverName", obj.get("driverName", ""))]
        errors += _validate_parameters(parameters)
        if not parameters:
            errors.append(required("parameters", "must contain at least one key/value pair"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [
            forbidden(field, f"updates to {field} are forbidden.")
            for field in ("driverName", "parameters")
            if (new.get(field) or None) != (old.get(field) or None)
        ]


class CSIDriverStrategy(Strategy):
    returns_deleted_object = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        fill_absent(
            spec,
            attachRequired=True,
            podInfoOnMount=False,
            storageCapacity=False,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            requiresRepublish=False,
            seLinuxMount=False,
        )
        spec["volumeLifecycleModes"] = spec.get("volumeLifecycleModes") or ["Persistent"]

    def prepare_create(self, obj: Object) -> None:
        # Of a feature that is off by default.
        obj["spec"].pop("preventPodSchedulingIfMissing", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        new["spec"].pop("preventPodSchedulingIfMissing", None)
        keep_field(new["metadata"], old["metadata"], "generation")
        if new["spec"] != old["spec"]:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = one_of("spec.fsGroupPolicy", spec["fsGroupPolicy"], _FS_GROUP_POLICIES)
        requests = spec.get("tokenRequests") or ()
        errors += _validate_token_requests(requests)
        for mode in spec["volumeLifecycleModes"]:
            if mode not in _LIFECYCLE_MODES:
                errors.append(not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES))
        seconds = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if seconds is not None and seconds < _SHORTEST_UPDATE_SECONDS:
            path = "spec.nodeAllocatableUpdatePeriodSeconds"
            errors.append(bad_value(path, seconds, "must be greater than or equal to 10 seconds"))
        in_secrets = spec.get("serviceAccountTokenInSecrets")
        if in_secrets is not None and not requests:
            detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            errors.append(bad_value("spec.serviceAccountTokenInSecrets", in_secrets, detail))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        after, before = new["spec"], old["spec"]
        errors = immutable("spec.attachedRequired", after["attachRequired"], before["attachRequired"])
        field = "volumeLifecycleModes"
        return errors + immutable(f"spec.{field}", after[field], before[field])

    def warnings(self, obj: Object) -> list[str]:
        spec = obj["spec"]
        if not spec.get("tokenRequests") or spec.get("serviceAccountTokenInSecrets") is not None:
            return []
        text = "is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens"
        return [f"spec.serviceAccountTokenInSecrets {text} in volume attributes"]


def _validate_token_requests(requests: Sequence[Object]) -> FieldErrors:
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience", "")
        if audience in audiences:
            yield duplicate(f"{path}.audience", audience)
            continue
        audiences.add(audience)
        path, seconds = f"{path}.expirationSeconds", request.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_TOKEN_SECONDS:
            yield bad_value(path, seconds, "may not specify a duration less than 10 minutes")
        if seconds is not None and seconds > _LONGEST_TOKEN_SECONDS:
            yield bad_value(path, seconds, "may not specify a duration larger than 2^32 seconds")


class CSIStorageCapacityStrategy(Strategy):
    unconditional_update = False

    def default(self, obj: Object) -> None:
        for field in ("capacity", "maximumVolumeSize"):
            if obj.get(field) is not None:
                canonical(obj, field)

    def validate(self, obj: Object) -> list[FieldError]:
        errors = [*validate_label_selector(obj.get("nodeTopology"), "nodeTopology")]
        errors += check_at("storageClassName", obj.get("storageClassName", ""), check_dns_subdomain)
        capacity = obj.get("capacity")
        if capacity is not None and parse_nanos(capacity) < 0:
            errors.append(bad_value("capacity", capacity, "must be greater than or equal to 0"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = immutable("nodeTopology", new.get("nodeTopology"), old.get("nodeTopology"))
        return errors + immutable("storageClassName", new["storageClassName"], old["storageClassName"])


class VolumeAttachmentStrategy(Strategy):
    has_status = True
    returns_deleted_object = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        fill_absent(obj.setdefault("status", {}), attached=False)
        if (inline := obj["spec"]["source"].get("inlineVolumeSpec")) is not None:
            default_volume_spec(inline)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"attached": False}

    def validate(self, obj: Object) -> list[FieldError]:
        spec, status = obj["spec"], obj["status"]
        source, path = spec["source"], "spec.source"
        errors = [*driver_name("spec.attacher", spec.get("attacher", ""))]
        inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
        if (inline is None) == (name is None):
            detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            errors.append(required(path, detail) if name is None else forbidden(path, detail))
        elif name == "":
            field = f"{path}.persistentVolumeName"
            errors.append(required(field, "must specify non empty persistentVolumeName"))
        elif inline is not None:
            errors += validate_inline_volume(inline, f"{path}.inlineVolumeSpec")
        errors += check_at("spec.nodeName", spec.get("nodeName", ""), check_dns_subdomain)
        if _size(status.get("attachmentMetadata") or {}) > _MOST_BYTES:
            errors.append(too_long("status.attachmentMetadata", _MOST_BYTES))
        for field in ("attachError", "detachError"):
            errors += _validate_volume_error(f"status.{field}", status.get(field) or {})
        if name is not None:
            errors += check_at(f"{path}.persistentVolumeName", name, check_dns_subdomain)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("spec", new["spec"], old["spec"])

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new)


def _validate_volume_error(path: str, error: Object) -> FieldErrors:
    if len(error.get("message", "").encode()) > _LONGEST_MESSAGE:
        # Upstream's message has the wrong limit.
        yield too_long(f"{path}.message", _MOST_BYTES)
    code = error.get("errorCode")
    if code is not None and code < 0:
        yield bad_value(f"{path}.errorCode", code, f"must be between 0 and {(1 << 31) - 1}, inclusive")
