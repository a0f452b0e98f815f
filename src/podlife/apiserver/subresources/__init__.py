"""Subresources with their own rules: binding, eviction, scale, token, and those that lead to kubelets and pods.

`kubelet_proxy` and `proxy` are imported where a server runs: they load an HTTP client.
"""

from podlife.apiserver.subresources.binding import bind
from podlife.apiserver.subresources.connect_admission import admit_connect, admit_proxy
from podlife.apiserver.subresources.eviction import evict
from podlife.apiserver.subresources.scale import get_scale, patch_scale, update_scale
from podlife.apiserver.subresources.token import request_token

__all__ = [
    "admit_connect",
    "admit_proxy",
    "bind",
    "evict",
    "get_scale",
    "patch_scale",
    "request_token",
    "update_scale",
]
