"""Scenarios for the workload controllers: one table, and three runs that must end in the same state of the API.

* kube-controller-manager on kube-apiserver gives the golden end states (`golden/<workload>.json`):
  `python -m tests.workloads.record replicaset [name ...]` records them.
* Ours on kube-apiserver: `pytest tests/real/workloads -k "ours and replicaset-scale_up"`; with `theirs` instead of
  `ours` kube-controller-manager is held against its own golden again.
* Ours on the embedded server under virtual time: `pytest tests/component/workloads/test_scenarios.py -k scale_up`.

A scenario is an async function on a `World` in `scenarios/<workload>.py`, registered with `@scenario("<workload>")`.
It plays users and nodes; the controllers are whoever is at work. Timed things take 1 to 3 seconds: on a real server
they are waited for. It should end where nothing is left to do, with `until` for what it is about; after it the runs
wait until the namespace is quiet and compare what `snapshot.py` says is left.
"""
