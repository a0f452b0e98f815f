"""The types of Kubernetes: what an object of a kind may hold, and what it looks like once it is read.

`check` is the gate that every object from outside passes before anything else looks at it. Afterwards the
object has the shape that Kubernetes' own types have, so that nothing behind it needs to be defensive:

* every field is known and of its type; integers are in range; times, quantities and base64 are valid;
* values are as the real API server writes them: quantities and times in canonical form, empty values that Go
  leaves out are gone, structs that Go always writes are there (`resources: {}`, `status: {}`), and so are
  required scalars (`restartCount: 0`);
* there are no nulls, except for a time that is always written and unset (`lastProbeTime` of a condition).

What required fields and sensible values are is not known here: that is validation.
"""

from __future__ import annotations

from podlife.api.schema.check import DecodeError, UnknownKindError, check
from podlife.api.schema.duplicates import duplicate_fields
from podlife.api.schema.table import Field, Type, kinds, type_named, type_of_kind
from podlife.api.schema.walk import go_kind

__all__ = [
    "DecodeError",
    "Field",
    "Type",
    "UnknownKindError",
    "check",
    "duplicate_fields",
    "go_kind",
    "kinds",
    "type_named",
    "type_of_kind",
]
