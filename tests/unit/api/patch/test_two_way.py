"""Two-way patches, among them those of the pod garbage collector (GC-96 to GC-99)."""

from typing import Any

from podlife.api.patch import create_two_way_merge_patch, strategic_merge_patch

READY = {"type": "Ready", "status": "True"}
SCHEDULED = {"type": "PodScheduled", "status": "True"}


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": status}


def patch_between(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    patch = create_two_way_merge_patch(old, new, "v1", "Pod")
    assert strategic_merge_patch(old, patch, "v1", "Pod") == new
    return patch


def test_gc_96_nothing_changed_gives_an_empty_patch() -> None:
    assert patch_between(pod(conditions=[READY]), pod(conditions=[READY])) == {}


def test_gc_97_a_changed_message_is_all_there_is() -> None:
    assert patch_between(pod(phase="Running"), pod(phase="Running", message="random message")) == {
        "status": {"message": "random message"}
    }


def test_gc_98_a_flipped_condition_comes_with_its_type_and_the_order_of_all() -> None:
    old = pod(conditions=[READY, SCHEDULED])
    new = pod(conditions=[{"type": "Ready", "status": "False"}, SCHEDULED])
    assert patch_between(old, new) == {
        "status": {
            "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
            "conditions": [{"type": "Ready", "status": "False"}],
        }
    }


def test_gc_99_a_new_init_container_status_is_all_there_is() -> None:
    statuses = [{"name": "init", "ready": True}]
    assert patch_between(
        pod(conditions=[READY]), pod(conditions=[READY], initContainerStatuses=statuses)
    ) == {"status": {"initContainerStatuses": statuses}}


def test_a_removed_element_is_deleted_by_its_key_and_a_removed_field_by_null() -> None:
    assert patch_between(pod(conditions=[READY, SCHEDULED], message="m"), pod(conditions=[SCHEDULED])) == {
        "status": {
            "$setElementOrder/conditions": [{"type": "PodScheduled"}],
            "conditions": [{"$patch": "delete", "type": "Ready"}],
            "message": None,
        }
    }


def test_the_last_element_is_deleted_without_an_order() -> None:
    assert patch_between(pod(conditions=[READY]), pod(conditions=[])) == {
        "status": {"conditions": [{"$patch": "delete", "type": "Ready"}]}
    }


def test_a_new_order_is_enough_for_a_patch() -> None:
    assert patch_between(pod(conditions=[READY, SCHEDULED]), pod(conditions=[SCHEDULED, READY])) == {
        "status": {"$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "Ready"}]}
    }


def test_scalars_are_added_deleted_and_ordered() -> None:
    old, new = {"metadata": {"finalizers": ["a", "b"]}}, {"metadata": {"finalizers": ["c", "a"]}}
    assert patch_between(old, new) == {
        "metadata": {
            "finalizers": ["c"],
            "$deleteFromPrimitiveList/finalizers": ["b"],
            "$setElementOrder/finalizers": ["c", "a"],
        }
    }


def test_an_atomic_list_is_sent_whole() -> None:
    old = {"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}}
    new = {"spec": {"tolerations": [{"key": "b"}]}}
    assert patch_between(old, new) == new


def test_a_changed_volume_source_names_the_keys_to_retain() -> None:
    old = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    new = {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}}
    assert patch_between(old, new) == {
        "spec": {
            "$setElementOrder/volumes": [{"name": "v"}],
            "volumes": [
                {
                    "name": "v",
                    "emptyDir": None,
                    "hostPath": {"path": "/x"},
                    "$retainKeys": ["hostPath", "name"],
                }
            ],
        }
    }
