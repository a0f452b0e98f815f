"""Non-resource URLs: discovery, version, health, metrics, OpenAPI."""

from __future__ import annotations

from podlife.api.codec import Object, encode
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.endpoints import discovery, openapi
from podlife.apiserver.endpoints.metrics import ApiServerMetrics
from podlife.apiserver.registry import Registry
from podlife.apiserver.storage import Store
from podlife.errors import ApiError, NotFoundError
from podlife.wire import Request, Response

_HEALTH = ("/healthz", "/livez", "/readyz")
_FIXED = ("/api", "/api/v1", "/apis", *_HEALTH, "/metrics", "/openapi/v2", "/openapi/v3", "/version")
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


def is_public(path: str) -> bool:
    """Return whether the path is served to unauthenticated clients."""
    return path.rstrip("/") in _HEALTH


async def answer(request: Request, registry: Registry, metrics: ApiServerMetrics) -> Response:
    path = request.path.rstrip("/") or "/"
    if request.method not in ("GET", "HEAD"):
        raise not_allowed()
    if path.startswith("/openapi/"):
        return await openapi.answer(request, registry.catalog)
    if path.startswith("/api"):
        return _discovery(request, path, registry.catalog)
    match path:
        case "/":
            return Response(body=encode({"paths": _paths(registry.catalog)}))
        case "/version":
            return Response(body=encode(discovery.version_info()))
        case "/metrics":
            return Response(body=metrics.render(registry.store), content_type=_METRICS_TYPE)
        case _:
            return _health(request, path, registry.store)


def _paths(catalog: ResourceCatalog) -> list[str]:
    groups = [(group, version) for group, version in catalog.group_versions if group]
    return sorted(
        {
            *_FIXED,
            *(f"/apis/{group}" for group, _ in groups),
            *(f"/apis/{group}/{name}" for group, name in groups),
        }
    )


def _health(request: Request, path: str, store: Store) -> Response:
    """`/readyz`, with `?verbose` check by check, or a single check. `ping` succeeds by answering; `storage` is part
    of readiness only, because a restart would not free a full disk."""
    root, _, only = path[1:].partition("/")
    checks = {"ping": "", "storage": store.trouble} if root == "readyz" else {"ping": ""}
    if f"/{root}" not in _HEALTH or (only and only not in checks):
        raise not_found()
    chosen = {only: checks[only]} if only else checks
    has_failed = any(chosen.values())
    body = "ok"
    if has_failed or ("verbose" in request.query and not only):
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in chosen.items()]
        body = "\n".join([*lines, f"{root} check {'failed' if has_failed else 'passed'}", ""])
    status = 500 if has_failed else 200
    return Response(status, body.encode(), content_type="text/plain; charset=utf-8")


def _discovery(request: Request, path: str, catalog: ResourceCatalog) -> Response:
    accept = request.headers.get("Accept", "")
    if path in ("/api", "/apis") and discovery.is_aggregated(accept):
        document = discovery.aggregated(catalog, core=path == "/api")
        headers = {"ETag": document.etag, "Vary": "Accept"}
        if request.headers.get("If-None-Match") == document.etag:
            return Response(304, b"", discovery.AGGREGATED_CONTENT_TYPE, headers)
        return Response(200, document.body, discovery.AGGREGATED_CONTENT_TYPE, headers)
    body = _legacy_discovery(request, path, catalog)
    if body is None:
        raise not_found()
    return Response(body=encode(body))


def _legacy_discovery(request: Request, path: str, catalog: ResourceCatalog) -> Object | None:
    parts = path.split("/")[1:]
    match parts:
        case ["api"]:
            return discovery.api_versions(catalog, request.headers.get("Host", ""))
        case ["apis"]:
            return discovery.api_group_list(catalog)
        case ["api", version]:
            return discovery.api_resource_list(catalog, "", version)
        case ["apis", group]:
            return discovery.api_group(catalog, group)
        case ["apis", group, version]:
            return discovery.api_resource_list(catalog, group, version)
        case _:
            return None


def not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(message, code=405, reason="MethodNotAllowed", details={})


def not_found() -> ApiError:
    return NotFoundError("the server could not find the requested resource", details={})
