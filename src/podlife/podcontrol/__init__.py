"""Pods on behalf of an owner: what a controller that makes pods stands on.

    control = PodControl(client, recorder)
    owner = owner_of(replica_set, REPLICA_SETS)
    await create_expected(
        expectations, key, missing, lambda: control.create_pods(namespace, template, owner, owner.controller_ref())
    )

Create, delete and patch with upstream's events (`PodControl`), adopt and release (`ControllerRefManager`), expect and
wait (`UidTrackedExpectations`, `create_expected`, `delete_expected`), begin slowly (`slow_start`), choose which pods go
first (`deletion_order`), find an owner's pods (`pods_of_owner`). A template stays the dictionary it is: nothing in
it is lost. What to do with all this, and when, is for the controllers.
"""

from podlife.podcontrol.controller_ref_manager import (
    ClaimResult,
    ClaimSettings,
    ControllerRefManager,
    Ownable,
    adoption_patch,
    recheck_owner,
    release_patch,
)
from podlife.podcontrol.enqueue import EnqueueOwner
from podlife.podcontrol.errors import (
    AdoptionRefusedError,
    ClaimError,
    InvalidControllerRefError,
    InvalidInputError,
    InvalidOwnerError,
    InvalidTemplateError,
    NamespaceTerminatingError,
    PodDeleteError,
    PodReplacedError,
    SelectorMismatchError,
)
from podlife.podcontrol.expectations import Expectation, Expectations, UidTrackedExpectations
from podlife.podcontrol.indexes import (
    BY_CONTROLLER,
    BY_NAMESPACE,
    BY_NODE,
    POD_INDEXERS,
    controller_index_key,
    pods_of_owner,
)
from podlife.podcontrol.owner import (
    ControllerRef,
    Owner,
    Parent,
    controller_ref_of,
    owner_of,
    validate_controller_ref,
)
from podlife.podcontrol.pod_batches import (
    INITIAL_BATCH,
    SlowStart,
    create_expected,
    delete_expected,
    slow_start,
)
from podlife.podcontrol.pod_control import (
    EventRecorder,
    PodControl,
    PodOperations,
    WriteHook,
)
from podlife.podcontrol.pod_order import (
    POD_DELETION_COST,
    deletion_cost,
    deletion_order,
    deletion_order_with_ranks,
    logging_order,
)
from podlife.podcontrol.pod_state import (
    claimed_pods,
    is_active,
    is_available,
    is_ready,
    is_terminal,
    is_terminating,
    next_availability_check,
    ready_since,
    seconds_to_next_check,
)
from podlife.podcontrol.template import Template, pod_from_template, pod_name_prefix, validate_selector
from podlife.podcontrol.uncertain_creates import UncertainCreates, may_have_happened
from podlife.podcontrol.views import (
    InitContainer,
    OwnedContainerStatus,
    OwnedPod,
    OwnedPodCondition,
    OwnedPodMetadata,
    OwnedPodSpec,
    OwnedPodStatus,
)

__all__ = [
    "BY_CONTROLLER",
    "BY_NAMESPACE",
    "BY_NODE",
    "INITIAL_BATCH",
    "POD_DELETION_COST",
    "POD_INDEXERS",
    "AdoptionRefusedError",
    "ClaimError",
    "ClaimResult",
    "ClaimSettings",
    "ControllerRef",
    "ControllerRefManager",
    "EnqueueOwner",
    "EventRecorder",
    "Expectation",
    "Expectations",
    "InitContainer",
    "InvalidControllerRefError",
    "InvalidInputError",
    "InvalidOwnerError",
    "InvalidTemplateError",
    "NamespaceTerminatingError",
    "Ownable",
    "OwnedContainerStatus",
    "OwnedPod",
    "OwnedPodCondition",
    "OwnedPodMetadata",
    "OwnedPodSpec",
    "OwnedPodStatus",
    "Owner",
    "Parent",
    "PodControl",
    "PodDeleteError",
    "PodOperations",
    "PodReplacedError",
    "SelectorMismatchError",
    "SlowStart",
    "Template",
    "UidTrackedExpectations",
    "UncertainCreates",
    "WriteHook",
    "adoption_patch",
    "claimed_pods",
    "controller_index_key",
    "controller_ref_of",
    "create_expected",
    "delete_expected",
    "deletion_cost",
    "deletion_order",
    "deletion_order_with_ranks",
    "is_active",
    "is_available",
    "is_ready",
    "is_terminal",
    "is_terminating",
    "logging_order",
    "may_have_happened",
    "next_availability_check",
    "owner_of",
    "pod_from_template",
    "pod_name_prefix",
    "pods_of_owner",
    "ready_since",
    "recheck_owner",
    "release_patch",
    "seconds_to_next_check",
    "slow_start",
    "validate_controller_ref",
    "validate_selector",
]
