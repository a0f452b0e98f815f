"""Parses policy files. Errors have a line and a column, and say what to write instead."""

from podlife.api.yaml_fields import Mistake
from podlife.podgc.policy.parse.document import (
    API_VERSION,
    KIND,
    MOST_BYTES,
    load_policy,
    read_policy,
    read_policy_bytes,
    read_policy_file,
)
from podlife.podgc.policy.parse.yaml_nodes import PolicyError

__all__ = [
    "API_VERSION",
    "KIND",
    "MOST_BYTES",
    "Mistake",
    "PolicyError",
    "load_policy",
    "read_policy",
    "read_policy_bytes",
    "read_policy_file",
]
