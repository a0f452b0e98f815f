"""The contents of configMap, secret, downwardAPI and projected volumes.

Everything a volume needs from the API server is read here, before anything is written.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from podlife.api.codec import Object
from podlife.errors import PodlifeError
from podlife.kubelet.envvars import ContainerConfigError, DownwardContext, field_value, resource_value
from podlife.kubelet.interfaces import ObjectCache
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.volumemanager.atomic_writer import File, Payload
from podlife.kubelet.volumemanager.layout import SetUpError
from podlife.kubelet.volumemanager.ownership import fs_group_of, fs_user_of

_DEFAULT_MODE = 0o644
_TOKEN_SECONDS = 3600
# The plugin folder of each volume type.
OBJECT_PLUGINS = {
    "configMap": "kubernetes.io~configmap",
    "secret": "kubernetes.io~secret",
    "downwardAPI": "kubernetes.io~downward-api",
    "projected": "kubernetes.io~projected",
}

_Files = dict[str, File]


async def files_of(
    kind: str, source: Mapping[str, Any], pod: Pod, objects: ObjectCache, context: DownwardContext
) -> Payload:
    """Raises `SetUpError`."""
    mode = source.get("defaultMode")
    collector = _Collector(pod, objects, context, _DEFAULT_MODE if mode is None else int(mode))
    if kind == "projected":
        return await collector.all(source)
    return await collector.one(kind, source)


class _Collector:
    def __init__(self, pod: Pod, objects: ObjectCache, context: DownwardContext, default_mode: int) -> None:
        self._pod = pod
        self._namespace = str(pod["metadata"]["namespace"])
        self._objects = objects
        self._context = context
        self._mode = default_mode

    async def all(self, source: Mapping[str, Any]) -> _Files:
        """A later source replaces files of an earlier one; all errors are reported together."""
        files: _Files = {}
        problems = []
        for each in source.get("sources") or ():
            kind = next((kind for kind, value in each.items() if value is not None), "")
            try:
                files.update(await self.one(kind, each.get(kind) or {}))
            except SetUpError as error:
                problems.append(str(error))
        if problems:
            raise SetUpError(_joined(problems))
        return files

    async def one(self, kind: str, source: Mapping[str, Any]) -> _Files:
        match kind:
            case "configMap":
                found = await self._object("configmap", self._objects.config_map, source)
                texts = {key: value.encode() for key, value in ((found or {}).get("data") or {}).items()}
                data = {**texts, **_decoded(found, "binaryData")}
                return _select(source, data, self._mode, "configmap references non-existent config key: {}")
            case "secret":
                found = await self._object("secret", self._objects.secret, source)
                data = _decoded(found, "data")
                return _select(source, data, self._mode, "references non-existent secret key: {}")
            case "downwardAPI":
                return _downward_files(source.get("items"), self._pod, self._context, self._mode)
            case "serviceAccountToken":
                return {str(source["path"]): await self._token(source)}
        raise SetUpError(f'this node does not support "{kind}" in a projected volume')

    async def _object(
        self, what: str, read: Callable[[str, str], Awaitable[Object | None]], source: Mapping[str, Any]
    ) -> Object | None:
        name = str(source.get("secretName") or source.get("name") or "")
        try:
            found = await read(self._namespace, name)
        except PodlifeError as error:
            raise SetUpError(str(error)) from None
        if found is None and not source.get("optional"):
            raise SetUpError(f'{what} "{name}" not found')
        return found

    async def _token(self, source: Mapping[str, Any]) -> File:
        seconds = int(source.get("expirationSeconds") or _TOKEN_SECONDS)
        audience = str(source.get("audience") or "")
        try:
            token = await self._objects.token(self._pod, audience=audience, expiration_seconds=seconds)
        except PodlifeError as error:
            raise SetUpError(f"failed to fetch token: {error}") from None
        user = fs_user_of(self._pod)
        # Only for the token's user; a group gets access with all other files of the volume.
        is_private = user is not None or fs_group_of(self._pod) is not None
        return File(token.encode(), 0o600 if is_private else self._mode, user)


def _downward_files(
    items: Sequence[Mapping[str, Any]] | None, pod: Pod, context: DownwardContext, default_mode: int
) -> _Files:
    """A file supports fewer fields than a variable: of those that change while the pod runs, labels and annotations."""
    files, problems = {}, []
    for item in items or ():
        try:
            text = _downward(item, pod, context)
        except ContainerConfigError as error:
            problems.append(str(error))
        else:
            files[str(item["path"])] = File(text.encode(), _mode(item, default_mode))
    if problems:
        raise SetUpError(_joined(problems))
    return files


def _joined(problems: Sequence[str]) -> str:
    """Combine error messages, without duplicates."""
    different = list(dict.fromkeys(problems))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def _downward(item: Mapping[str, Any], pod: Pod, context: DownwardContext) -> str:
    if (field := item.get("fieldRef")) is not None:
        path = str(field.get("fieldPath") or "")
        if not path.startswith("metadata."):
            raise ContainerConfigError(f"unsupported fieldPath: {path}")
        return field_value(pod, path, context)
    if (resource := item.get("resourceFieldRef")) is not None:
        if not resource.get("containerName"):
            raise ContainerConfigError('container "" not found')
        return resource_value(pod, {}, resource, context)
    return ""


def _select(source: Mapping[str, Any], data: Mapping[str, bytes], default_mode: int, missing: str) -> _Files:
    """`source` is the pod's reference to an object; a missing optional object has no files."""
    if not (items := source.get("items")):
        return {key: File(value, default_mode) for key, value in data.items()}
    files = {}
    for item in items:
        if item["key"] in data:
            files[str(item["path"])] = File(data[item["key"]], _mode(item, default_mode))
        elif not source.get("optional"):
            raise SetUpError(missing.format(item["key"]))
    return files


def _mode(item: Mapping[str, Any], default_mode: int) -> int:
    mode = item.get("mode")
    return default_mode if mode is None else int(mode)


def _decoded(found: Object | None, field: str) -> dict[str, bytes]:
    try:
        return {key: base64.b64decode(value) for key, value in ((found or {}).get(field) or {}).items()}
    except (binascii.Error, ValueError):
        raise SetUpError(f"a value of {field} is not base64") from None
