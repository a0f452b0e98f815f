"""How a webhook is reached: a URL, or a service and a path. Checks are in upstream's words."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit

from podlife.api.codec import Object
from podlife.api.field_errors import FieldErrors, bad_value, required
from podlife.api.names import check_dns_subdomain
from podlife.apiserver.strategies.field_checks import PORT_RANGE

DEFAULT_PORT = 443
_FORM = "; desired format: https://host[/path]"


def validate_client_config(config: Object, path: str) -> FieldErrors:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _validate_url(url, f"{path}.url")
    else:
        yield from _validate_service(service or {}, f"{path}.service")


def _validate_url(url: str, path: str) -> FieldErrors:
    try:
        parts = _split(url)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        yield bad_value(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        yield bad_value(path, host, f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        yield bad_value(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield bad_value(path, unquote(parts.fragment), "fragments are not permitted in the URL")
    if parts.query:
        yield bad_value(path, parts.query, "query parameters are not permitted in the URL")


def _split(url: str) -> SplitResult:
    """Split a URL as Go does, which accepts neither control characters nor a port that is not a number."""
    shown = f'parse "{url}"'
    if any(ord(sign) < 0x20 or ord(sign) == 0x7F for sign in url):
        raise ValueError(f"{shown}: net/url: invalid control character in URL")
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    port = host.rpartition("]")[2].partition(":")[2]
    if port and not port.isdigit():
        raise ValueError(f'{shown}: invalid port ":{port}" after host')
    if " " in host:
        raise ValueError(f'{shown}: invalid character " " in host name')
    return parts


def _validate_service(service: Object, path: str) -> FieldErrors:
    for field in ("name", "namespace"):
        if not service.get(field):
            yield required(f"{path}.{field}")
    port = service.get("port", DEFAULT_PORT)
    if not 1 <= port <= 65535:
        yield bad_value(f"{path}.port", port, f"port is not valid: {PORT_RANGE}")
    yield from _validate_path(service.get("path") or "/", f"{path}.path")


def _validate_path(given: str, path: str) -> FieldErrors:
    if given == "/":
        return
    if given == "//":
        yield bad_value(path, given, "segment[0] may not be empty")
        return
    if not given.startswith("/"):
        yield bad_value(path, given, "must start with a '/'")
    for index, step in enumerate(given[1:].removesuffix("/").split("/")):
        if not step:
            yield bad_value(path, given, f"segment[{index}] may not be empty")
            continue
        for problem in check_dns_subdomain(step):
            yield bad_value(path, given, f"segment[{index}]: {problem}")
