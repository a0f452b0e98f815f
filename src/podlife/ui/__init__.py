"""The page of `podlife ui`: the lives of all pods and nodes of a cluster in a browser, what will happen and why.

Informers, `explain` and the planner feed it; it has no model of its own. It serves loopback only unless told otherwise,
needs a token, loads nothing from elsewhere, and changes nothing unless it is allowed to sweep.
"""
