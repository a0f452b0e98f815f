"""ConfigMaps, Secrets and ServiceAccounts."""

from __future__ import annotations

import base64
import binascii
import json

from podlife.api.codec import Object
from podlife.api.defaults.fields import drop_empty_fields, fill_empty
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, required, too_long
from podlife.api.names import check_config_key
from podlife.apiserver.strategies.field_checks import check_at, immutable
from podlife.apiserver.strategies.strategy import Strategy
from podlife.errors import ApiError

_LARGEST = 1024 * 1024
_FIXED = "field is immutable when `immutable` is set"
_ACCOUNT = "kubernetes.io/service-account.name"
# Keys that a secret of a type must hold; for basic-auth one of the two is enough.
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _validate_fixed(new: Object, old: Object, *fields: str) -> FieldErrors:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FIXED)
    yield from (forbidden(field, _FIXED) for field in fields if new.get(field) != old.get(field))


def _validate_keys(data: dict[str, str], field: str) -> FieldErrors:
    for key in data:
        yield from check_at(f"{field}[{key}]", key, check_config_key)


def _size_of(encoded: str) -> int:
    """Number of bytes that base64 text encodes, without decoding it."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


class ConfigMapStrategy(Strategy):
    def default(self, obj: Object) -> None:
        drop_empty_fields(obj, "data", "binaryData")

    def validate(self, obj: Object) -> list[FieldError]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        errors = [*_validate_keys(data, "data"), *_validate_keys(binary, "binaryData")]
        detail = "duplicate of key present in binaryData"
        errors += [bad_value(f"data[{key}]", key, detail) for key in data.keys() & binary.keys()]
        size = sum(len(value.encode()) for value in data.values())
        if size + sum(_size_of(value) for value in binary.values()) > _LARGEST:
            # Upstream's path to the whole object.
            errors.append(too_long("[]", _LARGEST))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return list(_validate_fixed(new, old, "data", "binaryData"))


class SecretStrategy(Strategy):
    def default(self, obj: Object) -> None:
        # stringData is write-only: its values are stored encoded, over those of data.
        for key, text in (obj.pop("stringData", None) or {}).items():
            obj.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()
        drop_empty_fields(obj, "data")
        fill_empty(obj, type="Opaque")
        for text in (obj.get("data") or {}).values():
            _check_encoding(text)

    def validate(self, obj: Object) -> list[FieldError]:
        data, kind = obj.get("data") or {}, obj.get("type", "")
        errors = list(_validate_keys(data, "data"))
        if sum(_size_of(value) for value in data.values()) > _LARGEST:
            errors.append(too_long("data", _LARGEST))
        annotations = obj["metadata"].get("annotations") or {}
        if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
            errors.append(required(f"metadata.annotations[{_ACCOUNT}]"))
        elif kind == "kubernetes.io/basic-auth":
            if not data.keys() & {"username", "password"}:
                errors += [required("data[username]"), required("data[password]")]
        elif kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
            errors.append(required("data[ssh-privatekey]"))
        for key in _REQUIRED_KEYS.get(kind, ()):
            if key not in data:
                errors.append(required(f"data[{key}]"))
            elif "docker" in kind and (problem := _json_problem(data[key])):
                errors.append(bad_value(f"data[{key}]", "<secret contents redacted>", problem))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = immutable("type", new.get("type"), old.get("type"))
        return [*errors, *_validate_fixed(new, old, "data")]


def _check_encoding(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        message = "illegal base64 data in a value of data"
        raise ApiError(message, code=400, reason="BadRequest") from None


def _json_problem(encoded: str) -> str:
    try:
        value = json.loads(base64.b64decode(encoded))
    except ValueError as error:
        return str(error)
    return "" if isinstance(value, dict) else "expected a JSON object"


class ServiceAccountStrategy(Strategy):
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        drop_empty_fields(obj, "secrets", "imagePullSecrets")

    def prepare_create(self, obj: Object) -> None:
        _keep_names_of_secrets(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        _keep_names_of_secrets(new)


def _keep_names_of_secrets(obj: Object) -> None:
    """The references have more fields than a secret of the same namespace needs."""
    if "secrets" in obj:
        obj["secrets"] = [{"name": each["name"]} if "name" in each else {} for each in obj["secrets"]]
