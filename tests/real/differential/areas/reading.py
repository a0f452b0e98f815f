"""Get, list and watch: pages, versions, selectors, the order of events."""

from __future__ import annotations

from tests.real.differential.areas.objects import CORE, PODS, config_map, delete_options, pod
from tests.real.differential.steps import Area

LISTS = Area("lists")
MAPS = CORE + "/configmaps"
VERSION = {"rv": "metadata.resourceVersion"}

for letter in "abcdefg":
    tier = "front" if letter in "abc" else "back"
    LISTS.post(f"create-{letter}", MAPS, config_map(letter, metadata={"labels": {"tier": tier, "n": letter}}))
LISTS.get("get", MAPS + "/a")
LISTS.get("get-any-version", MAPS + "/a?resourceVersion=0")
LISTS.get("get-from-the-far-future", MAPS + "/a?resourceVersion=999999999", 504)
LISTS.get("get-unreadable-version", MAPS + "/a?resourceVersion=abc", 500)
LISTS.get("all", MAPS, keep=VERSION)
LISTS.get("any-version", MAPS + "?resourceVersion=0")
LISTS.get("page-1", MAPS + "?limit=3", keep={"next": "metadata.continue"})
LISTS.get("page-2", MAPS + "?limit=3&continue=${next}", keep={"last": "metadata.continue"})
LISTS.get("page-3", MAPS + "?limit=3&continue=${last}")
LISTS.delete("delete-between-pages", MAPS + "/e")
LISTS.get("page-2-as-it-was", MAPS + "?limit=3&continue=${next}")
LISTS.get("page-of-all-is-whole", MAPS + "?limit=100")
LISTS.get("selected-page", MAPS + "?limit=2&labelSelector=tier%3Dback", keep={"next": "metadata.continue"})
LISTS.get("selected-page-2", MAPS + "?limit=2&labelSelector=tier%3Dback&continue=${next}")
LISTS.get("continue-nonsense", MAPS + "?limit=2&continue=nonsense", 400)
LISTS.get("continue-with-version", MAPS + "?limit=2&continue=${next}&resourceVersion=${rv}", 400)
LISTS.get("limit-unreadable", MAPS + "?limit=many", 400)
LISTS.get("limit-negative", MAPS + "?limit=-1", 200)
LISTS.get("exactly-a-version", MAPS + "?resourceVersion=${rv}&resourceVersionMatch=Exact")
LISTS.get("not-older-than-a-version", MAPS + "?resourceVersion=${rv}&resourceVersionMatch=NotOlderThan")
LISTS.get("match-without-version", MAPS + "?resourceVersionMatch=Exact", 422)
LISTS.get("exactly-zero", MAPS + "?resourceVersion=0&resourceVersionMatch=Exact", 422)
LISTS.get("match-unknown", MAPS + "?resourceVersion=1&resourceVersionMatch=Roughly", 422)
LISTS.get("match-with-continue", MAPS + "?limit=2&continue=${next}&resourceVersionMatch=Exact", 422)
LISTS.get("version-in-the-far-future", MAPS + "?resourceVersion=999999999", 504)
LISTS.get("version-unreadable", MAPS + "?resourceVersion=xyz", 400)
LISTS.get("a-page-of-a-version", MAPS + "?limit=2&resourceVersion=${rv}&resourceVersionMatch=Exact")

_selectors = {
    "equals": "tier=front",
    "double-equals": "tier==front",
    "not-equals": "tier!=front",
    "in": "n in (a,c)",
    "not-in": "n notin (a,c)",
    "exists": "tier",
    "does-not-exist": "!tier",
    "several": "tier=front,n!=a",
    "greater-than": "n>1",
    "empty-value": "tier=",
    "nothing-matches": "tier=none",
}
for name, selector in _selectors.items():
    LISTS.get(f"label-{name}", MAPS + "?labelSelector=" + selector.replace(" ", "%20").replace("=", "%3D"))
_bad_selectors = {
    "bad-operator": "a=b=c",
    "unclosed": "a in (b",
    "bad-key": "a b c",
    "bad-value": "a=b%21",
    "empty-key": "=b",
    "comma-alone": ",",
    "greater-than-text": "n>x",
}
for name, selector in _bad_selectors.items():
    LISTS.get(f"label-{name}", MAPS + "?labelSelector=" + selector.replace(" ", "%20"), 400)
