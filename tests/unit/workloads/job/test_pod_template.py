from __future__ import annotations

import copy

import pytest

from podlife.workloads.job.pod_template import blueprint
from podlife.workloads.job.pods import TRACKING_FINALIZER
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.job.made import context, ended, job, pod

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


def test_pod_of_a_plain_job_gets_the_finalizer_and_nothing_else() -> None:
    made = job()
    before = copy.deepcopy(made.spec.template)
    template = blueprint(context(made)).template
    assert template["metadata"] == {"labels": {"app": "work"}, "finalizers": [TRACKING_FINALIZER]}
    assert template["spec"] == before["spec"]
    assert made.spec.template == before


def test_finalizers_of_the_template_stay_and_none_comes_twice() -> None:
    for given in (["mine"], ["mine", TRACKING_FINALIZER]):
        made = job(template={"metadata": {"finalizers": given}, "spec": {}})
        assert blueprint(context(made)).template["metadata"]["finalizers"] == ["mine", TRACKING_FINALIZER]


def test_pod_of_an_index_knows_it_by_label_annotation_hostname_and_environment() -> None:
    own = {"name": "JOB_COMPLETION_INDEX", "value": "mine"}
    spec = {
        "initContainers": [{"name": "before"}],
        "containers": [{"name": "main", "env": [{"name": "A", "value": "b"}]}, {"name": "own", "env": [own]}],
    }
    made = job(completions=9, completionMode="Indexed", template={"metadata": {}, "spec": spec})
    before = copy.deepcopy(made.spec.template)
    drawn = blueprint(context(made), 3)
    template = drawn.template
    assert drawn.generate_name == "work-3-"
    assert template["metadata"]["labels"] == {INDEX: "3"} == template["metadata"]["annotations"]
    assert template["spec"]["hostname"] == "work-3"
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    assert template["spec"]["initContainers"] == [{"name": "before", "env": [variable]}]
    assert template["spec"]["containers"] == [
        {"name": "main", "env": [{"name": "A", "value": "b"}, variable]},
        {"name": "own", "env": [own]},
    ]
    assert made.spec.template == before


@pytest.mark.parametrize(("length", "kept"), [(54, 54), (55, 55), (56, 55), (63, 55)])
def test_long_name_is_cut_so_that_the_index_stays(length: int, kept: int) -> None:
    made = job(metadata={"name": "n" * length}, completions=9, completionMode="Indexed")
    assert blueprint(context(made), 3).generate_name == "n" * kept + "-3-"


def test_replacement_in_an_index_carries_how_often_it_has_failed() -> None:
    ignore = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}]}
    made = job(completions=9, completionMode="Indexed", backoffLimitPerIndex=5, podFailurePolicy=ignore)

    def counts(*pods: WorkloadPod) -> tuple[str | None, str | None]:
        annotations = blueprint(context(made, *pods), 3).template["metadata"]["annotations"]
        return annotations.get(FAILURES), annotations.get(IGNORED)

    assert counts() == ("0", None)
    assert counts(pod("Failed", index=3, containerStatuses=[ended(1)])) == ("1", None)
    assert counts(pod("Failed", index=3, failures=2, containerStatuses=[ended(1)])) == ("3", None)
    assert counts(pod("Failed", index=3, failures=2, containerStatuses=[ended(7)])) == ("2", "1")
    # Of several the one that failed last, and none of another index.
    first, last = (
        pod("Failed", index=3, failures=number, containerStatuses=[ended(1, 9 - number)]) for number in (0, 1)
    )
    assert counts(last, first, pod("Failed", index=4, failures=4)) == ("2", None)
