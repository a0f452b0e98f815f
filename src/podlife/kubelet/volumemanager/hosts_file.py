"""The /etc/hosts file of a pod's containers, in upstream's format. Pure.

A pod with its own network always has one. A pod in the host's network sees the host's file, and needs its own only for
hostAliases.
"""

from __future__ import annotations

from collections.abc import Sequence

from podlife.kubelet.pod_fields import Container, Pod

PATH = "/etc/hosts"
_CLUSTER_DOMAIN = "cluster.local"
_HEADER = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""
_HOST_NETWORK_HEADER = "# Kubernetes-managed hosts file (host network).\n"


def own_hosts_file(pod: Pod, hostname: str, ips: Sequence[str]) -> str:
    """For a pod with its own addresses."""
    subdomain = pod["spec"].get("subdomain")
    names = hostname
    if subdomain:
        names = f"{hostname}.{subdomain}.{pod['metadata'].get('namespace')}.svc.{_CLUSTER_DOMAIN}\t{hostname}"
    return _HEADER + "".join(f"{ip}\t{names}\n" for ip in ips) + _aliases(pod)


def node_hosts_file(pod: Pod, hosts: str) -> str:
    """For a pod in the host's network."""
    return _HOST_NETWORK_HEADER + hosts + _aliases(pod)


def has_own_file(container: Container) -> bool:
    """Whether the container mounts a volume at this path."""
    return any(each["mountPath"] == PATH for each in container.get("volumeMounts") or ())


def _aliases(pod: Pod) -> str:
    aliases = pod["spec"].get("hostAliases")
    if not aliases:
        return ""
    lines = ["\t".join((each["ip"], *(each.get("hostnames") or ()))) for each in aliases]
    return "\n# Entries added by HostAliases.\n" + "".join(f"{line}\n" for line in lines)
