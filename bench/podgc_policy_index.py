"""`python -m bench.podgc_policy_index plain|policy COUNT`: the collector, alone, with a policy of a hundred rules or
without one; prints JSON.

In a process of its own, so that its memory is all there is to measure. A third of the pods
have ended, and none of them is due. An event is a pod's change from the wire to the decision: decoded, put into the
index, and looked for victims.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter, process_time

import msgspec
import uvloop

from bench.podgc_index import Made, handler, nodes
from bench.processes import resident_bytes
from podlife.aio import cancel_and_wait
from podlife.api.selectors import parse_label_selector
from podlife.client import Client, InProcessTransport
from podlife.clock import ManualClock
from podlife.podgc import Collector, Settings, planner
from podlife.podgc.effective_settings import pod_view
from podlife.podgc.policy.model import (
    Keep,
    Per,
    Policy,
    Protection,
    Rule,
    Selector,
)

_NAMESPACES = 300
_OWNERS = 6_000
_EVENTS = 2_000
_NOW = datetime(2030, 2, 1, tzinfo=UTC)


def _namespace(number: int) -> str:
    labels = (
        f'{{"env":"{"prod" if number % 10 == 0 else "dev"}","kubernetes.io/metadata.name":"team-{number}"}}'
    )
    return (
        f'{{"metadata":{{"name":"team-{number}","uid":"ns-{number}","resourceVersion":"{number + 1}",'
        f'"labels":{labels}}}}}'
    )


def _time(second: int) -> str:
    day, second = divmod(second, 86_400)
    return f"2030-01-{day % 28 + 1:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def _pod(number: int, phase: str = "") -> str:
    """As clusters have them: a third ended, of Jobs mostly, some of them evicted or killed."""
    owner = number * 31 % _OWNERS
    phase = phase or ("Running", "Running", "Succeeded", "Running", "Running", "Failed")[number % 6]
    kind = "Job" if owner % 2 else "ReplicaSet"
    reason = '"reason":"Evicted",' if phase == "Failed" and number % 12 == 5 else ""
    state = '{"running":{}}'
    if phase in ("Succeeded", "Failed"):
        code = 0 if phase == "Succeeded" else (1, 137, 143)[number % 3]
        state = f'{{"terminated":{{"exitCode":{code},"finishedAt":"{_time(number * 17)}"}}}}'
    labels = f'{{"app":"service-{owner % 200}","tier":"t{owner % 5}","pod-template-hash":"{owner:08x}"}}'
    conditions = ",".join(
        f'{{"type":"{each}","status":"True","lastTransitionTime":"{_time(number * 17)}"}}'
        for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    )
    return (
        '{"metadata":{'
        f'"name":"service-{owner}-7d9c5b8f6d-{number:07x}","namespace":"team-{owner % _NAMESPACES}",'
        f'"uid":"{number:08x}-0000-4000-8000-{number * 7919:012x}","resourceVersion":"{number + 1000}",'
        f'"generation":1,"creationTimestamp":"{_time(number * 13)}","labels":{labels},'
        '"annotations":{"example.com/checksum":"0123456789abcdef","example.com/injected":"true"},'
        f'"ownerReferences":[{{"apiVersion":"v1","kind":"{kind}","name":"service-{owner}",'
        f'"uid":"{owner:08x}-1111-4000-8000-000000000000","controller":true}}]}},'
        f'"spec":{{"nodeName":"node-{number % 5000}","containers":[{{"name":"c","image":"i"}}]}},'
        f'"status":{{"phase":"{phase}",{reason}"conditions":[{conditions}],'
        f'"containerStatuses":[{{"name":"c","state":{state},"lastState":{{}}}}],"podIP":"10.0.0.1"}}}}'
    )


def _policy() -> Policy:
    """A hundred rules of every kind, that keep what they have for longer than it is old."""
    month = 90 * 86_400.0
    rules = [Rule("evicted", Selector(phases=("Failed",), reasons=("Evicted", "OutOf*")), ttl_seconds=month)]
    for number in range(96):
        selector = (
            Selector(namespaces=(f"team-{number}*",), owner_kinds=("Job",)),
            Selector(labels=parse_label_selector(f"app in (service-{number},service-{number + 96})")),
            Selector(namespace_labels=parse_label_selector("env=prod"), nodes=(f"node-{number}*",)),
            Selector(labels=parse_label_selector(f"tier=t{number % 5}"), exit_codes=frozenset((1, number))),
        )[number % 4]
        exclude = (Selector(labels=parse_label_selector("debug=true")),)
        keep = Keep(3, (Per.OWNER, Per.NAMESPACE, Per.NODE)[number % 3])
        rules.append(Rule(f"rule-{number}", selector, exclude, keep=keep, ttl_seconds=month))
    rules.append(Rule("jobs", Selector(owner_kinds=("Job",)), keep=Keep(3, Per.OWNER), ttl_seconds=month))
    rules.append(Rule("stuck", Selector(namespaces=("ci",)), max_terminating_seconds=900))
    rules.append(Rule("rest", ttl_seconds=month))
    protection = Protection(
        ("kube-system", "prod-*"),
        (parse_label_selector("podlife.dev/keep=true"),),
        (("example.com/hold", None),),
    )
    return Policy(tuple(rules), protection)


async def _measure(settings: Settings, count: int) -> dict[str, float]:
    served = handler(
        pods=Made("Pod", count, _pod), nodes=nodes(), namespaces=Made("Namespace", _NAMESPACES, _namespace)
    )
    collector = Collector(Client(InProcessTransport(served)), settings, clock=ManualClock(_NOW))
    gc.collect()
    before, began = resident_bytes(os.getpid()), perf_counter()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(collector.run())
        while collector.metrics.pass_seconds.total == 0:
            await asyncio.sleep(0.05)
        synced = perf_counter() - began
        assert len(collector.index) == count
        assert not list(planner.victims(collector.index, settings))
        gc.collect()
        used = resident_bytes(os.getpid()) - before
        each = _measure_events(collector, settings, count)
        await cancel_and_wait(task)
    return {"bytes_per_pod": used / count, "event_us": each * 1e6, "sync_seconds": synced}


def _measure_events(collector: Collector, settings: Settings, count: int) -> float:
    """Running pods end and run again, twice: the mean of what an event takes of the processor's time once facts that
    pods share have been seen."""
    decoder, index = msgspec.json.Decoder(pod_view(settings)), collector.index
    step = max(1, count // _EVENTS)
    numbers = [number for number in range(0, count, step) if number % 6 in (0, 2)][: _EVENTS // 2]
    changes = [(number, _pod(number).encode(), _pod(number, "Failed").encode()) for number in numbers]
    known = {number: decoder.decode(raw) for number, raw, _ in changes}
    for _ in range(2):
        began = process_time()
        for number, running, failed in changes:
            for raw in (failed, running):
                new = decoder.decode(raw)
                index.update_pod(known[number], new, 0.0)
                known[number] = new
                assert next(iter(planner.victims(index, settings)), None) is None
        taken = process_time() - began
    return taken / (2 * len(changes))


def main() -> None:
    # That it is not synced for a while is no news here.
    logging.disable(logging.WARNING)
    kind, count = sys.argv[1:]
    settings = Settings(threshold=10_000_000, period_seconds=3600)
    if kind == "policy":
        settings = replace(settings, policy=_policy())
    print(json.dumps(uvloop.run(_measure(settings, int(count)))))


if __name__ == "__main__":
    main()