LISTS.get("field-name", MAPS + "?fieldSelector=metadata.name%3Da")
LISTS.get("field-not-name", MAPS + "?fieldSelector=metadata.name!%3Da")
LISTS.get("field-namespace", MAPS + "?fieldSelector=metadata.namespace%3D${ns}")
LISTS.get("field-unknown", MAPS + "?fieldSelector=data.key%3Dvalue", 400)
LISTS.get("field-unreadable", MAPS + "?fieldSelector=nonsense", 400)
LISTS.get("across-namespaces", "/api/v1/configmaps?fieldSelector=metadata.namespace%3D${ns}&limit=500")
LISTS.get("missing", MAPS + "/zzz", 404)
LISTS.get("list-in-a-namespace-that-is-not-there", "/api/v1/namespaces/nowhere/configmaps")
LISTS.post("pod-on-a-node", PODS, pod("on-node", nodeName="node-x", restartPolicy="Never"))
LISTS.post("pod-waiting", PODS, pod("waiting"))
LISTS.patch(
    "pod-runs", "merge", PODS + "/on-node/status", {"status": {"phase": "Running", "podIP": "172.16.0.9"}}
)
for field, value in {
    "spec.nodeName": "node-x",
    "spec.restartPolicy": "Never",
    "spec.schedulerName": "default-scheduler",
    "spec.serviceAccountName": "",
    "spec.hostNetwork": "false",
    "status.phase": "Running",
    "status.podIP": "172.16.0.9",
    "status.nominatedNodeName": "",
}.items():
    LISTS.get(f"pods-by-{field}", PODS + f"?fieldSelector={field}%3D{value}")
LISTS.get("pods-by-two-fields", PODS + "?fieldSelector=status.phase!%3DRunning,spec.nodeName%3D")
LISTS.get("pods-by-a-field-that-is-not-selectable", PODS + "?fieldSelector=spec.hostname%3Dx", 400)
LISTS.get("pretty", MAPS + "/a?pretty=true")
LISTS.add("head", "HEAD", MAPS + "/a", 405)

WATCHES = Area("watches")
WATCHES.get("start", PODS, keep=VERSION)
WATCHES.post("create", PODS, pod("p", nodeName="node-x", metadata={"labels": {"app": "a"}}))
WATCHES.post("create-other", PODS, pod("q", metadata={"labels": {"app": "b"}}))
WATCHES.patch("runs", "merge", PODS + "/p/status", {"status": {"phase": "Running"}})
WATCHES.patch("relabelled", "merge", PODS + "/p", {"metadata": {"labels": {"app": "b"}}})
WATCHES.patch("no-change", "merge", PODS + "/p", {"metadata": {"labels": {"app": "b"}}})
WATCHES.delete("marked", PODS + "/p")
WATCHES.delete("removed", PODS + "/p", delete_options(gracePeriodSeconds=0))
WATCHES.delete("unscheduled-removed", PODS + "/q")
WATCHES.watch("every-event-in-order", PODS + "?resourceVersion=${rv}")
WATCHES.watch("a-label-that-comes-and-goes", PODS + "?resourceVersion=${rv}&labelSelector=app%3Da")
WATCHES.watch("a-label-that-arrives", PODS + "?resourceVersion=${rv}&labelSelector=app%3Db")
WATCHES.watch("one-name", PODS + "?resourceVersion=${rv}&fieldSelector=metadata.name%3Dq")
WATCHES.watch("one-phase", PODS + "?resourceVersion=${rv}&fieldSelector=status.phase%3DRunning")
WATCHES.watch("one-node", PODS + "?resourceVersion=${rv}&fieldSelector=spec.nodeName%3Dnode-x")
WATCHES.post("create-r", PODS, pod("r"))
WATCHES.post("create-s", PODS, pod("s"))
WATCHES.watch("without-a-version-starts-with-what-is", PODS)
WATCHES.watch("any-version-starts-with-what-is", PODS + "?resourceVersion=0")
WATCHES.watch(
    "initial-events-end-with-a-bookmark",
    PODS + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
)
WATCHES.watch(
    "initial-events-selected",
    PODS
    + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    + "&fieldSelector=metadata.name%3Ds",
)
WATCHES.watch("initial-events-without-match", PODS + "?sendInitialEvents=true&allowWatchBookmarks=true", 422)
WATCHES.watch(
    "initial-events-refused-without-match", PODS + "?sendInitialEvents=false&allowWatchBookmarks=true", 422
)
WATCHES.watch(
    "no-initial-events",
    PODS + "?sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
)
WATCHES.watch(
    "match-without-initial-events", PODS + "?resourceVersionMatch=NotOlderThan&resourceVersion=1", 422
)
WATCHES.get("initial-events-without-watch", PODS + "?sendInitialEvents=true", 422)
# Not in the table: a watch from revision 1. Whether a server still knows it depends on how long it has been running.
WATCHES.watch("version-unreadable", PODS + "?resourceVersion=abc", 500)
WATCHES.watch("bad-selector", PODS + "?labelSelector=a%20b%20c", 400)
WATCHES.watch("bad-field", PODS + "?fieldSelector=a.b%3Dc", 400)
WATCHES.get("bad-timeout", PODS + "?watch=1&timeoutSeconds=soon", 400)
WATCHES.watch("one-object-by-its-path", PODS + "/r", 200)
WATCHES.get("old-watch-path", "/api/v1/watch/namespaces/${ns}/pods/s?timeoutSeconds=1", 200)
WATCHES.watch("tables", PODS, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
WATCHES.watch(
    "metadata", PODS, headers={"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
)
WATCHES.watch("stream-type", PODS, headers={"Accept": "application/json;stream=watch"})
