"""Admission policies: rules in the form of expressions, which bindings put in force.

`PolicyDispatcher` finds the policies that a request concerns, evaluates their expressions and applies the results.
"""

from podlife.apiserver.admission.policies.configuration import Policy
from podlife.apiserver.admission.policies.dispatcher import PolicyDispatcher

__all__ = ["Policy", "PolicyDispatcher"]
