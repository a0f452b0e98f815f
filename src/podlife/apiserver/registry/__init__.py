"""The verbs of the API, one file each, over a `Store` and each resource's `Strategy`.

A verb takes the `RequestScope` of one request, which has the `Registry`, and returns a response. `graceful_deletion`
decides what a DELETE does to an object: its deletionTimestamp and grace period are set there.
"""

from podlife.apiserver.registry.request_scope import Registry, RequestScope

__all__ = ["Registry", "RequestScope"]
