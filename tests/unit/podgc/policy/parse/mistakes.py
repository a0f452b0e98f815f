"""Errors of policy files, each with its message."""

# ruff: noqa: E501 - a mistake and what is told of it stand side by side

from __future__ import annotations


def rule(more: str) -> str:
    """A rule in line 3 with something of its own from column 12 on."""
    return f"rules: [{{ {more}, name: a}}]"


LIMIT = "ttlAfterFinished: 1h"

# What follows apiVersion and kind, and how what is told of it begins, after the name of the file.
MISTAKES = [
    # What is no YAML, or more than YAML needs to be.
    ("a: [", "3:5: invalid YAML: unexpected end of file: close the bracket or quote"),
    ('a: "b', "3:6: invalid YAML: unexpected end of file: close the bracket or quote"),
    ("rules:\n  - name: a\n   keep: b", "5:4: invalid YAML: inconsistent indentation: indent it like its siblings"),
    ("a: b: c", "3:5: invalid YAML: a key is not allowed here: start a new line, or quote the text"),
    ("rules:\n\t- a", "4:1: invalid YAML: tab character: indent with spaces"),
    ("---\na: b", "3:1: unexpected second document: a file has one policy"),
    ("rules: @x", "3:8: invalid YAML: found character '@' that cannot start any token: quote the text"),
    ("rules: \0", "3:8: invalid character U+0000: remove it"),
    ("rules: " + "[" * 30, "3:27: nesting exceeds the maximum depth of 20"),
    ("protect: &p {}\nguards: *p", "4:9: aliases are not supported: replace *p with its value"),
    (
        "rules:\n- {name: a, select: &s {node: [n]}, keep: {count: 1}}\n- {name: b, select: *s, keep: {count: 1}}",
        "5:21: aliases are not supported: replace *s with its value",
    ),
    ("protect: &p {}\nguards: {<<: *p}", "4:10: merge keys (<<) are not supported: write out the values"),
    ("rules: !!seq []", "3:8: tag 'tag:yaml.org,2002:seq' is not supported: remove it"),
    # Keys.
    ("rule: []", "3:1: unknown field rule: did you mean rules?"),
    ("hello: []", "3:1: unknown field hello: expected one of apiVersion, kind, upstream, protect, rules, guards"),
    ("rules: []\nrules: []", "4:1: duplicate field rules, first in line 3: remove one of them"),
    ("guards: {perminute: 3}", "3:10: unknown field guards.perminute: did you mean perMinute?"),
    (rule("ttl: 1h"), "3:11: unknown field rules[0].ttl: did you mean ttlAfterFinished?"),
    (rule(f"selector: {{}}, {LIMIT}"), "3:11: unknown field rules[0].selector: did you mean select?"),
    ("? [a]\n: b", "3:3: policy: invalid key: expected one of apiVersion, "),
    # Kinds of values.
    ("rules: {}", "3:8: rules: expected a list, got a mapping"),
    ("rules:", "3:7: rules is empty: set a list, or omit it"),
    ("guards: []", "3:9: guards: expected a mapping with perMinute, "),
    ("guards: {observeOnly: on}", "3:23: guards.observeOnly: ambiguous boolean 'on': write true"),
    ("guards: {observeOnly: no}", "3:23: guards.observeOnly: ambiguous boolean 'no': write false"),
    ('guards: {observeOnly: "true"}', "3:23: guards.observeOnly: expected a boolean, got a string: write true without quotes"),
    ("guards: {observeOnly: perhaps}", "3:23: guards.observeOnly: invalid boolean 'perhaps': expected true or false"),
    ("protect: {namespaces: [on]}", '3:24: protect.namespaces[0]: expected a string, but YAML reads on as a boolean: write "on"'),
    ("protect: {namespaces: [42]}", '3:24: protect.namespaces[0]: expected a string, but YAML reads 42 as a number: write "42"'),
    ("protect: {namespaces: [2030-01-01]}", '3:24: protect.namespaces[0]: expected a string, but YAML reads 2030-01-01 as a date: '),
    ("protect: {namespaces: [~]}", "3:24: protect.namespaces[0] is empty: set a value, or omit it"),
    ("protect: {namespaces: prod}", "3:23: protect.namespaces: expected a list, got a single value: write [prod]"),
    # Numbers.
    ("guards: {perPass: 1e3}", "3:19: guards.perPass: invalid integer '1e3': use decimal digits, for example 1000"),
    ("guards: {perPass: 010}", "3:19: guards.perPass: invalid integer '010': use decimal digits, for example 10"),
    ("guards: {perPass: 0x1f}", "3:19: guards.perPass: invalid integer '0x1f': use decimal digits, for example 31"),
    ("guards: {perPass: 1_000}", "3:19: guards.perPass: invalid integer '1_000': use decimal digits, for example 1000"),
    ("guards: {perPass: 2.5}", "3:19: guards.perPass: invalid integer '2.5': use decimal digits, for example 5"),
    ('guards: {perPass: "5"}', "3:19: guards.perPass: expected an integer, got a string: write 5 without quotes"),
    ("guards: {perPass: 0}", "3:19: guards.perPass: must be at least 1, got 0: use observeOnly: true "),
    ("guards: {perMinute: -3}", "3:21: guards.perMinute: must be at least 1, got -3: "),
    ("upstream: {terminated: {threshold: -1}}", "3:36: upstream.terminated.threshold: must be at least 0, got -1: use 0 or enabled: false "),
    ("upstream: {terminated: {}}", "3:24: upstream.terminated is empty: set enabled, threshold, or omit it"),
    (rule("keep: {count: -1}"), "3:25: rules[0].keep.count: must be at least 0, got -1: use 0 to keep none"),
    (rule("keep: 5"), "3:17: rules[0].keep: expected a mapping, got a single value: write {count: 5}"),
    (rule("keep: {per: owner}"), "3:17: rules[0].keep: missing required field count: for example {count: 5, per: owner}"),
    (rule("keep: {count: 5, per: pod}"), "3:33: rules[0].keep.per: unknown value 'pod': expected one of cluster, namespace, owner, node"),
    (rule(f"select: {{exitCode: [99999999999]}}, {LIMIT}"), "3:31: rules[0].select.exitCode[0]: invalid exit code 99999999999: expected 0 to 255"),
    # Lengths of time.
    (rule("ttlAfterFinished: 10"), "3:29: rules[0].ttlAfterFinished: invalid duration '10': missing unit, write 10s, 10m, 10h or 10d"),
    (rule("ttlAfterFinished: 1:30"), "3:29: rules[0].ttlAfterFinished: invalid duration '1:30': write 1h30m"),
    (rule("ttlAfterFinished: 1h 30m"), "3:29: rules[0].ttlAfterFinished: invalid duration '1h 30m': write 1h30m, without spaces"),
    (rule("ttlAfterFinished: -5m"), "3:29: rules[0].ttlAfterFinished: invalid duration '-5m': must not be negative"),
    (rule("ttlAfterFinished: 2 weeks"), "3:29: rules[0].ttlAfterFinished: invalid duration '2 weeks': write 14d"),
    (rule("ttlAfterFinished: 3 hours"), "3:29: rules[0].ttlAfterFinished: invalid duration '3 hours': write 3h"),
    (rule("ttlAfterFinished: soon"), "3:29: rules[0].ttlAfterFinished: invalid duration 'soon': write 40s, 1h30m or 7d"),
    (rule("ttlAfterFinished: 999999999d"), "3:29: rules[0].ttlAfterFinished: duration '999999999d' exceeds the maximum (106751d)"),
    (rule("ttlAfterFinished: [1h]"), "3:29: rules[0].ttlAfterFinished: expected a duration, got a list: write 40s, 1h30m or 7d"),
    (rule("ttlAfterFinished: "), "3:28: rules[0].ttlAfterFinished is empty: set 40s, 1h30m or 7d, or omit it"),
    (rule(f"waitForOwner: 0s, {LIMIT}"), "3:25: rules[0].waitForOwner: must be greater than 0: "),
    # Shares.
    ("guards: {shareOfCluster: 10}", "3:26: guards.shareOfCluster: invalid percentage '10': write 10%"),
    ("guards: {shareOfCluster: 0.25}", "3:26: guards.shareOfCluster: invalid percentage '0.25': write 25%"),
    ("guards: {shareOfCluster: 150%}", "3:26: guards.shareOfCluster: percentage '150%' exceeds the maximum (100%)"),
    ("guards: {shareOfCluster: 0%}", "3:26: guards.shareOfCluster: percentage must be greater than 0, got '0%': use observeOnly: true to delete nothing"),
    ("guards: {shareOfCluster: half}", "3:26: guards.shareOfCluster: invalid percentage 'half': for example 50%"),
    # Windows.
    ("guards: {windows: []}", "3:19: guards.windows: must not be empty: omit it to allow deletions at any time"),
    ("guards: {windows: [{}]}", "3:20: guards.windows[0] is empty: set days, from or to, "),
    ("guards: {windows: [{from: 22:00}]}", '3:27: guards.windows[0].from: expected a string, but YAML reads 22:00 as a number: write "22:00"'),
    ('guards: {windows: [{to: "6:00"}]}', "3:25: guards.windows[0].to: invalid time '6:00': write \"06:00\""),
    ('guards: {windows: [{from: "24:00"}]}', "3:27: guards.windows[0].from: invalid time '24:00': expected "),
    ('guards: {windows: [{from: "08:00", to: "08:00"}]}', "3:36: guards.windows[0]: from and to must differ: omit both for whole days"),
    ("guards: {windows: [{days: [Wednesday]}]}", "3:28: guards.windows[0].days[0]: unknown value 'Wednesday': did you mean Wed?"),
    ("guards: {windows: [{days: [weekday]}]}", "3:28: guards.windows[0].days[0]: unknown value 'weekday': expected one of Mon"),
    ("guards: {windows: [{days: [Monday]}]}", "3:28: guards.windows[0].days[0]: unknown value 'Monday': did you mean Mon?"),
    ("guards: {windows: [{days: []}]}", "3:27: guards.windows[0].days: must not be empty: omit it for every day"),
    ("guards: {windows: [{timezone: Berlin}]}", "3:31: guards.windows[0].timezone: invalid time zone 'Berlin': write Europe/Berlin"),
    ("guards: {windows: [{timezone: europe/berlin}]}", "3:31: guards.windows[0].timezone: invalid time zone 'europe/berlin': write Europe/Berlin"),
    ("guards: {windows: [{timezone: ../../etc/passwd}]}", "3:31: guards.windows[0].timezone: invalid time zone '../../etc/passwd': for example Europe/Berlin or UTC"),
    # Selectors.
    (rule(f"select: {{phase: []}}, {LIMIT}"), "3:27: rules[0].select.phase: must not be empty: omit it to match everything"),
    (rule(f"select: {{phase: [Faild]}}, {LIMIT}"), "3:28: rules[0].select.phase[0]: unknown value 'Faild': did you mean Failed?"),
    (rule(f"select: {{phase: [Evicted]}}, {LIMIT}"), "3:28: rules[0].select.phase[0]: unknown value 'Evicted': expected one of Pending, "),
    (rule(f"select: , {LIMIT}"), "3:18: rules[0].select is empty: set a mapping with namespaces, "),
    (rule(f"select: {{labels: ''}}, {LIMIT}"), "3:28: rules[0].select.labels: must not be empty, it would select everything: "),
    (rule(f"select: {{labels: 'a in'}}, {LIMIT}"), "3:28: rules[0].select.labels: invalid label selector 'a in': found '' expected: '(': for example"),
    (rule(f"select: {{labels: {{app: web}}}}, {LIMIT}"), '3:28: rules[0].select.labels: expected a string as for kubectl -l, got a mapping: write "app=web"'),
    (rule(f"select: {{labels: 'a=1,a=2'}}, {LIMIT}"), "3:28: rules[0].select.labels: label selector 'a=1,a=2' matches nothing: contradicting requirements for a"),
    (rule(f"select: {{labels: 'a,!a'}}, {LIMIT}"), "3:28: rules[0].select.labels: label selector 'a,!a' matches nothing: "),
    (rule(f"select: {{labels: 'a=1,a!=1'}}, {LIMIT}"), "3:28: rules[0].select.labels: label selector 'a=1,a!=1' matches nothing: "),
    (rule(f"select: {{namespaces: ['team-.*']}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0]: invalid name or pattern 'team-.*': regular expressions are not supported: write team-*"),
    (rule(f"select: {{namespaces: [Team]}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0]: invalid name or pattern 'Team': must be lower case: write team"),
    (rule(f"select: {{namespaces: ['!prod']}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0]: invalid name or pattern '!prod': negation is not supported: use exclude"),
    (rule(f"select: {{namespaces: ['a[bc]']}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0]: invalid name or pattern 'a[bc]': only the wildcards * and ? are supported: "),
    (rule(f"select: {{namespaces: [a_b]}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0]: invalid name or pattern 'a_b': invalid character '_'"),
    (rule(f"select: {{namespaces: [a-]}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0]: invalid name or pattern 'a-': must start and end with an alphanumeric character"),
    (rule(f"select: {{namespaces: ['']}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0]: invalid name or pattern '': must not be empty"),
    (rule(f"select: {{namespaces: [{'a' * 64}]}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0]: invalid name or pattern 'aaaa"),
    (rule(f"select: {{namespaces: {{}}}}, {LIMIT}"), "3:32: rules[0].select.namespaces is empty: set names or labels, "),
    (rule(f"select: {{ownerKind: [job]}}, {LIMIT}"), "3:32: rules[0].select.ownerKind[0]: invalid name or pattern 'job': write Job"),
    (rule(f"select: {{ownerKind: [Deployment]}}, {LIMIT}"), "3:32: rules[0].select.ownerKind[0]: invalid name or pattern 'Deployment': a Deployment does not own pods directly: write ReplicaSet"),
    (rule(f"select: {{ownerKind: [None]}}, {LIMIT}"), "3:32: rules[0].select.ownerKind[0]: invalid name or pattern 'None': write none in lower case "),
    (rule(f"select: {{ownerKind: [jobs]}}, {LIMIT}"), "3:32: rules[0].select.ownerKind[0]: invalid name or pattern 'jobs': kinds start with a capital letter: write Job"),
    ("protect: {labels: ['']}", "3:20: protect.labels[0]: must not be empty, it would select everything: "),
    ("protect: {annotations: ['a b']}", "3:25: protect.annotations[0]: invalid annotation 'a b': expected KEY or KEY=VALUE, "),
    (rule(f"exclude: {{}}, {LIMIT}"), "3:20: rules[0].exclude is empty and would exclude every pod: "),
    # Rules that contradict themselves.
    ("rules: [{ttlAfterFinished: 1h}]", "3:9: rules[0]: missing required field name"),
    (rule("name: b_c, ttlAfterFinished: 1h").replace(", name: a", ""), "3:17: rules[0].name: invalid name 'b_c': "),
    (rule("select: {}"), "3:9: rule a has no limit: set keep, ttlAfterFinished or maxTerminating; "),
    (rule(f"collectWhen: any, {LIMIT}"), "3:11: rule a: collectWhen requires both keep and ttlAfterFinished"),
    (rule("waitForOwner: 1m, maxTerminating: 1h"), "3:11: rule a: waitForOwner requires keep or ttlAfterFinished"),
    (rule(f"{LIMIT}, select: {{phase: [Running]}}"), "3:11: rule a: ttlAfterFinished applies to ended pods, but the rule selects only Running: "),
    (rule(f"{LIMIT}, select: {{node: [a]}}, exclude: [{{node: [b]}}, {{node: ['*']}}]"), "3:77: rule a excludes every pod that it selects: "),
]  # fmt: skip
