"""The objects that pods of a node refer to: config maps, secrets, tokens of service accounts, services.

`ApiObjectCache` reads them from the API server, no more often than it must: concurrent requests share one call, what
was read lately is not read again, and what no pod refers to any more is forgotten. Constructing one starts nothing.
"""

from __future__ import annotations

from podlife.kubelet.object_cache.api_object_cache import ApiObjectCache, named_config_maps, named_secrets

__all__ = ["ApiObjectCache", "named_config_maps", "named_secrets"]
