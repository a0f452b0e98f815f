"""Field sets and how objects merge: what server-side apply and managedFields are made of.

Pure functions over plain dictionaries: `field_set` (sets, as FieldsV1 writes them), `merge_type` (how a type merges),
`typed` (values and their fields), `compare`, `merge`, and `updater` (who owns what after a write). All of it behaves
as upstream's structured-merge-diff; work is linear in the objects and sets given.
"""

from podlife.api.fieldpath.compare import Comparison, compare
from podlife.api.fieldpath.elements import show_path
from podlife.api.fieldpath.field_set import (
    FieldSet,
    Path,
    difference,
    from_outside,
    has,
    in_order,
    intersection,
    of_paths,
    paths,
    recursive_difference,
    union,
)
from podlife.api.fieldpath.merge import merge, remove_items
from podlife.api.fieldpath.merge_type import (
    MergeType,
    merge_type_of_kind,
    merge_type_of_props,
    zero_object,
)
from podlife.api.fieldpath.typed import TypedValueError, check_typed, field_set_of
from podlife.api.fieldpath.updater import (
    FieldConflictError,
    ManagedSet,
    Managers,
    Updater,
    Version,
    Versions,
    updater_of_kind,
    with_atomics,
)

__all__ = [
    "Comparison",
    "FieldConflictError",
    "FieldSet",
    "ManagedSet",
    "Managers",
    "MergeType",
    "Path",
    "TypedValueError",
    "Updater",
    "Version",
    "Versions",
    "check_typed",
    "compare",
    "difference",
    "field_set_of",
    "from_outside",
    "has",
    "in_order",
    "intersection",
    "merge",
    "merge_type_of_kind",
    "merge_type_of_props",
    "of_paths",
    "paths",
    "recursive_difference",
    "remove_items",
    "show_path",
    "union",
    "updater_of_kind",
    "with_atomics",
    "zero_object",
]
