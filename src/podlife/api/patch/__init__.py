"""The three patch formats of the Kubernetes API, and the creation of strategic merge patches.

All are pure functions: neither the object nor the patch is changed. A result may share parts with both, except that of
`json_patch`; `schema.check`, which every patched object passes next, copies all of it. Errors are `PatchError`s with
kube-apiserver's code and message.
"""

from __future__ import annotations

from podlife.api.patch.errors import PatchError, go_format, invalid_patch
from podlife.api.patch.json_patch import json_patch, merge_patch, unknown_operation_fields
from podlife.api.patch.strategic import strategic_merge_patch
from podlife.api.patch.two_way import create_two_way_merge_patch

__all__ = [
    "PatchError",
    "create_two_way_merge_patch",
    "go_format",
    "invalid_patch",
    "json_patch",
    "merge_patch",
    "strategic_merge_patch",
    "unknown_operation_fields",
]
