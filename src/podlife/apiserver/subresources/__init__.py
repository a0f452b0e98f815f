"""Subresources with their own rules: binding, eviction, scale, and log and exec, which kubelets serve.

`kubelet_proxy` is imported where a server runs: it loads an HTTP client.
"""

from podlife.apiserver.subresources.binding import bind
from podlife.apiserver.subresources.eviction import evict
from podlife.apiserver.subresources.exec_admission import admit_exec
from podlife.apiserver.subresources.scale import get_scale, patch_scale, update_scale

__all__ = ["admit_exec", "bind", "evict", "get_scale", "patch_scale", "update_scale"]
