"""Pods on behalf of an owner: the basis of controllers that create pods.

    control = PodControl(client, recorder)
    owner = owner_of(replica_set, REPLICA_SETS)
    await create_expected(
        expectations, key, missing, lambda: control.create_pods(namespace, template, owner, owner.controller_ref())
    )

Create, delete and patch with upstream's events (`PodControl`), adopt and release (`ControllerRefManager`), expect and
wait (`UidTrackedExpectations`, `create_expected`, `delete_expected`), slow start (`slow_start`), the deletion order
(`deletion_order`), an owner's pods (`pods_of_owner`). Templates stay dictionaries: no field is lost. Decisions are left
to the controllers.
"""

from podlife.podcontrol.controller_ref_manager import (
    ClaimResult,
    ClaimSettings,
    ControllerRefManager,
    Ownable,
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
    as_namespace_terminating,
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
from podlife.podcontrol.owner import ControllerRef, Owner, Parent, owner_of
from podlife.podcontrol.pod_batches import (
    INITIAL_BATCH,
    CreateUntilTerminating,
    create_expected,
    delete_expected,
    slow_start,
)
from podlife.podcontrol.pod_control import EventRecorder, PodControl, PodOperations, WriteHook
from podlife.podcontrol.pod_order import deletion_order, deletion_order_with_ranks, logging_order
from podlife.podcontrol.pod_state import (
    claimed_pods,
    is_active,
    is_available,
    is_ready,
    is_terminal,
    is_terminating,
    ready_since,
    seconds_to_next_check,
)
from podlife.podcontrol.template import Template, pod_from_template, validate_selector
from podlife.podcontrol.uncertain_creates import UncertainCreates
from podlife.podcontrol.views import (
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
    "POD_INDEXERS",
    "AdoptionRefusedError",
    "ClaimError",
    "ClaimResult",
    "ClaimSettings",
    "ControllerRef",
    "ControllerRefManager",
    "CreateUntilTerminating",
    "EnqueueOwner",
    "EventRecorder",
    "Expectation",
    "Expectations",
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
    "Template",
    "UidTrackedExpectations",
    "UncertainCreates",
    "WriteHook",
    "as_namespace_terminating",
    "claimed_pods",
    "controller_index_key",
    "create_expected",
    "delete_expected",
    "deletion_order",
    "deletion_order_with_ranks",
    "is_active",
    "is_available",
    "is_ready",
    "is_terminal",
    "is_terminating",
    "logging_order",
    "owner_of",
    "pod_from_template",
    "pods_of_owner",
    "ready_since",
    "recheck_owner",
    "release_patch",
    "seconds_to_next_check",
    "slow_start",
    "validate_selector",
]
