"""The files of config maps, secrets and the downward API in a volume. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.envvars import ContainerConfigError, DownwardContext, field_value, resource_value
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.volumemanager.atomic_writer import File
from podlife.kubelet.volumemanager.layout import SetUpError

DEFAULT_MODE = 0o644

Files = dict[str, File]
Items = Sequence[Mapping[str, Any]] | None


def config_map_files(source: Mapping[str, Any], found: Object | None, default_mode: int) -> Files:
    """`source` is what the pod says of it; an optional object that there is not has no files."""
    texts = {key: value.encode() for key, value in ((found or {}).get("data") or {}).items()}
    data = {**texts, **_decoded(found, "binaryData")}
    return _chosen(source, data, default_mode, "configmap references non-existent config key: {}")


def secret_files(source: Mapping[str, Any], found: Object | None, default_mode: int) -> Files:
    return _chosen(source, _decoded(found, "data"), default_mode, "references non-existent secret key: {}")


def downward_files(items: Items, pod: Pod, context: DownwardContext, default_mode: int) -> Files:
    """What a file may tell of its pod is less than what a variable may: nothing that changes while it runs but
    labels and annotations."""
    files, problems = {}, []
    for item in items or ():
        try:
            text = _downward(item, pod, context)
        except ContainerConfigError as error:
            problems.append(str(error))
        else:
            files[str(item["path"])] = File(text.encode(), _mode(item, default_mode))
    if problems:
        raise SetUpError(together(problems))
    return files


def together(problems: Sequence[str]) -> str:
    """Several errors as one line, each said once."""
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


def _chosen(source: Mapping[str, Any], data: Mapping[str, bytes], default_mode: int, missing: str) -> Files:
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
