"""The status of ValidatingAdmissionPolicies: the result of checking their expressions by types.

Upstream's kube-controller-manager writes it once for each generation of a policy. A type that is not served is left
out.
"""

from __future__ import annotations

import logging
from itertools import islice, product

from podlife.api.cel import DYN, CelType
from podlife.api.codec import Object, decode_object
from podlife.api.schema import openapi_documents
from podlife.apiserver.apiextensions import openapi
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.expressions.type_checking import (
    MOST_TYPES,
    expression_warnings,
    object_type,
    rules_to_check,
)
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.apply import apply_status
from podlife.apiserver.registry.worker_threads import run_in_thread
from podlife.apiserver.resource import Resource
from podlife.apiserver.resource_table import STORED
from podlife.apiserver.storage import CompactedError, EventType, Key, StoreError
from podlife.errors import ApiError, NotFoundError

log = logging.getLogger(__name__)

_POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
_ROW = next(row for row in STORED if row.key == _POLICIES)
# Upstream's name for who applies the status.
_MANAGER = "validatingadmissionpolicy-status"


class PolicyStatusController:
    """`run` ends when the store closes or the task is cancelled."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def run(self) -> None:
        store = self._registry.store
        while True:
            subscription = store.subscribe(_POLICIES, since=store.revision)
            try:
                for record in store.list(_POLICIES):
                    await self._update(record.key)
                while True:
                    for event in (await subscription.next()).events:
                        if event.type is not EventType.DELETED:
                            await self._update(event.record.key)
            except CompactedError:
                continue  # fell behind: check all again
            except StoreError:
                return
            finally:
                subscription.close()

    async def _update(self, key: Key) -> None:
        record = self._registry.store.get(key)
        if record is None:
            return
        policy = decode_object(record.value)
        generation = policy["metadata"].get("generation", 0)
        # A later change brings its own event.
        if generation <= policy.get("status", {}).get("observedGeneration", 0):
            return
        try:
            checked = await run_in_thread(lambda: type_checking(policy["spec"], self._registry.catalog))
            status = {"observedGeneration": generation, "typeChecking": checked}
            await apply_status(self._registry, _ROW, key.name, _MANAGER, status)
        except NotFoundError:
            return
        except (ApiError, StoreError) as error:
            log.warning("status of ValidatingAdmissionPolicy %s not written: %s", key.name, error)
        except Exception:  # a failure of one policy must affect neither the server nor other policies
            log.exception("type checking of ValidatingAdmissionPolicy %s failed", key.name)


def type_checking(spec: Object, catalog: ResourceCatalog) -> Object:
    """The field `typeChecking` of the status."""
    kind = spec.get("paramKind") or {}
    params = catalog.find_kind(kind.get("apiVersion", ""), kind.get("kind", ""))
    rows = sorted(set(_rows(spec, catalog)[:MOST_TYPES]), key=_order)
    types = [(f"{row.group}/{row.version}, Kind={row.kind}", _type_of(row)) for row in rows]
    warnings = expression_warnings(spec, types, DYN if params is None else _type_of(params))
    return {"expressionWarnings": warnings} if warnings else {}


def _order(row: Resource) -> tuple[str, ...]:
    return row.group, row.version, row.kind


def _rows(spec: Object, catalog: ResourceCatalog) -> list[Resource]:
    named = (name for rule in rules_to_check(spec) for name in product(*rule))
    return [row for row in (catalog.find(*name) for name in islice(named, 1000)) if row is not None]


def _type_of(row: Resource) -> CelType:
    if row.custom is not None:
        document = openapi.document_v3([row])
    else:
        path = f"v3/apis/{row.group}/{row.version}" if row.group else f"v3/api/{row.version}"
        document = openapi_documents.document(path) or b"{}"
    return object_type(decode_object(document), row.group, row.version, row.kind)
