"""NamespaceLifecycle: rejects creates in missing or terminating namespaces, and deletes of system namespaces."""

from __future__ import annotations

from podlife.api.codec import decode_object
from podlife.apiserver.admission import AdmissionRequest, Operation, Reader
from podlife.apiserver.storage import Key
from podlife.errors import NotFoundError

_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


def namespace_lifecycle(attributes: AdmissionRequest, reader: Reader) -> None:
    if attributes.resource.key == "namespaces":
        if attributes.operation is Operation.DELETE and attributes.name in _IMMORTAL:
            raise attributes.forbidden("this namespace may not be deleted")
        return
    namespace = attributes.namespace
    if not namespace or attributes.operation is not Operation.CREATE:
        return
    record = reader(Key("namespaces", "", namespace))
    if record is None:
        details = {"name": namespace, "kind": "namespaces"}
        raise NotFoundError(f'namespaces "{namespace}" not found', details=details)
    # The bytes are searched for the phase first: this is on the path of every create.
    if b'"Terminating"' in record.value:
        phase = decode_object(record.value).get("status", {}).get("phase")
        if phase == "Terminating" and not attributes.subresource:
            text = f"namespace {namespace} is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": text, "field": "metadata.namespace"}
            raise attributes.forbidden(
                f"unable to create new content in namespace {namespace} because it is being terminated",
                causes=[cause],
            )
