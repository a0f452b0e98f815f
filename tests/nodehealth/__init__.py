"""Scenarios for node health: one table, and three runs that must come to the same, in the same order.

* kube-controller-manager on kube-apiserver gives the golden outcomes (`golden.json`):
  `python -m tests.nodehealth.record` plays all of them twice and writes what came out the same both times.
* Ours on kube-apiserver, and kube-controller-manager once more: `pytest tests/real/nodehealth`.
* Ours on the embedded server under virtual time: `pytest tests/component/nodehealth/test_scenarios.py`.

A scenario is an async function on a `Stage` in `scenarios.py`. It has nodes and zones of its own; a node of nobody's is
always ready, so that no scenario makes all zones of the cluster go down, but for those that are played alone. Times are
short (`stage.py`). What is compared is in `outcome.py`.
"""
