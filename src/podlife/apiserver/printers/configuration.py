"""Namespaces, ConfigMaps, Secrets and ServiceAccounts."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age
from podlife.apiserver.printers.columns import columns
from podlife.apiserver.resource import Printer


def _namespace(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj.get("status", {}).get("phase", ""), age(obj, now)]


def _config_map(obj: Object, now: float) -> list[Any]:
    return [
        obj["metadata"].get("name", ""),
        len(obj.get("data", ())) + len(obj.get("binaryData", ())),
        age(obj, now),
    ]


def _secret(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj.get("type", ""), len(obj.get("data", ())), age(obj, now)]


def _service_account(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"].get("name", ""), age(obj, now)]


NAMESPACES = Printer(columns("namespaces"), _namespace)
CONFIG_MAPS = Printer(columns("configmaps"), _config_map)
SECRETS = Printer(columns("secrets"), _secret)
SERVICE_ACCOUNTS = Printer(columns("serviceaccounts"), _service_account)
