"""Which kernel parameters a pod may set."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.kubelet.admission.predicates import AdmissionFailure, admission_failure
from podlife.kubelet.admission.sysctls import sysctls_of

NODE = {"metadata": {"name": "n"}, "status": {}}


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    context = {"sysctls": [{"name": name, "value": "1"}]}
    return {"metadata": {"name": "p"}, "spec": {"containers": [], "securityContext": context, **spec}}


def test_a_safe_one_is_taken_however_it_is_written() -> None:
    for name in ("kernel.shm_rmid_forced", "kernel/shm_rmid_forced"):
        pod = a_pod(name)
        assert admission_failure(pod, NODE, []) is None
        assert sysctls_of(pod) == {"kernel.shm_rmid_forced": "1"}


def test_a_dot_within_a_part_is_no_separator() -> None:
    assert sysctls_of(a_pod("net/ipv4/conf/eth0.1/mtu")) == {"net.ipv4.conf.eth0/1.mtu": "1"}


@pytest.mark.parametrize(
    ("name", "spec", "said"),
    [
        ("kernel.msgmax", {}, '"kernel.msgmax" not allowlisted'),
        (
            "net.ipv4.tcp_syncookies",
            {"hostNetwork": True},
            '"net.ipv4.tcp_syncookies" not allowed with host Net enabled',
        ),
        (
            "kernel.shm_rmid_forced",
            {"hostIPC": True},
            '"kernel.shm_rmid_forced" not allowed with host IPC enabled',
        ),
    ],
)
def test_one_that_is_not_the_pod_s_own_is_refused_in_a_kubelet_s_words(
    name: str, spec: dict[str, Any], said: str
) -> None:
    assert admission_failure(a_pod(name, **spec), NODE, []) == AdmissionFailure(
        "SysctlForbidden", f"forbidden sysctl: {said}"
    )
