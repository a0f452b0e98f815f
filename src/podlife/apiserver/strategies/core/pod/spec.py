"""The spec of a pod as a whole, alone and inside a template.

`is_pod` is true for a pod itself: a template may still be incomplete where its controller fills it in.
"""

from __future__ import annotations

from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    duplicate,
    forbidden,
    not_found,
    required,
    too_long,
)
from podlife.api.labels import validate_labels
from podlife.api.names import check_dns_label, check_dns_search, check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.core.node_selection import (
    validate_affinity,
    validate_scheduling_gates,
    validate_spread,
    validate_tolerations,
)
from podlife.apiserver.strategies.core.pod.containers import (
    ContainerContext,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from podlife.apiserver.strategies.core.pod.security_context import (
    validate_operating_system,
    validate_pod_security,
)
from podlife.apiserver.strategies.core.pod.volumes import validate_volumes
from podlife.apiserver.strategies.core.resource_requirements import validate_resources
from podlife.apiserver.strategies.field_checks import at_most_int32, check_at, check_ip, required_choice

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_SUBDOMAINS = ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName")
_NAMES = dict.fromkeys(_SUBDOMAINS, check_dns_subdomain) | dict.fromkeys(
    ("hostname", "subdomain"), check_dns_label
)
_MOST_NAMESERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048
# Fields in the spec of nearly every pod; anything else takes the slower path.
_USUAL = frozenset(
    {"containers", "dnsPolicy", "enableServiceLinks", "initContainers", "nodeName", "preemptionPolicy"}
    | {"priority", "restartPolicy", "schedulerName", "securityContext", "serviceAccount"}
    | {"serviceAccountName", "terminationGracePeriodSeconds", "tolerations", "volumes"}
)


def validate_pod_spec(
    spec: Object, path: str, *, pod_name: str = "", is_pod: bool = True
) -> list[FieldError]:
    """Validate the spec of a pod, in upstream's order."""
    errors: list[FieldError] = []
    volumes: dict[str, Object] = {}
    if "volumes" in spec:
        volumes, errors = validate_volumes(spec["volumes"], f"{path}.volumes", pod_name)
    around = _surroundings(spec, volumes)
    containers = spec.get("containers") or []
    if "resourceClaims" in spec:
        errors += _validate_claims(spec["resourceClaims"], f"{path}.resourceClaims")
    errors += validate_containers(containers, f"{path}.containers", around)
    if "initContainers" in spec:
        errors += validate_init_containers(spec, f"{path}.initContainers", around)
    if "ephemeralContainers" in spec:
        errors += validate_ephemeral_containers(spec, f"{path}.ephemeralContainers", around)
    if spec.get("hostNetwork"):
        errors += _validate_host_network(containers, f"{path}.containers", is_pod)
    if (policy := spec.get("restartPolicy", "")) not in RESTART_POLICIES:
        errors += required_choice(f"{path}.restartPolicy", policy, RESTART_POLICIES)
    if (dns := spec.get("dnsPolicy", "")) not in _DNS_POLICIES:
        errors += required_choice(f"{path}.dnsPolicy", dns, _DNS_POLICIES)
    if (context := spec.get("securityContext")) or "shareProcessNamespace" in spec:
        errors += validate_pod_security(context or {}, spec, f"{path}.securityContext")
    if not spec.keys() <= _USUAL or dns == "None":
        errors += _validate_unusual(spec, path)
    errors += _validate_names(spec, path)
    if "tolerations" in spec:
        errors += validate_tolerations(spec["tolerations"], f"{path}.tolerations")
    preemption = spec.get("preemptionPolicy", "PreemptLowerPriority")
    return errors + required_choice(f"{path}.preemptionPolicy", preemption, _PREEMPTION_POLICIES)


def _surroundings(spec: Object, volumes: dict[str, Object]) -> ContainerContext:
    claims = spec.get("resourceClaims")
    return ContainerContext(
        volumes=volumes,
        claims=frozenset(claim["name"] for claim in claims if claim.get("name")) if claims else frozenset(),
        grace_seconds=spec.get("terminationGracePeriodSeconds"),
        operating_system=(spec.get("os") or {}).get("name", ""),
        restart_policy=spec.get("restartPolicy", ""),
        host_users=spec.get("hostUsers", True),
    )


def _validate_names(spec: Object, path: str) -> FieldErrors:
    for field, check in _NAMES.items():
        if (name := spec.get(field)) and check(name):
            yield from check_at(f"{path}.{field}", name, check)


def _validate_unusual(spec: Object, path: str) -> FieldErrors:
    if resources := spec.get("resources"):
        yield from validate_resources(resources, f"{path}.resources", claims=frozenset(), pod_level=True)
    yield from validate_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    if affinity := spec.get("affinity"):
        yield from validate_affinity(affinity, f"{path}.affinity")
    yield from _validate_dns(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates", ())):
        kind = gate.get("conditionType", "")
        yield from check_at(f"{path}.readinessGates[{index}].conditionType", kind, check_label_key)
    yield from validate_scheduling_gates(spec.get("schedulingGates", ()), f"{path}.schedulingGates")
    constraints = spec.get("topologySpreadConstraints", ())
    yield from validate_spread(constraints, f"{path}.topologySpreadConstraints")
    yield from _validate_host(spec, path)
    yield from at_most_int32(f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), least=1)
    yield from _validate_host_aliases(spec.get("hostAliases", ()), f"{path}.hostAliases")
    if overhead := spec.get("overhead"):
        limits = {"limits": overhead}
        yield from validate_resources(limits, f"{path}.overhead", claims=frozenset())
    if "os" in spec:
        yield from validate_operating_system(spec, path)
    yield from _validate_file_keys(spec, path)


def _validate_claims(claims: Sequence[Object], path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at = f"{path}[{index}]"
        name = claim.get("name", "")
        if not name:
            yield required(f"{at}.name")
        elif name in seen:
            yield duplicate(f"{at}.name", name)
        else:
            yield from check_at(f"{at}.name", name, check_dns_label)
        seen.add(name)
        sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
        if len(sources) == 2:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield bad_value(at, _as_upstream_shows(claim), detail)
        if not sources:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield bad_value(at, _as_upstream_shows(claim), detail)
        for field in sources:
            yield from check_at(f"{at}.{field}", claim[field], check_dns_subdomain)


def _as_upstream_shows(claim: Object) -> Object:
    fields = ("name", "resourceClaimName", "resourceClaimTemplateName")
    shown = {field[0].upper() + field[1:]: claim.get(field) for field in fields}
    return {**shown, "Name": claim.get("name", "")}


def _validate_host_network(containers: Sequence[Object], path: str, is_pod: bool) -> FieldErrors:
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", ())):
            on_host = port.get("hostPort", 0)
            if (is_pod or on_host) and on_host != port.get("containerPort", 0):
                at = f"{path}[{index}].ports[{number}].hostPort"
                yield bad_value(at, on_host, "must match `containerPort` when `hostNetwork` is true")


def _validate_host(spec: Object, path: str) -> FieldErrors:
    if spec.get("hostUsers") is False:
        detail = "when `hostUsers` is false"
        if spec.get("hostNetwork"):
            yield forbidden(f"{path}.hostNetwork", detail)
        # Upstream spells these two fields this way.
        for field, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                yield forbidden(f"{path}.{shown}", detail)
    if (hostname := spec.get("hostnameOverride")) is None:
        return
    at = f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(at, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden(at, "may not be specified when hostNetwork is true")
    if len(hostname) > 64:
        yield too_long(at, 64)
    yield from check_at(at, hostname, check_dns_subdomain)


def _validate_dns(spec: Object, path: str) -> FieldErrors:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", detail)
            return
    if not config:
        return
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > _MOST_NAMESERVERS:
        detail = f"must not have more than {_MOST_NAMESERVERS} nameservers"
        yield bad_value(f"{path}.nameservers", servers, detail)
    for index, server in enumerate(servers):
        yield from check_at(f"{path}.nameservers[{index}]", server, check_ip)
    yield from _validate_searches(searches, f"{path}.searches")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def _validate_searches(searches: Sequence[str], path: str) -> FieldErrors:
    if len(searches) > _MOST_SEARCHES:
        yield bad_value(path, searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _LONGEST_SEARCHES:
        detail = (
            f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        )
        yield bad_value(path, searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            yield from check_at(f"{path}[{index}]", name, check_dns_search)


def _validate_host_aliases(aliases: Sequence[Object], path: str) -> FieldErrors:
    for index, alias in enumerate(aliases):
        yield from check_at(f"{path}[{index}].ip", alias.get("ip", ""), check_ip)
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from check_at(f"{path}[{index}].hostnames[{number}]", name, check_dns_subdomain)


def _validate_file_keys(spec: Object, path: str) -> FieldErrors:
    """Values read from files come from emptyDir volumes of the same pod."""
    volumes = {volume.get("name", ""): volume for volume in spec.get("volumes", ())}
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field, ())):
            for number, variable in enumerate(container.get("env", ())):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is None:
                    continue
                name = reference.get("volumeName", "")
                at = f"{path}.{field}[{index}].env[{number}].valueFrom.fileKeyRef.volumeName"
                if name not in volumes:
                    yield not_found(at, name)
                elif "emptyDir" not in volumes[name]:
                    yield bad_value(at, name, "referenced volume must be of type emptyDir")
