"""What kubectl prints, with what must differ between two servers taken out.

UIDs, times, ages, revisions and handed-out addresses become symbols; columns keep their words and lose their
width, since an age of one more digit moves every column after it.
"""

from __future__ import annotations

import re

_RULES = [
    # kubectl's own log of a watch that its deadline cuts off: it is written or not, as the race goes.
    (re.compile(r"^[IWE]\d{4} .* reflector\.go:.*\n", re.MULTILINE), ""),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    # Helm's: `Mon Nov 16 20:15:01 2026`, `2026-11-16 20:15:01.5 +0000 UTC`.
    (re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4} UTC"), "<time>"),
    (re.compile(r"((?:resourceVersion[\"']?|Resource Version): +)\"?\d+\"?"), r"\1<version>"),
    # `<invalid>` is the age of something that came less than a clock step ago.
    (re.compile(r"(?<![\w.:-])(\d+[smhdy]){1,2}(?![\w.:-])|<invalid>"), "<age>"),
    # 10.0.0.0/24 is the range of the kube-apiserver under test, 10.96.0.0/12 the one of ours.
    (re.compile(r"\b10\.(0\.0|96\.\d+|9[7-9]\.\d+|1[01]\d\.\d+)\.\d+\b"), "<address>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<server>"),
    # The name of an event ends in the nanosecond of its making.
    (re.compile(r"\.[0-9a-f]{16}\b"), ".<moment>"),
    (re.compile(r"-{5,}"), "-----"),
    (re.compile(r"(?<=\S)(\t|[ \t]{2,})(?=\S)"), "  "),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
]


def normalise(text: str) -> str:
    for pattern, symbol in _RULES:
        text = pattern.sub(symbol, text)
    return text
