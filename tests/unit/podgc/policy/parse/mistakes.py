"""Mistakes that a policy file can have, each with what is told of it."""

# ruff: noqa: E501 - a mistake and what is told of it stand side by side

from __future__ import annotations

__all__ = ["LIMIT", "MISTAKES", "rule"]


def rule(more: str) -> str:
    """A rule in line 3 with something of its own from column 12 on."""
    return f"rules: [{{ {more}, name: a}}]"


LIMIT = "ttlAfterFinished: 1h"

# What follows apiVersion and kind, and how what is told of it begins, after the name of the file.
MISTAKES = [
    # What is no YAML, or more than YAML needs to be.
    ("a: [", "3:5: this is no YAML: the file ends before a bracket or a quote is closed: close it"),
    ('a: "b', "3:6: this is no YAML: the file ends before a bracket or a quote is closed: close it"),
    ("rules:\n  - name: a\n   keep: b", "5:4: this is no YAML: what begins here is indented otherwise than its"),
    ("a: b: c", "3:5: this is no YAML: no key may stand here: begin a line with it, or put the text in quotes"),
    ("rules:\n\t- a", "4:1: a tab stands here: YAML is indented with spaces"),
    ("---\na: b", "3:1: a second document begins here: write one policy into one file"),
    ("rules: @x", "3:8: this is no YAML: found character '@' that cannot start any token: put the text in quotes"),
    ("rules: \0", "3:8: the character U+0000 is none of a text: take it out"),
    ("rules: " + "[" * 30, "3:27: this is nested more than 20 levels deep: no policy is"),
    ("protect: &p {}\nguards: *p", "4:9: write out what *p stands for: aliases are not taken here"),
    (
        "rules:\n- {name: a, select: &s {node: [n]}, keep: {count: 1}}\n- {name: b, select: *s, keep: {count: 1}}",
        "5:21: write out what *s stands for: aliases are not taken here",
    ),
    ("protect: &p {}\nguards: {<<: *p}", "4:10: << is not taken here: write out what it stands for"),
    ("rules: !!seq []", "3:8: the tag 'tag:yaml.org,2002:seq' is not taken here: leave it out"),
    # Keys.
    ("rule: []", "3:1: rule is not known: write rules"),
    ("hello: []", "3:1: hello is not known: there is apiVersion, kind, upstream, protect, rules, guards"),
    ("rules: []\nrules: []", "4:1: rules is there twice, first in line 3: leave one of them out"),
    ("guards: {perminute: 3}", "3:10: guards.perminute is not known: write perMinute"),
    (rule("ttl: 1h"), "3:11: rules[0].ttl is not known: write ttlAfterFinished"),
    (rule(f"selector: {{}}, {LIMIT}"), "3:11: rules[0].selector is not known: write select"),
    ("? [a]\n: b", "3:3: a key of the policy must be a word, one of apiVersion, "),
    # Kinds of values.
    ("rules: {}", "3:8: rules is a mapping and must be a list"),
    ("rules:", "3:7: rules is empty: write a list, or leave it out"),
    ("guards: []", "3:9: guards is a list and must be a mapping with perMinute, "),
    ("guards: {observeOnly: on}", "3:23: guards.observeOnly 'on' is not the same to every reader of YAML: write true"),
    ("guards: {observeOnly: no}", "3:23: guards.observeOnly 'no' is not the same to every reader of YAML: write false"),
    ('guards: {observeOnly: "true"}', "3:23: guards.observeOnly is a text here: write true without quotes"),
    ("guards: {observeOnly: perhaps}", "3:23: guards.observeOnly 'perhaps' must be true or false"),
    ("protect: {namespaces: [on]}", '3:24: protect.namespaces[0] must be a text, and YAML reads on as true or false: write "on"'),
    ("protect: {namespaces: [42]}", '3:24: protect.namespaces[0] must be a text, and YAML reads 42 as a number: write "42"'),
    ("protect: {namespaces: [2030-01-01]}", '3:24: protect.namespaces[0] must be a text, and YAML reads 2030-01-01 as a date: '),
    ("protect: {namespaces: [~]}", "3:24: protect.namespaces[0] is empty: write a value, or leave it out"),
    ("protect: {namespaces: prod}", "3:23: protect.namespaces is a single value and must be a list: write [prod]"),
    # Numbers.
    ("guards: {perPass: 1e3}", "3:19: guards.perPass '1e3' must be a whole number: write it in plain digits, as 1000"),
    ("guards: {perPass: 010}", "3:19: guards.perPass '010' must be a whole number: write it in plain digits, as 10"),
    ("guards: {perPass: 0x1f}", "3:19: guards.perPass '0x1f' must be a whole number: write it in plain digits, as 31"),
    ("guards: {perPass: 1_000}", "3:19: guards.perPass '1_000' must be a whole number: write it in plain digits, as 1000"),
    ("guards: {perPass: 2.5}", "3:19: guards.perPass '2.5' must be a whole number: write it in plain digits, as 5"),
    ('guards: {perPass: "5"}', "3:19: guards.perPass is a text here: write 5 without quotes"),
    ("guards: {perPass: 0}", "3:19: guards.perPass 0 is less than 1: 0 would let nothing go; write observeOnly: true "),
    ("guards: {perMinute: -3}", "3:21: guards.perMinute -3 is less than 1: "),
    ("upstream: {terminated: {threshold: -1}}", "3:36: upstream.terminated.threshold -1 is less than 0: write 0, or enabled: false, "),
    ("upstream: {terminated: {}}", "3:24: upstream.terminated says nothing: write enabled, threshold, or leave it out"),
    (rule("keep: {count: -1}"), "3:25: rules[0].keep.count -1 is less than 0: write 0 to keep none"),
    (rule("keep: 5"), "3:17: rules[0].keep is a single value and must be a mapping: write {count: 5}"),
    (rule("keep: {per: owner}"), "3:17: rules[0].keep has no count: write how many stay, as {count: 5, per: owner}"),
    (rule("keep: {count: 5, per: pod}"), "3:33: rules[0].keep.per 'pod' is not known: there is cluster, namespace, owner, node"),
    (rule(f"select: {{exitCode: [99999999999]}}, {LIMIT}"), "3:31: rules[0].select.exitCode[0] 99999999999 is no exit code: write one from 0 to 255"),
    # Lengths of time.
    (rule("ttlAfterFinished: 10"), "3:29: rules[0].ttlAfterFinished '10' is no length of time: it has no unit; write 10s, 10m, 10h or 10d"),
    (rule("ttlAfterFinished: 1:30"), "3:29: rules[0].ttlAfterFinished '1:30' is no length of time: write 1h30m"),
    (rule("ttlAfterFinished: 1h 30m"), "3:29: rules[0].ttlAfterFinished '1h 30m' is no length of time: write 1h30m, without spaces"),
    (rule("ttlAfterFinished: -5m"), "3:29: rules[0].ttlAfterFinished '-5m' is no length of time: it lies in the past; "),
    (rule("ttlAfterFinished: 2 weeks"), "3:29: rules[0].ttlAfterFinished '2 weeks' is no length of time: write 14d"),
    (rule("ttlAfterFinished: 3 hours"), "3:29: rules[0].ttlAfterFinished '3 hours' is no length of time: write 3h"),
    (rule("ttlAfterFinished: soon"), "3:29: rules[0].ttlAfterFinished 'soon' is no length of time: write 40s, 1h30m or 7d"),
    (rule("ttlAfterFinished: 999999999d"), "3:29: rules[0].ttlAfterFinished '999999999d' is longer than anybody waits: write at most 106751d"),
    (rule("ttlAfterFinished: [1h]"), "3:29: rules[0].ttlAfterFinished is a list and must be a length of time: write 40s, 1h30m or 7d"),
    (rule("ttlAfterFinished: "), "3:28: rules[0].ttlAfterFinished is empty: write 40s, 1h30m or 7d, or leave it out"),
    (rule(f"waitForOwner: 0s, {LIMIT}"), "3:25: rules[0].waitForOwner of no time waits for nobody: "),
    # Shares.
    ("guards: {shareOfCluster: 10}", "3:26: guards.shareOfCluster '10' is no percentage: write 10%"),
    ("guards: {shareOfCluster: 0.25}", "3:26: guards.shareOfCluster '0.25' is no percentage: write 25%"),
    ("guards: {shareOfCluster: 150%}", "3:26: guards.shareOfCluster '150%' is more than all: write at most 100%"),
    ("guards: {shareOfCluster: 0%}", "3:26: guards.shareOfCluster '0%' would let nothing go: to change nothing write observeOnly: true instead"),
    ("guards: {shareOfCluster: half}", "3:26: guards.shareOfCluster 'half' is no percentage: write it as 50%"),
    # Windows.
    ("guards: {windows: []}", "3:19: guards.windows is an empty list: it could mean always or never; leave it out for always"),
    ("guards: {windows: [{}]}", "3:20: guards.windows[0] says nothing: write days, from and to, "),
    ("guards: {windows: [{from: 22:00}]}", '3:27: guards.windows[0].from: YAML reads 22:00 as a number: put it in quotes, "22:00"'),
    ('guards: {windows: [{to: "6:00"}]}', "3:25: guards.windows[0].to '6:00' is no time: write \"06:00\""),
    ('guards: {windows: [{from: "24:00"}]}', "3:27: guards.windows[0].from '24:00' is no time: write hours and minutes "),
    ('guards: {windows: [{from: "08:00", to: "08:00"}]}', "3:36: guards.windows[0] begins and ends at the same time: for whole days leave out from and to"),
    ("guards: {windows: [{days: [Wednesday]}]}", "3:28: guards.windows[0].days[0] 'Wednesday' is not known: write Wed"),
    ("guards: {windows: [{days: [weekday]}]}", "3:28: guards.windows[0].days[0] 'weekday' is not known: there is Mon"),
    ("guards: {windows: [{days: [Monday]}]}", "3:28: guards.windows[0].days[0] 'Monday' is not known: write Mon"),
    ("guards: {windows: [{days: []}]}", "3:27: guards.windows[0].days is an empty list: leave it out for every day"),
    ("guards: {windows: [{timezone: Berlin}]}", "3:31: guards.windows[0].timezone 'Berlin' is no time zone: write Europe/Berlin"),
    ("guards: {windows: [{timezone: europe/berlin}]}", "3:31: guards.windows[0].timezone 'europe/berlin' is no time zone: write Europe/Berlin"),
    ("guards: {windows: [{timezone: ../../etc/passwd}]}", "3:31: guards.windows[0].timezone '../../etc/passwd' is no time zone: write it as Europe/Berlin, or UTC"),
    # Selectors.
    (rule(f"select: {{phase: []}}, {LIMIT}"), "3:27: rules[0].select.phase is an empty list: it could mean none or all; "),
    (rule(f"select: {{phase: [Faild]}}, {LIMIT}"), "3:28: rules[0].select.phase[0] 'Faild' is not known: write Failed"),
    (rule(f"select: {{phase: [Evicted]}}, {LIMIT}"), "3:28: rules[0].select.phase[0] 'Evicted' is not known: there is Pending, "),
    (rule(f"select: , {LIMIT}"), "3:18: rules[0].select is empty: write a mapping with namespaces, "),
    (rule(f"select: {{labels: ''}}, {LIMIT}"), "3:28: rules[0].select.labels is empty and would select everything: "),
    (rule(f"select: {{labels: 'a in'}}, {LIMIT}"), "3:28: rules[0].select.labels 'a in' is no selector of labels: found '' expected: '(': write it as"),
    (rule(f"select: {{labels: {{app: web}}}}, {LIMIT}"), '3:28: rules[0].select.labels is a mapping and must be a text as kubectl -l takes it: write "app=web"'),
    (rule(f"select: {{labels: 'a=1,a=2'}}, {LIMIT}"), "3:28: rules[0].select.labels 'a=1,a=2' selects nothing: what it asks of a contradicts itself"),
    (rule(f"select: {{labels: 'a,!a'}}, {LIMIT}"), "3:28: rules[0].select.labels 'a,!a' selects nothing: "),
    (rule(f"select: {{labels: 'a=1,a!=1'}}, {LIMIT}"), "3:28: rules[0].select.labels 'a=1,a!=1' selects nothing: "),
    (rule(f"select: {{namespaces: ['team-.*']}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0] 'team-.*' matches no name: * stands for any letters, and this is no regular expression: write team-*"),
    (rule(f"select: {{namespaces: [Team]}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0] 'Team' matches no name: names have no capitals: write team"),
    (rule(f"select: {{namespaces: ['!prod']}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0] '!prod' matches no name: there is no not; write what is left out under exclude"),
    (rule(f"select: {{namespaces: ['a[bc]']}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0] 'a[bc]' matches no name: * and ? are all the signs there are; "),
    (rule(f"select: {{namespaces: [a_b]}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0] 'a_b' matches no name: '_' cannot stand in it"),
    (rule(f"select: {{namespaces: [a-]}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0] 'a-' matches no name: it must begin and end with a letter or a digit"),
    (rule(f"select: {{namespaces: ['']}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0] '' matches no name: it is empty"),
    (rule(f"select: {{namespaces: [{'a' * 64}]}}, {LIMIT}"), "3:33: rules[0].select.namespaces[0] 'aaaa"),
    (rule(f"select: {{namespaces: {{}}}}, {LIMIT}"), "3:32: rules[0].select.namespaces says nothing: write names or labels, "),
    (rule(f"select: {{ownerKind: [job]}}, {LIMIT}"), "3:32: rules[0].select.ownerKind[0] 'job' matches no name: write Job"),
    (rule(f"select: {{ownerKind: [Deployment]}}, {LIMIT}"), "3:32: rules[0].select.ownerKind[0] 'Deployment' matches no name: a Deployment owns no pods itself; write ReplicaSet"),
    (rule(f"select: {{ownerKind: [None]}}, {LIMIT}"), "3:32: rules[0].select.ownerKind[0] 'None' matches no name: write none, in small letters, "),
    (rule(f"select: {{ownerKind: [jobs]}}, {LIMIT}"), "3:32: rules[0].select.ownerKind[0] 'jobs' matches no name: a kind begins with a capital: write Job"),
    ("protect: {labels: ['']}", "3:20: protect.labels[0] is empty and would select everything: "),
    ("protect: {annotations: ['a b']}", "3:25: protect.annotations[0] 'a b' is no annotation: write KEY or KEY=VALUE, "),
    (rule(f"exclude: {{}}, {LIMIT}"), "3:20: rules[0].exclude says nothing and would exclude every pod: "),
    # Rules that contradict themselves.
    ("rules: [{ttlAfterFinished: 1h}]", "3:9: rules[0] has no name: write name, "),
    (rule("name: b_c, ttlAfterFinished: 1h").replace(", name: a", ""), "3:17: rules[0].name 'b_c' is no name of a rule: "),
    (rule("select: {}"), "3:9: rule a has no limit: write keep, ttlAfterFinished or maxTerminating; "),
    (rule(f"collectWhen: any, {LIMIT}"), "3:11: rule a has collectWhen, which is about keep and ttlAfterFinished together: "),
    (rule("waitForOwner: 1m, maxTerminating: 1h"), "3:11: rule a has waitForOwner, which is about pods that have ended: "),
    (rule(f"{LIMIT}, select: {{phase: [Running]}}"), "3:11: rule a has ttlAfterFinished, which is about pods that have ended, and selects Running alone: "),
    (rule(f"{LIMIT}, select: {{node: [a]}}, exclude: [{{node: [b]}}, {{node: ['*']}}]"), "3:77: rule a excludes every pod that it selects: "),
]  # fmt: skip
