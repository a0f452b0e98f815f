"""Guards: limits that hold whatever a policy decides.

`budget` counts and decides, `windows` are the times of deletions. `plan_filter` applies guards to a plan, `sweep_gate`
to a one-off sweep, `controller_gate` to the running collector.
"""
