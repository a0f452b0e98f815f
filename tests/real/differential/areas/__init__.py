"""The table, by area. The order of areas does not matter; the order of steps in one does."""

from tests.real.differential.areas.apply import APPLY
from tests.real.differential.areas.certificates import CERTIFICATES
from tests.real.differential.areas.cluster import NAMESPACES, NODES_AND_VOLUMES
from tests.real.differential.areas.custom_apply import CUSTOM_APPLY, CUSTOM_MANAGERS
from tests.real.differential.areas.custom_resources import BAD, DEFINITIONS, INSTANCES, VERSIONS
from tests.real.differential.areas.deletion import COLLECTIONS, DELETION, FINALIZERS
from tests.real.differential.areas.devices import DEVICES
from tests.real.differential.areas.formats import FIELDS, TABLES
from tests.real.differential.areas.kinds import BATCHES, PLAIN, WORKLOADS
from tests.real.differential.areas.managers import MANAGERS, MERGES
from tests.real.differential.areas.networks import NETWORKS
from tests.real.differential.areas.other_groups import API_SERVICES, AUTOSCALERS, CLASSES, INGRESSES
from tests.real.differential.areas.patches import PATCHES
from tests.real.differential.areas.pod_creation import CREATION
from tests.real.differential.areas.pod_resize import RESIZE
from tests.real.differential.areas.pod_updates import UPDATES
from tests.real.differential.areas.pod_validation import VALIDATION
from tests.real.differential.areas.policies import FLOW_CONTROL, RBAC, SLICES
from tests.real.differential.areas.protocol import ACCESS, DISCOVERY, ERRORS
from tests.real.differential.areas.reading import LISTS, WATCHES
from tests.real.differential.areas.storage import STORAGE
from tests.real.differential.areas.subresources import BINDING, CONNECT, EVICTION, SCALE
from tests.real.differential.areas.validation_rules import BAD_RULES, RATCHET, RULES

__all__ = ["AREAS"]

AREAS = [
    CREATION,
    VALIDATION,
    UPDATES,
    RESIZE,
    LISTS,
    WATCHES,
    PATCHES,
    APPLY,
    MANAGERS,
    MERGES,
    DELETION,
    FINALIZERS,
    COLLECTIONS,
    BINDING,
    CONNECT,
    EVICTION,
    SCALE,
    PLAIN,
    WORKLOADS,
    BATCHES,
    NAMESPACES,
    NODES_AND_VOLUMES,
    TABLES,
    FIELDS,
    ERRORS,
    ACCESS,
    DISCOVERY,
    DEFINITIONS,
    BAD,
    INSTANCES,
    VERSIONS,
    CUSTOM_APPLY,
    CUSTOM_MANAGERS,
    BAD_RULES,
    RULES,
    RATCHET,
    FLOW_CONTROL,
    RBAC,
    SLICES,
    AUTOSCALERS,
    INGRESSES,
    NETWORKS,
    CLASSES,
    STORAGE,
    DEVICES,
    CERTIFICATES,
    API_SERVICES,
]
