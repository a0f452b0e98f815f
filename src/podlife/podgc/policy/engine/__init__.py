"""Applies a policy to pods: facts of a pod, matching of selectors, groups of a rule, and the classifier of the
index."""
