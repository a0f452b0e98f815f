"""What still differs from kube-apiserver on purpose: the step, the places in its answer, and the reason.

The list is exact. A difference that is not listed fails, and so does a listed one that is gone. `docs/parity.md`
shows the same list; `python -m tests.real.differential --write-parity` writes it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real.differential.compare import Difference

PARITY = Path(__file__).resolve().parents[3] / "docs" / "parity.md"
BEGIN, END = "<!-- differential: begin -->", "<!-- differential: end -->"


@dataclass(frozen=True)
class Known:
    """`at` are the places that differ; everything below them may, everything else may not."""

    reason: str
    at: tuple[str, ...] = ("",)

    def complaint(self, found: Sequence[Difference]) -> str:
        """What is no longer as listed, or nothing."""
        stray = [one.path for one in found if not any(one.path.startswith(place) for place in self.at)]
        if stray:
            return f"differs in more than is listed: {', '.join(stray)}"
        healed = [place for place in self.at if not any(one.path.startswith(place) for one in found)]
        if healed:
            shown = ", ".join(place or "anything" for place in healed)
            return f"no longer differs in {shown}: take it off the list"
        return ""


_PARSER = "what is wrong with unreadable JSON is said in the words of another parser"
_MISTAKE = "a mistake of the client is answered with 4xx, where kube-apiserver answers 500"
_UTF8 = "text that is not UTF-8 is refused; kube-apiserver stores it with replacement characters"
_STATUS = (
    "an unknown path, or one of an unavailable server, is answered with a Status, as every other error is"
)
_BOOKMARK = "a bookmark carries a version and nothing else, no empty spec and status"
_OLD_WATCH = "the paths `/watch/…`, deprecated since v1.11, are not offered"
_WARNINGS = "of the warnings about pods only the common ones are given, not those about long-deprecated names"
_FORMATS = (
    "protobuf is read but not written: the formats on offer are JSON and YAML, and a refusal names them"
)
_PATCH_FORMATS = "the answer to a patch in an unknown format lists the known formats"
_GO_WORDS = "a message names Go's own types or converters, which are not there"
_ORDER = "if two rules are broken at once, another one is reported, or the same one is not reported twice"
_APPLIED_SCALE = (
    "the scale of a custom resource can be applied; kube-apiserver only takes an apply that changes nothing"
)
_METHOD = "a method that HTTP does not know is refused by the parser of requests"
_TYPE = "the content type says what the body is"
_ANNOTATION = "metadata in a table row is all of the metadata"


def _same(reason: str, at: tuple[str, ...], *steps: str) -> dict[str, Known]:
    return {step: Known(reason, at) for step in steps}


_ANSWER = ("code", "body")

DIFFERENCES: dict[str, Known] = {
    **_same(_GO_WORDS, ("body.message", "body.details.causes[0].message"), "apply/unprintable-manager"),
    **_same(
        _PARSER,
        ("body.message",),
        "errors/malformed",
        "errors/not-an-object",
        "errors/a-string",
        "errors/empty",
        "errors/trailing-text",
        "errors/very-deep",
        "errors/deep-in-an-object",
        "lists/continue-nonsense",
    ),
    **_same(
        _MISTAKE,
        _ANSWER,
        "lists/get-unreadable-version",
        "watches/version-unreadable",
        "patches/strategic-unknown-directive",
        "patches/strategic-element-without-key",
        "binding/without-target",
        "binding/to-another-kind",
        "pod-validation/resource-version-set",
    ),
    **_same(_UTF8, _ANSWER, "errors/not-utf-8"),
    **_same(
        _FORMATS,
        ("body.message",),
        "access/a-review-as-a-table",
        "discovery/aggregated-beta",
        "discovery/aggregated-unknown",
        "discovery/aggregated-table",
        "discovery/aggregated-without-media-type",
        "discovery/resources-as-a-table",
    ),
    **_same(_FORMATS, ("body", "headers.Content-Type"), "crd-instances/get-protobuf"),
    **_same(_GO_WORDS, ("body.message",), "access/extra-values-of-nobody"),
    **_same(
        _GO_WORDS,
        ("body.message", "body.details.causes[0].message"),
        "flow-control/fixed-schema",
    ),
    **_same(
        _STATUS,
        ("body", "headers.Content-Type"),
        "errors/unknown-group",
        "errors/unknown-path",
        "errors/old-group-name",
        "discovery/group-missing",
        "crd-definitions/not-served",
        "crd-instances/wrong-scope",
        "crd-versions/not-served",
        "discovery/openapi-missing",
        "api-services/not-served",
    ),
    **_same(
        _BOOKMARK,
        ("body[2].object.spec", "body[2].object.status"),
        "watches/initial-events-end-with-a-bookmark",
    ),
    **_same(_BOOKMARK, ("body[1].object.spec", "body[1].object.status"), "watches/initial-events-selected"),
    **_same(_OLD_WATCH, ("",), "watches/old-watch-path"),
    **_same(_GO_WORDS, ("body.details.causes[1].message",), "classes/runtime-tolerations"),
    **_same(
        _WARNINGS,
        ("headers.Warning",),
        "pod-creation/deprecated-annotation-warns",
        "pod-creation/deprecated-node-label-warns",
    ),
    **_same(_FORMATS, ("body.message",), "tables/unknown-form"),
    **_same(_FORMATS, ("body.details", "body.message"), "tables/html-only"),
    **_same(
        _PATCH_FORMATS,
        ("body.details", "body.message"),
        "apply/cbor",
        "patches/unknown-patch-type",
        "patches/json-as-patch-type",
    ),
    **_same(_GO_WORDS, ("body.message",), "tables/metadata-asked-of-a-list"),
    **_same(_GO_WORDS, ("body.details", "body.message"), "patches/strategic-wrong-type"),
    **_same(
        _GO_WORDS,
        ("body.details", "body.message"),
        "plain-kinds/new-event-empty-refused",
        "access/may-i-nothing-asked",
    ),
    **_same(_ORDER, ("body.details",), "pod-updates/empty-image"),
    **_same(
        _ORDER,
        ("body.details", "body.message"),
        "plain-kinds/service-address-change",
        "endpoint-slices/slice-type",
    ),
    **_same(_APPLIED_SCALE, _ANSWER, "crd-apply/scale-apply"),
    **_same(_METHOD, ("body", "code", "headers.Content-Type"), "errors/unknown-method"),
    **_same(_TYPE, ("headers.Content-Type",), "discovery/openapi-index"),
    **_same(_TYPE, ("headers.Content-Type",), "binding/log-of-an-unscheduled-pod-is-empty"),
    **_same(_ANNOTATION, ("body.rows[0].object.metadata.annotations",), "tables/daemonsets-row"),
    **_same(_ANNOTATION, ("body.rows[1].object.metadata.annotations",), "autoscalers/v1-rows"),
}


def parity_table() -> str:
    """The list as Markdown: one row for each reason, with the steps that show it."""
    by_reason: dict[str, list[str]] = {}
    for step, known in DIFFERENCES.items():
        by_reason.setdefault(known.reason, []).append(step)
    rows = [
        f"| {reason} | {', '.join(f'`{step}`' for step in steps)} |" for reason, steps in by_reason.items()
    ]
    return "\n".join(["| what differs, and why | seen in |", "|---|---|", *rows])


def write_parity() -> None:
    before, rest = PARITY.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PARITY.write_text(f"{before}{BEGIN}\n{parity_table()}\n{END}{after}")
