"""Ingresses and IngressClasses."""

from __future__ import annotations

import re

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    forbidden,
    not_supported,
    required,
    too_long,
)
from podlife.api.names import (
    check_dns_label,
    check_dns_subdomain,
    check_path_segment,
    check_port_name,
    check_wildcard_subdomain,
)
from podlife.apiserver.strategies.field_checks import (
    check_at,
    check_ip,
    immutable,
    is_ip,
    port_number,
    require_at,
)
from podlife.apiserver.strategies.strategy import Strategy

_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = frozenset({"Exact", "ImplementationSpecific", "Prefix"})
_FORBIDDEN_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS = ("/..", "/.")
_LONGEST_CONTROLLER = 250
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_NOT_AN_IP = "must be a DNS name, not an IP address"


class IngressStrategy(Strategy):
    has_generation = True
    has_status = True

    def default(self, obj: Object) -> None:
        obj["status"].setdefault("loadBalancer", {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}

    def validate(self, obj: Object) -> list[FieldError]:
        errors = list(_validate_spec(obj["spec"]))
        annotation, name = _class_annotation(obj), obj["spec"].get("ingressClassName")
        if obj["metadata"].get("resourceVersion"):
            return errors
        if annotation is not None and name is not None and annotation != name:
            detail = "must match `ingressClassName` when both are specified"
            errors.append(bad_value(f"annotations.{_CLASS}", annotation, detail))
        return errors

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return list(_validate_addresses(new["status"]["loadBalancer"].get("ingress") or []))

    def warnings(self, obj: Object) -> list[str]:
        is_new = not obj["metadata"].get("resourceVersion")
        if not is_new or _class_annotation(obj) is None or "ingressClassName" in obj["spec"]:
            return []
        return [f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


class IngressClassStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        if (parameters := obj["spec"].get("parameters")) is not None:
            parameters.setdefault("scope", "Cluster")

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = list(_validate_controller(spec.get("controller", ""), "spec.controller"))
        if (parameters := spec.get("parameters")) is not None:
            errors += _validate_parameters(parameters, "spec.parameters")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable(
            "spec.controller", new["spec"].get("controller", ""), old["spec"].get("controller", "")
        )


def _validate_controller(controller: str, path: str) -> FieldErrors:
    if len(controller.encode()) > _LONGEST_CONTROLLER:
        yield too_long(path, _LONGEST_CONTROLLER)
    if not controller:
        yield required(path)
        return
    host, _, rest = controller.partition("/")
    if not host or not rest:
        yield bad_value(path, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from check_at(path, host, check_dns_subdomain)
    if not _is_http_path(rest):
        yield bad_value(path, rest, f"Invalid path (regex used for validation is '{_HTTP_PATH}')")


def _validate_parameters(parameters: Object, path: str) -> FieldErrors:
    if (group := parameters.get("apiGroup")) is not None:
        yield from check_at(f"{path}.apiGroup", group, check_dns_subdomain)
    for field in ("kind", "name"):
        yield from require_at(f"{path}.{field}", parameters.get(field, ""), check_path_segment)
    scope, namespace = parameters["scope"], parameters.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        yield not_supported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif scope == "Namespace":
        if namespace is None:
            yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
        else:
            yield from check_at(f"{path}.namespace", namespace, check_dns_label)
    elif namespace is not None:
        yield forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def _class_annotation(obj: Object) -> str | None:
    return (obj["metadata"].get("annotations") or {}).get(_CLASS)


def _validate_addresses(addresses: list[Object]) -> FieldErrors:
    for index, address in enumerate(addresses):
        path, host = f"status.loadBalancer.ingress[{index}]", address.get("hostname", "")
        if address.get("ip"):
            yield from check_at(f"{path}.ip", address["ip"], check_ip)
        if host:
            yield from check_at(f"{path}.hostname", host, check_dns_subdomain)
            if is_ip(host):
                yield bad_value(f"{path}.hostname", host, _NOT_AN_IP)


def _validate_spec(spec: Object) -> FieldErrors:
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        yield bad_value("spec", rules or None, "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _validate_backend("spec.defaultBackend", backend)
    for index, rule in enumerate(rules):
        yield from _validate_rule(f"spec.rules[{index}]", rule)
    for index, tls in enumerate(spec.get("tls") or ()):
        path = f"spec.tls[{index}]"
        for at, host in enumerate(tls.get("hosts") or ()):
            yield from check_at(f"{path}.hosts[{at}]", host, _check_host)
        if secret := tls.get("secretName"):
            yield from check_at(f"{path}.secretName", secret, check_dns_subdomain)
    if (name := spec.get("ingressClassName")) is not None:
        yield from check_at("spec.ingressClassName", name, check_dns_subdomain)


def _check_host(host: str) -> list[str]:
    return check_wildcard_subdomain(host) if "*" in host else check_dns_subdomain(host)


def _validate_rule(path: str, rule: Object) -> FieldErrors:
    if host := rule.get("host"):
        if is_ip(host):
            yield bad_value(f"{path}.host", host, _NOT_AN_IP)
        yield from check_at(f"{path}.host", host, _check_host)
    if (http := rule.get("http")) is None:
        return
    paths = http.get("paths") or ()
    if not paths:
        yield required(f"{path}.http.paths")
    for index, each in enumerate(paths):
        yield from _validate_path(f"{path}.http.paths[{index}]", each)


def _validate_path(path: str, rule: Object) -> FieldErrors:
    kind, given = rule.get("pathType"), rule.get("path", "")
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    else:
        is_specific = kind == "ImplementationSpecific"
        if not given.startswith("/") and (given or not is_specific):
            yield bad_value(f"{path}.path", given, "must be an absolute path")
        for text in () if is_specific else _FORBIDDEN_SEQUENCES:
            if text in given:
                yield bad_value(f"{path}.path", given, f"must not contain '{text}'")
        for text in () if is_specific else _FORBIDDEN_ENDS:
            if given.endswith(text):
                yield bad_value(f"{path}.path", given, f"cannot end with '{text}'")
    yield from _validate_backend(f"{path}.backend", rule["backend"])


def _validate_backend(path: str, backend: Object) -> FieldErrors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield bad_value(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        if (group := resource.get("apiGroup")) is not None:
            yield from check_at(f"{path}.resource.apiGroup", group, check_dns_subdomain)
        for field in ("kind", "name"):
            yield from require_at(f"{path}.resource.{field}", resource.get(field, ""), check_path_segment)
    elif service is not None:
        yield from require_at(f"{path}.service.name", service.get("name", ""), check_dns_label)
        yield from _validate_port(path, service.get("port") or {})
    else:
        yield bad_value(path, "", "resource or service backend is required")


def _validate_port(path: str, port: Object) -> FieldErrors:
    name, number = port.get("name", ""), port.get("number", 0)
    if name and number:
        yield bad_value(path, "", "cannot set both port name & port number")
    elif name:
        yield from check_at(f"{path}.service.port.name", name, check_port_name)
    elif number:
        yield from port_number(f"{path}.service.port.number", number)
    else:
        yield required(path, "port name or number is required")
