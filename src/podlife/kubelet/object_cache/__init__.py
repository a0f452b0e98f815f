"""The objects that pods of a node refer to: config maps, secrets, tokens of service accounts, services.

`ApiReferences` asks the API server for them, no more often than it must: what many want at once is asked for once, what
was read lately is not read again, and what no pod refers to any more is forgotten. It starts nothing by itself.
"""

from __future__ import annotations

from podlife.kubelet.object_cache.api_object_cache import ApiReferences

__all__ = ["ApiReferences"]
