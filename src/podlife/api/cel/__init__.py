"""Common Expression Language as Kubernetes v1.36 uses it: validation rules, admission policies, match conditions.

`compile(source, Environment)` checks an expression against typed variables; `Program.evaluate` runs it within a cost
limit, and `Program.estimated_cost` bounds what it may cost. Error messages and costs are upstream's; tests compare
them with cel-go in Kubernetes' environment (`tests/real/cel`).

Guarantees: nothing but `CelError` is raised for any source and any JSON values. Time and memory follow the cost
limit, patterns run in linear time (RE2), and recursion is bounded. Programs have no state.
"""

from podlife.api.cel.declarations import Environment
from podlife.api.cel.errors import CelError, CostLimitExceededError, EvaluationError
from podlife.api.cel.library.authorization import Authorizer, Decision
from podlife.api.cel.program import (
    PER_CALL_LIMIT,
    PER_DEFINITION_ESTIMATE,
    PER_EXPRESSION_ESTIMATE,
    Evaluation,
    Program,
    compile,  # noqa: A004 - the verb of CEL, used as `cel.compile`
)
from podlife.api.cel.schema import escape_name, schema_type
from podlife.api.cel.types import (
    ANY,
    BOOL,
    DYN,
    INT,
    STRING,
    CelType,
    list_of,
    map_of,
    optional_of,
    parse_type,
    struct,
)
from podlife.api.cel.values import Duration, Optional, Struct, Timestamp, Uint

__all__ = [
    "ANY",
    "BOOL",
    "DYN",
    "INT",
    "PER_CALL_LIMIT",
    "PER_DEFINITION_ESTIMATE",
    "PER_EXPRESSION_ESTIMATE",
    "STRING",
    "Authorizer",
    "CelError",
    "CelType",
    "CostLimitExceededError",
    "Decision",
    "Duration",
    "Environment",
    "Evaluation",
    "EvaluationError",
    "Optional",
    "Program",
    "Struct",
    "Timestamp",
    "Uint",
    "compile",
    "escape_name",
    "list_of",
    "map_of",
    "optional_of",
    "parse_type",
    "schema_type",
    "struct",
]
