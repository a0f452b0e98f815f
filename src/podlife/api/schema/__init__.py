"""The types of Kubernetes: decoding and canonical form of the objects of a kind.

Every object from outside passes `check` before it is used. Afterwards the object has the shape of Kubernetes' own
types, so that later code need not be defensive:

* every field is known and of its type; integers are in range; times, quantities and base64 are valid;
* values are as kube-apiserver writes them: quantities and times in canonical form, empty values that Go omits removed,
  structs that Go always writes (`resources: {}`, `status: {}`) and required scalars (`restartCount: 0`) present;
* nulls occur only for an unset time that is always written (`lastProbeTime` of a condition).

Required fields and plausible values are left to validation.
"""

from __future__ import annotations

from podlife.api.schema.check import DecodeError, UnknownKindError, check, check_metadata
from podlife.api.schema.duplicates import duplicate_fields
from podlife.api.schema.table import Field, Type, kinds, type_named, type_of_kind
from podlife.api.schema.walk import go_kind

__all__ = [
    "DecodeError",
    "Field",
    "Type",
    "UnknownKindError",
    "check",
    "check_metadata",
    "duplicate_fields",
    "go_kind",
    "kinds",
    "type_named",
    "type_of_kind",
]
