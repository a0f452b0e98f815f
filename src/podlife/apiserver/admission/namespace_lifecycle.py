"""NamespaceLifecycle: rejects creates in missing or terminating namespaces, and deletes of system namespaces."""

from __future__ import annotations

from podlife.api.codec import decode_object
from podlife.apiserver.admission import AdmissionRequest, Operation, Reader
from podlife.apiserver.storage import Key
from podlife.errors import ForbiddenError, NotFoundError

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


def namespace_lifecycle(attributes: AdmissionRequest, reader: Reader) -> None:
    if attributes.resource.key == "namespaces":
        if attributes.operation is Operation.DELETE and attributes.name in IMMORTAL:
            raise ForbiddenError(
                f'namespaces "{attributes.name}" is forbidden: this namespace may not be deleted',
                details={"name": attributes.name, "kind": "namespaces"},
            )
        return
    if not attributes.namespace or attributes.operation is Operation.DELETE:
        return
    namespace = attributes.namespace
    record = reader(Key("namespaces", "", namespace))
    if record is None:
        if attributes.operation is Operation.CREATE:
            raise NotFoundError(
                f'namespaces "{namespace}" not found', details={"name": namespace, "kind": "namespaces"}
            )
        return
    # The bytes are searched for the phase first: this is on the path of every create.
    if attributes.operation is Operation.CREATE and b'"Terminating"' in record.value:
        phase = decode_object(record.value).get("status", {}).get("phase")
        if phase == "Terminating" and not attributes.subresource:
            raise _terminating(attributes)


def _terminating(attributes: AdmissionRequest) -> ForbiddenError:
    resource, namespace = attributes.resource, attributes.namespace
    name = attributes.shown_name
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
    named = f'{resource.key} "{name}"' if name else resource.key
    return ForbiddenError(
        f"{named} is forbidden: unable to create new content in namespace {namespace} because it is being "
        "terminated",
        details={key: value for key, value in details.items() if value}
        | {"causes": [{**cause, "field": "metadata.namespace"}]},
    )
