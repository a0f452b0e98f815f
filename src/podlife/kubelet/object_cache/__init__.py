"""The objects that a node's pods refer to: config maps, secrets, service account tokens, services.

`ApiObjectCache` reads them from the API server as rarely as possible: concurrent requests share one call, recent
results are reused, and objects that no pod refers to are forgotten. The constructor starts nothing.
"""

from __future__ import annotations

from podlife.kubelet.object_cache.api_object_cache import ApiObjectCache, named_config_maps, named_secrets

__all__ = ["ApiObjectCache", "named_config_maps", "named_secrets"]
