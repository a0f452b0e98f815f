"""Who is a pod of the set, and what makes it one."""

from __future__ import annotations

import msgspec
import pytest

from podlife.client import STATEFUL_SETS
from podlife.podcontrol import InvalidTemplateError, owner_of
from podlife.workloads.statefulset.identity import (
    has_identity,
    has_storage,
    is_member,
    new_pod,
    ordinal_of,
    revision_of,
)
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.statefulset.objects import DATA, TEMPLATE, pod, stateful_set


def named(name: str) -> WorkloadPod:
    return msgspec.convert({"metadata": {"name": name, "namespace": "default"}}, WorkloadPod)


@pytest.mark.parametrize(
    ("name", "ordinal", "member"),
    [
        ("web-0", 0, True),
        ("web-12", 12, True),
        ("web-2147483647", 2147483647, True),
        ("web-2147483648", -1, False),
        ("web-99999999999", -1, False),
        ("web-01", -1, False),
        ("web", -1, False),
        ("web-", -1, False),
        ("web-a", -1, False),
        ("web-a-3", 3, False),
        ("other-3", 3, False),
        ("web-1-web-1", 1, False),
    ],
)
def test_a_pod_belongs_to_the_set_by_the_ordinal_at_the_end_of_its_name(
    name: str, ordinal: int, member: bool
) -> None:
    assert ordinal_of(named(name)) == ordinal
    assert is_member(stateful_set(), named(name)) is member


def test_a_new_pod_says_who_it_is() -> None:
    of = stateful_set(volumeClaimTemplates=[DATA])
    made = new_pod(of, owner_of(of, STATEFUL_SETS), 2, "web-abc", TEMPLATE)
    assert made["metadata"]["name"] == "web-2"
    assert made["metadata"]["namespace"] == "default"
    assert made["metadata"]["generateName"] == "web-"
    assert made["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "web-abc",
    }
    assert made["metadata"]["ownerReferences"][0]["uid"] == of.metadata.uid
    assert made["spec"]["hostname"] == "web-2"
    assert made["spec"]["subdomain"] == "service"
    assert made["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}}]
    assert "volumes" not in TEMPLATE["spec"]


def test_a_claim_takes_the_place_of_a_volume_of_its_name_and_others_stay() -> None:
    of = stateful_set(volumeClaimTemplates=[DATA], serviceName="")
    spec = {
        "subdomain": "mine",
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}],
    }
    made = new_pod(of, owner_of(of, STATEFUL_SETS), 0, "web-abc", {**TEMPLATE, "spec": spec})
    assert [volume["name"] for volume in made["spec"]["volumes"]] == ["data", "tmp"]
    assert "emptyDir" not in made["spec"]["volumes"][0]
    assert "subdomain" not in made["spec"]


def test_no_pod_is_made_of_what_is_no_template() -> None:
    of = stateful_set()
    with pytest.raises(InvalidTemplateError, match="has no spec"):
        new_pod(of, owner_of(of, STATEFUL_SETS), 0, "web-abc", {"metadata": {}})


def test_a_pod_is_known_by_its_label_and_its_volumes() -> None:
    of = stateful_set(volumeClaimTemplates=[DATA])
    good = pod(of, 1)
    assert has_identity(good)
    assert has_storage(of, good)
    assert revision_of(good) == "web-new"
    assert not has_identity(pod(of, 1, labels={"app": "web"}))
    assert not has_identity(pod(of, 1, labels={"statefulset.kubernetes.io/pod-name": "web-2"}))
    assert revision_of(pod(of, 1, labels={})) == ""
    for volumes in (
        [],
        [{"name": "data", "emptyDir": {}}],
        [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}],
        [{"name": "other", "persistentVolumeClaim": {"claimName": "data-web-1"}}],
    ):
        assert not has_storage(of, pod(of, 1, volumes=volumes))
