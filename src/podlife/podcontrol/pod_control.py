"""Creates, deletes and patches pods for an owner, and records events on the owner.

Guarantees:
* Invalid input is refused before anything is sent.
* A delete carries the UID of its pod.
* A pod that is gone (404) or was replaced (409, 422) is not reported as a failure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from podlife.api.codec import Object
from podlife.client import PODS, Client, DeleteOptions, PatchType
from podlife.errors import ConflictError, InvalidError, NotFoundError, PodlifeError
from podlife.podcontrol.errors import (
    InvalidInputError,
    InvalidOwnerError,
    InvalidTemplateError,
    PodDeleteError,
    as_namespace_terminating,
    replaced,
)
from podlife.podcontrol.owner import (
    ControllerRef,
    Owner,
    Parent,
    controller_ref_of,
    owner_of,
    validate_controller_ref,
)
from podlife.podcontrol.template import Template, pod_from_template

log = logging.getLogger(__name__)

WriteHook = Callable[[Object, ControllerRef | None], None]
"""Called with a pod as stored by the server, and its controller."""


class EventRecorder(Protocol):
    """The part of `podlife.events.Recorder` that pod control uses."""

    def event(self, regarding: dict[str, str], type_: str, reason: str, message: str, /) -> None: ...


class PodOperations(Protocol):
    """What controllers need: `PodControl` does it, `podlife.testing.FakePodControl` records it."""

    async def create_pods(
        self, namespace: str, template: Template, parent: Parent, controller_ref: ControllerRef | None
    ) -> Object: ...

    async def create_pods_with_generate_name(
        self,
        namespace: str,
        template: Template,
        parent: Parent,
        controller_ref: ControllerRef | None,
        generate_name: str,
    ) -> Object: ...

    async def delete_pod(self, namespace: str, name: str, parent: Parent, *, uid: str | None) -> None: ...

    async def patch_pod(self, namespace: str, name: str, patch: Object) -> Object: ...


class PodControl:
    def __init__(self, client: Client, recorder: EventRecorder, *, on_write: WriteHook | None = None) -> None:
        self._client = client
        self._recorder = recorder
        self._on_write = on_write

    # Creating. Each creates one pod and returns it as stored by the server.

    async def create_pods(
        self, namespace: str, template: Template, parent: Parent, controller_ref: ControllerRef | None
    ) -> Object:
        """Create a pod from the template, owned by `controller_ref`; records an event on the parent.

        Raises a kind of InvalidInputError before anything is sent, NamespaceTerminatingError without an event, and the
        server's other errors."""
        return await self.create_pods_with_generate_name(namespace, template, parent, controller_ref, "")

    # Upstream's name until v1.21.
    create_pods_with_controller_ref = create_pods

    async def create_pods_with_generate_name(
        self,
        namespace: str,
        template: Template,
        parent: Parent,
        controller_ref: ControllerRef | None,
        generate_name: str,
    ) -> Object:
        """As `create_pods`, with another name prefix than the parent's; empty for the parent's."""
        ref = validate_controller_ref(controller_ref)
        pod = pod_from_template(template, parent, ref, generate_name=generate_name)
        return await self.create_pod(namespace, pod, parent, ref)

    async def create_pods_on_node(
        self,
        node_name: str,
        namespace: str,
        template: Template,
        parent: Parent,
        controller_ref: ControllerRef | None,
    ) -> Object:
        """As `create_pods`, already bound to the node, without the scheduler."""
        ref = validate_controller_ref(controller_ref)
        pod = pod_from_template(template, parent, ref)
        if node_name:
            pod["spec"]["nodeName"] = node_name
        return await self.create_pod(namespace, pod, parent, ref)

    async def create_pod(
        self, namespace: str, pod: Object, parent: Parent, controller_ref: ControllerRef | None = None
    ) -> Object:
        """Create this pod. Raises as `create_pods`."""
        if not pod.get("metadata", {}).get("labels"):
            # No selector could match it.
            raise InvalidTemplateError("unable to create pods, no labels")
        try:
            created: Object = await self._client.create(PODS, pod, namespace)
        except PodlifeError as error:
            if (terminating := as_namespace_terminating(error)) is not None:
                raise terminating from error
            self._event(parent, controller_ref, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        if self._on_write is not None:
            self._on_write(created, controller_ref)
        name = created["metadata"]["name"]
        self._event(parent, controller_ref, "Normal", "SuccessfulCreate", f"Created pod: {name}")
        return created

    # Deleting and patching

    async def delete_pod(self, namespace: str, name: str, parent: Parent, *, uid: str | None) -> None:
        """Delete the pod with this UID, with its own grace period; None: any pod of this name.

        Raises NotFoundError if it is gone (PodReplacedError if another one has its name), without an event;
        PodDeleteError for anything else; InvalidInputError before anything is sent."""
        try:
            owner = owner_of(parent)
        except InvalidOwnerError as error:
            raise InvalidOwnerError(f"object does not have ObjectMeta, {error}") from None
        if uid == "":
            raise InvalidInputError(
                f"no UID of the pod {namespace}/{name} provided: any pod of that name would be deleted"
            )
        log.debug("%s %s/%s: deleting pod %s", owner.kind, owner.namespace, owner.name, name)
        try:
            await self._client.delete(PODS, name, namespace, options=DeleteOptions(uid=uid or ""))
        except NotFoundError:
            raise
        except PodlifeError as error:
            if uid and isinstance(error, ConflictError):
                raise replaced(namespace, name, uid, error) from error
            self._record(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise PodDeleteError(error) from error
        self._record(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

    async def patch_pod(self, namespace: str, name: str, patch: Object) -> Object:
        """Patch the pod (strategic merge) and return it; `metadata.uid` in the patch is a precondition.

        Raises NotFoundError if it is gone (PodReplacedError if another one has its name), and the server's other
        errors. No events."""
        try:
            patched: Object = await self._client.patch(PODS, name, patch, namespace, type=PatchType.STRATEGIC)
        except InvalidError as error:
            uid = (patch.get("metadata") or {}).get("uid", "")
            # The server's response if the pod of this name has another UID.
            causes = error.details.get("causes") or ()
            if uid and any(cause.get("field") == "metadata.uid" for cause in causes):
                raise replaced(namespace, name, uid, error) from error
            raise
        if self._on_write is not None:
            self._on_write(patched, controller_ref_of(patched))
        return patched

    def _event(
        self, parent: Parent, ref: ControllerRef | None, type_: str, reason: str, message: str
    ) -> None:
        try:
            owner = owner_of(parent, ref)
        except InvalidOwnerError as error:
            # PC-28: the pod was created even if the event cannot be recorded.
            log.error("event %s dropped: %s", reason, error)
            return
        self._record(owner, type_, reason, message)

    def _record(self, owner: Owner, type_: str, reason: str, message: str) -> None:
        self._recorder.event(owner.object_reference(), type_, reason, message)
