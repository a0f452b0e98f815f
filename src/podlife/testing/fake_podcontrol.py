"""Pod control for controller tests: records requests and sends nothing, as client-go's FakePodControl.

While `error` is set every call records its request and fails; a create beyond `create_limit` is only counted (PC-45,
PC-46). Templates are recorded as copies: unlike upstream's, the caller's is not modified (PC-47).
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.errors import PodlifeError
from podlife.podcontrol import ControllerRef
from podlife.podcontrol.owner import Parent
from podlife.podcontrol.template import Template, pod_from_template


class FakePodControl:
    """Every call raises `error` while it is set; `create_limit` 0 means no limit."""

    def __init__(self, *, create_limit: int = 0) -> None:
        self.error: PodlifeError | None = None
        self.create_limit = create_limit
        self.clear()

    def clear(self) -> None:
        self.create_calls = 0
        self.templates: list[Object] = []
        self.controller_refs: list[ControllerRef | None] = []
        self.deleted: list[str] = []
        self.patches: list[Object] = []

    async def create_pods(
        self, namespace: str, template: Template, parent: Parent, controller_ref: ControllerRef | None
    ) -> Object:
        return await self.create_pods_with_generate_name(namespace, template, parent, controller_ref, "")

    async def create_pods_with_generate_name(
        self,
        namespace: str,
        template: Template,
        parent: Parent,
        controller_ref: ControllerRef | None,
        generate_name: str,
    ) -> Object:
        self.create_calls += 1
        if 0 < self.create_limit < self.create_calls:
            limit, calls = self.create_limit, self.create_calls
            raise PodlifeError(f"not creating pod, limit {limit} already reached (create call {calls})")
        metadata = {**(template.get("metadata") or {}), "generateName": generate_name}
        self.templates.append({**template, "metadata": metadata})
        self.controller_refs.append(controller_ref)
        self._raise_error()
        pod = pod_from_template(template, parent, controller_ref, generate_name=generate_name)
        metadata = pod["metadata"]
        metadata.update(
            namespace=namespace,
            name=f"{metadata['generateName']}{self.create_calls}",
            uid=f"uid-{self.create_calls}",
        )
        return pod

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        parent: Parent,
        *,
        uid: str | None,
    ) -> None:
        self.deleted.append(name)
        self._raise_error()

    async def patch_pod(self, namespace: str, name: str, patch: Object) -> Object:
        self.patches.append(patch)
        self._raise_error()
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}}

    def _raise_error(self) -> None:
        if self.error is not None:
            raise self.error
