"""The content of configMap, secret, downwardAPI and projected volumes.

Everything that a volume needs of the API server is read here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.errors import PodlifeError
from podlife.kubelet.envvars import DownwardContext
from podlife.kubelet.interfaces import ObjectCache
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.volumemanager.atomic_writer import File, Payload
from podlife.kubelet.volumemanager.layout import SetUpError
from podlife.kubelet.volumemanager.ownership import fs_group_of, fs_user_of
from podlife.kubelet.volumemanager.payloads import (
    DEFAULT_MODE,
    Files,
    config_map_files,
    downward_files,
    secret_files,
    together,
)

_TOKEN_SECONDS = 3600
# By kind of volume: the folder that its volumes are in.
SHOWS_OBJECTS = {
    "configMap": "kubernetes.io~configmap",
    "secret": "kubernetes.io~secret",
    "downwardAPI": "kubernetes.io~downward-api",
    "projected": "kubernetes.io~projected",
}


async def files_of(
    kind: str, source: Mapping[str, Any], pod: Pod, objects: ObjectCache, context: DownwardContext
) -> Payload:
    """Raises `SetUpError`."""
    mode = source.get("defaultMode")
    collecting = _Collecting(pod, objects, context, DEFAULT_MODE if mode is None else int(mode))
    if kind == "projected":
        return await collecting.all(source)
    return await collecting.one(kind, source)


class _Collecting:
    def __init__(self, pod: Pod, objects: ObjectCache, context: DownwardContext, default_mode: int) -> None:
        self._pod = pod
        self._namespace = str(pod["metadata"]["namespace"])
        self._objects = objects
        self._context = context
        self._mode = default_mode

    async def all(self, source: Mapping[str, Any]) -> Files:
        """A later source replaces an earlier one's file; what is wrong with each is said together."""
        files: Files = {}
        problems = []
        for each in source.get("sources") or ():
            kind = next((kind for kind, said in each.items() if said is not None), "")
            try:
                files.update(await self.one(kind, each.get(kind) or {}))
            except SetUpError as error:
                problems.append(str(error))
        if problems:
            raise SetUpError(together(problems))
        return files

    async def one(self, kind: str, source: Mapping[str, Any]) -> Files:
        match kind:
            case "configMap":
                found = await self._object("configmap", self._objects.config_map, source)
                return config_map_files(source, found, self._mode)
            case "secret":
                found = await self._object("secret", self._objects.secret, source)
                return secret_files(source, found, self._mode)
            case "downwardAPI":
                return downward_files(source.get("items"), self._pod, self._context, self._mode)
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
        # Only for whom it is meant; a group gets its right with all other files of the volume.
        is_private = user is not None or fs_group_of(self._pod) is not None
        return File(token.encode(), 0o600 if is_private else self._mode, user)
