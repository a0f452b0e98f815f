"""ServiceAccount: a pod has an account that exists, its token, and the account's image pull secrets.

The token comes in a projected volume with the cluster's CA and the pod's namespace, where client libraries look for
them, unless the pod or the account opts out. A mirror pod has none: its manifest cannot refer to objects of the API.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from podlife.api.codec import Object, decode_object
from podlife.api.names import generate_name
from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.apiserver.authz import references
from podlife.apiserver.service_accounts.tokens import POD_TOKEN_SECONDS
from podlife.apiserver.storage import Key

_MIRROR = "kubernetes.io/config.mirror"
_ENFORCED = "kubernetes.io/enforce-mountable-secrets"
_VOLUME = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TITLES = {
    "initContainers": "init container",
    "containers": "container",
    "ephemeralContainers": "ephemeral container",
}
_LOOKS = 10
_LOOK_SECONDS = 0.15
# What Go's ParseBool takes for true.
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_NAMESPACE = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
_PROJECTED: Object = {
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": POD_TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [_NAMESPACE]}},
    ],
    "defaultMode": 0o644,
}


def require_account(chance: random.Random) -> Plugin:
    def plugin(request: AdmissionRequest, reader: Reader) -> None:
        if request.resource.key != "pods" or request.new is None:
            return
        if request.operation is Operation.CREATE and not request.subresource:
            if _MIRROR in (request.new["metadata"].get("annotations") or {}):
                _check_mirror_pod(request, request.new)
            else:
                _admit(request, request.new, reader, chance)
        elif request.operation is Operation.UPDATE and request.subresource == "ephemeralcontainers":
            account = _account(request, request.new["spec"], reader)
            _check_secrets(request, account, request.new, ("ephemeralContainers",))

    return plugin


async def default_account_created(reader: Reader, namespace: str) -> None:
    """Wait for the default account of a new namespace, which a controller creates; as upstream, not for long."""
    for _ in range(_LOOKS):
        is_there = reader(Key("serviceaccounts", namespace, "default")) is not None
        if is_there or reader(Key("namespaces", "", namespace)) is None:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _admit(request: AdmissionRequest, pod: Object, reader: Reader, chance: random.Random) -> None:
    spec = pod["spec"]
    name = spec["serviceAccountName"] = spec.get("serviceAccountName") or "default"
    # The deprecated field says the same.
    spec["serviceAccount"] = name
    account = _account(request, spec, reader)
    wishes = (each.get("automountServiceAccountToken") for each in (spec, account))
    if next((wish for wish in wishes if wish is not None), True):
        _mount_token(spec, chance)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [
            {"name": each["name"]} if each.get("name") else {} for each in account["imagePullSecrets"]
        ]
    _check_secrets(request, account, pod, ("initContainers", "containers"))


def _account(request: AdmissionRequest, spec: Object, reader: Reader) -> Object:
    name = spec.get("serviceAccountName") or ""
    if not name:
        where = f"{request.namespace}/{request.shown_name}"
        raise request.forbidden(f"no service account specified for pod {where}")
    record = reader(Key("serviceaccounts", request.namespace, name))
    if record is None:
        raise request.forbidden(
            f'error looking up service account {request.namespace}/{name}: serviceaccount "{name}" not found'
        )
    return decode_object(record.value)


def _mount_token(spec: Object, chance: random.Random) -> None:
    volumes: list[Any] = spec.get("volumes") or []
    given = next((each["name"] for each in volumes if each["name"].startswith(_VOLUME)), "")
    name = given or generate_name(_VOLUME, chance)
    mount = {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}
    without = [
        container
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
        if all(each.get("mountPath") != _MOUNT_PATH for each in container.get("volumeMounts") or ())
    ]
    for container in without:
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), dict(mount)]
    if without and not given:
        spec["volumes"] = [*volumes, {"name": name, "projected": deepcopy(_PROJECTED)}]


def _check_mirror_pod(request: AdmissionRequest, pod: Object) -> None:
    if pod["spec"].get("serviceAccountName"):
        raise request.forbidden("a mirror pod may not reference service accounts")
    if any(resource == "secrets" for resource, _ in references(pod)):
        raise request.forbidden("a mirror pod may not reference secrets")
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise request.forbidden("a mirror pod may not use ServiceAccountToken volume projections")


def _check_secrets(request: AdmissionRequest, account: Object, pod: Object, fields: tuple[str, ...]) -> None:
    """An account may limit its pods to the secrets that it names itself."""
    meta, spec = account["metadata"], pod["spec"]
    if (meta.get("annotations") or {}).get(_ENFORCED) not in _TRUE:
        return
    named = {
        field: {each.get("name", "") for each in account.get(field) or ()}
        for field in ("secrets", "imagePullSecrets")
    }
    used = [
        (f"{_TITLES[field]} {container['name']} with {what} referencing secret.secretName", name, "secret")
        for field in fields
        for container in spec.get(field) or ()
        for what, name in _container_secrets(container)
    ]
    if "containers" in fields:
        volumes = [each["secret"] for each in spec.get("volumes") or () if each.get("secret") is not None]
        used[:0] = [
            ("volume with secret.secretName", each.get("secretName", ""), "secret") for each in volumes
        ]
        pulled = enumerate(spec.get("imagePullSecrets") or ())
        used += [
            (f"imagePullSecrets[{at}].name", each.get("name", ""), "imagePullSecret") for at, each in pulled
        ]
    for where, name, kind in used:
        if name not in named[f"{kind}s"]:
            why = f"is not allowed because service account {meta['name']} does not reference that {kind}"
            raise request.forbidden(f'{where}="{name}" {why}')


def _container_secrets(container: Object) -> Iterator[tuple[str, str]]:
    for each in container.get("env") or ():
        if (ref := (each.get("valueFrom") or {}).get("secretKeyRef")) is not None:
            yield f"envVar {each['name']}", ref.get("name", "")
    for each in container.get("envFrom") or ():
        if (ref := each.get("secretRef")) is not None:
            yield "envFrom", ref.get("name", "")
