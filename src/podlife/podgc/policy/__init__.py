"""What operators may say about collecting pods: a file of rules, protections and guards.

`model` is what a policy is, `reading` makes it of a file, `engine` decides by it, `guards` hold back what it decides.
All of them are pure. Without a file the policy is upstream's.
"""

from podlife.podgc.policy.model import Policy

__all__ = ["Policy"]
