"""Which sysctls a pod may set: upstream's allowlist of safe ones. Pure.

A safe sysctl belongs to a namespace that the pod has to itself. Others are rejected, as by a kubelet without
`--allowed-unsafe-sysctls`.
"""

from __future__ import annotations

from collections.abc import Iterator

from podlife.kubelet.pod_fields import Pod

_IPC, _NET = "IPC", "Net"
_SAFE = {
    "kernel.shm_rmid_forced": _IPC,
    **dict.fromkeys(
        (
            "net.ipv4.ip_local_port_range",
            "net.ipv4.ip_local_reserved_ports",
            "net.ipv4.ip_unprivileged_port_start",
            "net.ipv4.ping_group_range",
            "net.ipv4.tcp_fin_timeout",
            "net.ipv4.tcp_keepalive_intvl",
            "net.ipv4.tcp_keepalive_probes",
            "net.ipv4.tcp_keepalive_time",
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_syncookies",
            "net.ipv4.tcp_wmem",
        ),
        _NET,
    ),
}


def sysctls_of(pod: Pod) -> dict[str, str]:
    """By name, with dots between its parts; slashes may have been written instead."""
    listed = (pod["spec"].get("securityContext") or {}).get("sysctls") or ()
    return {_normalized(each["name"]): str(each.get("value") or "") for each in listed}


def forbidden_sysctls(pod: Pod) -> Iterator[str]:
    """What a kubelet says of each that it does not allow."""
    spec = pod["spec"]
    shared = {_IPC: bool(spec.get("hostIPC")), _NET: bool(spec.get("hostNetwork"))}
    for name in sysctls_of(pod):
        namespace = _SAFE.get(name)
        if namespace is None:
            yield f'forbidden sysctl: "{name}" not allowlisted'
        elif shared[namespace]:
            yield f'forbidden sysctl: "{name}" not allowed with host {namespace} enabled'


def _normalized(name: str) -> str:
    """Where a slash comes first, slashes stand between the parts and dots are in them."""
    first = next((each for each in name if each in "./"), "")
    return name.translate(str.maketrans("./", "/.")) if first == "/" else name
