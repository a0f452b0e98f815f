"""Metrics of the API server, in Prometheus' text format.

Counting costs a few additions per request; the text is produced when it is scraped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from time import perf_counter

from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.storage import DISK_FULL, Store

_DURATION = "apiserver_request_duration_seconds"
_MOST_LABELS = 10_000
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ApiServerMetrics:
    """Requests by verb, resource and code, and the time until their response began."""

    def __init__(self, catalog: ResourceCatalog) -> None:
        self._catalog = catalog
        self.in_flight = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        # Metrics of other parts of the server.
        self.others: list[Callable[[], Iterable[str]]] = []

    def begin(self) -> float:
        self.in_flight += 1
        return perf_counter()

    def end(self, started: float, verb: str, resource: str, code: int) -> None:
        elapsed = perf_counter() - started
        self.in_flight -= 1
        # Unknown paths must not become labels: their number is unbounded. So is that of definitions over time.
        is_known = resource in self._catalog.plurals and len(self._requests) < _MOST_LABELS
        self._requests[verb, resource if is_known else "", code] += 1
        counts = self._durations.get(verb)
        if counts is None:
            counts = self._durations[verb] = [0] * (len(_BUCKETS) + 1)
        slot = 0
        while slot < len(_BUCKETS) and elapsed > _BUCKETS[slot]:
            slot += 1
        counts[slot] += 1
        self._seconds[verb] = self._seconds.get(verb, 0.0) + elapsed

    def render(self, store: Store) -> bytes:
        lines = _described("apiserver_request_total", "counter", "Requests by verb, resource and HTTP code.")
        for (verb, resource, code), count in sorted(self._requests.items()):
            labels = f'verb="{verb.upper()}",resource="{resource}",code="{code}"'
            lines.append(f"apiserver_request_total{{{labels}}} {count}")
        lines += _described(_DURATION, "histogram", "Time until the answer to a request began.")
        for verb in sorted(self._durations):
            lines += self._histogram(verb)
        lines += _gauge("apiserver_current_inflight_requests", "Requests being worked on.", self.in_flight)
        lines += _described("apiserver_storage_objects", "gauge", "Objects stored, by resource.")
        stored = sorted({resource.storage_key for resource in self._catalog.stored})
        lines += [f'apiserver_storage_objects{{resource="{key}"}} {store.count(key)}' for key in stored]
        lines += _gauge("podlife_storage_revision", "The last committed revision.", store.revision)
        text = "Damaged rows found when the store was opened, which are not served."
        lines += _gauge("podlife_storage_set_aside", text, len(store.set_aside))
        text = "Whether there is no room on the disk for new objects."
        lines += _gauge("podlife_storage_full", text, int(store.trouble == DISK_FULL))
        text = "Whether files were removed or changed under the server: it refuses writes."
        lines += _gauge("podlife_storage_lost", text, int(store.trouble not in ("", DISK_FULL)))
        lines += [line for other in self.others for line in other()]
        lines.append("")
        return "\n".join(lines).encode()

    def _histogram(self, verb: str) -> list[str]:
        name, label = _DURATION, f'verb="{verb.upper()}"'
        total = 0
        lines = []
        for bound, count in zip((*_BUCKETS, "+Inf"), self._durations[verb], strict=True):
            total += count
            lines.append(f'{name}_bucket{{{label},le="{bound}"}} {total}')
        lines.append(f"{name}_sum{{{label}}} {self._seconds[verb]:.6f}")
        lines.append(f"{name}_count{{{label}}} {total}")
        return lines


def _described(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _gauge(name: str, text: str, value: int) -> list[str]:
    return [*_described(name, "gauge", text), f"{name} {value}"]
