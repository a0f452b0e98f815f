"""The spec of a pod as a whole, alone and inside a template.

`is_pod` is true for a pod itself: a template may still be incomplete where its controller fills it in.
"""

from __future__ import annotations

from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    forbidden,
    not_found,
    required,
    too_long,
)
from podlife.api.labels import validate_labels
from podlife.api.names import check_dns_label, check_dns_search, check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.core.pod.containers import (
    ContainerContext,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from podlife.apiserver.strategies.core.pod.node_selection import (
    validate_affinity,
    validate_scheduling_gates,
    validate_spread,
    validate_tolerations,
)
from podlife.apiserver.strategies.core.pod.security_context import (
    validate_operating_system,
    validate_pod_security,
)
from podlife.apiserver.strategies.core.pod.volumes import validate_volumes
from podlife.apiserver.strategies.core.resource_requirements import validate_resources
from podlife.apiserver.strategies.field_checks import at_most_int32, is_ip, problems_at, required_choice

RESTART_POLICIES = ("Always", "OnFailure", "Never")
IP_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SUBDOMAIN_FIELDS = ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName")
_LABEL_FIELDS = ("hostname", "subdomain")
_MOST_NAMESERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048
# Fields in the spec of nearly every pod; anything else takes the slower path.
_USUAL = frozenset(
    {
        "containers",
        "dnsPolicy",
        "enableServiceLinks",
        "initContainers",
        "nodeName",
        "preemptionPolicy",
        "priority",
        "restartPolicy",
        "schedulerName",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
        "tolerations",
        "volumes",
    }
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
        at = f"{path}.initContainers"
        errors += validate_init_containers(spec["initContainers"], at, containers, around)
    if "ephemeralContainers" in spec:
        others = [*containers, *spec.get("initContainers", ())]
        at = f"{path}.ephemeralContainers"
        errors += validate_ephemeral_containers(spec["ephemeralContainers"], at, others, around)
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
    return errors + _validate_preemption(spec, path)


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


def _validate_names(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in _SUBDOMAIN_FIELDS:
        if (name := spec.get(field)) and (problems := check_dns_subdomain(name)):
            errors += problems_at(f"{path}.{field}", name, problems)
    for field in _LABEL_FIELDS:
        if (name := spec.get(field)) and (problems := check_dns_label(name)):
            errors += problems_at(f"{path}.{field}", name, problems)
    return errors


def _validate_preemption(spec: Object, path: str) -> list[FieldError]:
    policy = spec.get("preemptionPolicy", "PreemptLowerPriority")
    return required_choice(f"{path}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _validate_unusual(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if resources := spec.get("resources"):
        errors += validate_resources(resources, f"{path}.resources", claims=frozenset(), pod_level=True)
    errors += validate_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    if affinity := spec.get("affinity"):
        errors += validate_affinity(affinity, f"{path}.affinity")
    errors += _validate_dns(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates", ())):
        kind = gate.get("conditionType", "")
        errors += problems_at(f"{path}.readinessGates[{index}].conditionType", kind, check_label_key(kind))
    errors += validate_scheduling_gates(spec.get("schedulingGates", ()), f"{path}.schedulingGates")
    constraints = spec.get("topologySpreadConstraints", ())
    errors += validate_spread(constraints, f"{path}.topologySpreadConstraints")
    errors += _validate_host(spec, path)
    deadline = spec.get("activeDeadlineSeconds")
    errors += at_most_int32(f"{path}.activeDeadlineSeconds", deadline, least=1)
    errors += _validate_host_aliases(spec.get("hostAliases", ()), f"{path}.hostAliases")
    if overhead := spec.get("overhead"):
        limits = {"limits": overhead}
        errors += validate_resources(limits, f"{path}.overhead", claims=frozenset())
    if "os" in spec:
        errors += validate_operating_system(spec, path)
    return errors + _validate_file_keys(spec, path)


def _validate_claims(claims: Sequence[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at = f"{path}[{index}]"
        name = claim.get("name", "")
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in seen:
            errors.append(duplicate(f"{at}.name", name))
        else:
            errors += problems_at(f"{at}.name", name, check_dns_label(name))
        seen.add(name)
        sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
        if len(sources) == 2:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(bad_value(at, _as_upstream_shows(claim), detail))
        if not sources:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(bad_value(at, _as_upstream_shows(claim), detail))
        for field in sources:
            errors += problems_at(f"{at}.{field}", claim[field], check_dns_subdomain(claim[field]))
    return errors


def _as_upstream_shows(claim: Object) -> Object:
    fields = ("name", "resourceClaimName", "resourceClaimTemplateName")
    shown = {field[0].upper() + field[1:]: claim.get(field) for field in fields}
    return {**shown, "Name": claim.get("name", "")}


def _validate_host_network(containers: Sequence[Object], path: str, is_pod: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", ())):
            on_host = port.get("hostPort", 0)
            if (is_pod or on_host) and on_host != port.get("containerPort", 0):
                at = f"{path}[{index}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.append(bad_value(at, on_host, detail))
    return errors


def _validate_host(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("hostUsers") is False:
        detail = "when `hostUsers` is false"
        if spec.get("hostNetwork"):
            errors.append(forbidden(f"{path}.hostNetwork", detail))
        # Upstream spells these two fields this way.
        for field, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                errors.append(forbidden(f"{path}.{shown}", detail))
    if (hostname := spec.get("hostnameOverride")) is None:
        return errors
    at = f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(at, "may not be specified when hostNetwork is true"))
    if len(hostname) > 64:
        errors.append(too_long(at, 64))
    return errors + problems_at(at, hostname, check_dns_subdomain(hostname))


def _validate_dns(spec: Object, path: str) -> list[FieldError]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if not config:
        return []
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    errors: list[FieldError] = []
    if len(servers) > _MOST_NAMESERVERS:
        detail = f"must not have more than {_MOST_NAMESERVERS} nameservers"
        errors.append(bad_value(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        if not is_ip(server):
            errors.append(bad_value(f"{path}.nameservers[{index}]", server, IP_RULE))
    errors += _validate_searches(searches, f"{path}.searches")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _validate_searches(searches: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(searches) > _MOST_SEARCHES:
        detail = f"must not have more than {_MOST_SEARCHES} search paths"
        errors.append(bad_value(path, searches, detail))
    if len(" ".join(searches)) > _LONGEST_SEARCHES:
        detail = (
            f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        )
        errors.append(bad_value(path, searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            errors += problems_at(f"{path}[{index}]", name, check_dns_search(name))
    return errors


def _validate_host_aliases(aliases: Sequence[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, alias in enumerate(aliases):
        if not is_ip(address := alias.get("ip", "")):
            errors.append(bad_value(f"{path}[{index}].ip", address, IP_RULE))
        for number, name in enumerate(alias.get("hostnames") or ()):
            errors += problems_at(f"{path}[{index}].hostnames[{number}]", name, check_dns_subdomain(name))
    return errors


def _validate_file_keys(spec: Object, path: str) -> list[FieldError]:
    """Values read from files come from emptyDir volumes of the same pod."""
    errors: list[FieldError] = []
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
                    errors.append(not_found(at, name))
                elif "emptyDir" not in volumes[name]:
                    errors.append(bad_value(at, name, "referenced volume must be of type emptyDir"))
    return errors
