"""One group and version of another API server, as its APIService says, and as discovery shows it."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object


@dataclass(frozen=True, slots=True)
class RemoteApi:
    name: str
    group: str
    version: str
    namespace: str
    service: str
    port: int
    # PEM; without one, what the system trusts.
    ca_bundle: bytes
    is_insecure: bool
    group_priority: int
    version_priority: int

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}"

    @property
    def server_name(self) -> str:
        """The name that its certificate must have."""
        return f"{self.service}.{self.namespace}.svc"


def remote_api(api_service: Object) -> RemoteApi | None:
    """None for a group that this server serves itself."""
    spec = api_service["spec"]
    service = spec.get("service")
    if service is None or not spec.get("group"):
        return None
    return RemoteApi(
        api_service["metadata"]["name"],
        spec["group"],
        spec["version"],
        service["namespace"],
        service["name"],
        service["port"],
        b64decode(spec.get("caBundle", "")),
        spec.get("insecureSkipTLSVerify", False),
        spec["groupPriorityMinimum"],
        spec["versionPriority"],
    )


def discovered(resources: Any, api: RemoteApi) -> list[Object]:
    """The entries of an APIResourceList in the form of aggregated discovery; raises ValueError for anything else."""
    if not isinstance(resources, list):
        raise ValueError("it has no list of resources")
    found: dict[str, Object] = {}
    try:
        for entry in sorted(resources, key=lambda each: str(each["name"])):
            name, _, subresource = entry["name"].partition("/")
            kind = {
                "group": entry.get("group") or api.group,
                "version": entry.get("version") or api.version,
                "kind": entry["kind"],
            }
            shown: Object = {"responseKind": kind, "verbs": list(entry["verbs"])}
            if subresource:
                found[name].setdefault("subresources", []).append({"subresource": subresource, **shown})
                continue
            scope = "Namespaced" if entry["namespaced"] else "Cluster"
            names = {key: list(entry[key]) for key in ("shortNames", "categories") if entry.get(key)}
            singular = entry.get("singularName", "")
            found[name] = {
                "resource": name,
                "scope": scope,
                "singularResource": singular,
                **shown,
                **names,
            }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an entry has another shape: {error!r}") from None
    return list(found.values())
