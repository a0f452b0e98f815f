"""Policies of the collector: rules, protections and guards in a file.

`model` has the values, `parse` reads them from a file, `schema` describes the file, `engine` applies them to pods. All
of it is pure. Without a file, the collector behaves as upstream.
"""

from podlife.podgc.policy.model import Guards, Keep, OwnerWait, Policy, Protection, Rule, Selector, Window

__all__ = ["Guards", "Keep", "OwnerWait", "Policy", "Protection", "Rule", "Selector", "Window"]
