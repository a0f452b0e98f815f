"""GET: one object, or a list: selected, in pages, current or as of a revision."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.apiserver.registry import response
from podlife.apiserver.registry.conversion import record_in_version, records_in_version
from podlife.apiserver.registry.list_options import (
    LATEST,
    ListOptions,
    decode_continue,
    encode_continue,
    parse_revision,
)
from podlife.apiserver.registry.request_body import bad_request
from podlife.apiserver.registry.request_scope import Registry, RequestScope
from podlife.apiserver.registry.selection_predicate import SelectionPredicate, select
from podlife.apiserver.storage import CompactedError
from podlife.errors import ApiError, ExpiredError
from podlife.wire import Response

# Maximum wait for a revision that this server has not reached yet.
_FRESHNESS_SECONDS = 3.0


async def get(scope: RequestScope) -> Response:
    revision = parse_revision(scope.request.query.get("resourceVersion"))
    await reach(scope.registry, revision)
    record = await record_in_version(scope.resource, scope.find())
    return await response.one(scope, record.value)


async def list_(scope: RequestScope) -> Response:
    options = ListOptions.from_query(scope.request.query, watch=False)
    selection = await SelectionPredicate.asked_for(scope)
    revision, start = await _starting_point(scope.registry, options)
    shown = revision if revision is not None else scope.registry.store.revision
    try:
        records = await select(scope, selection, revision=revision)
    except CompactedError as error:
        raise expired(error, page=start) from None
    if start:
        records = [record for record in records if record.key.path >= start]
    meta: Object = {"resourceVersion": str(shown)}
    if 0 < options.limit < len(records):
        meta["continue"] = encode_continue(shown, records[options.limit].key.path)
        if selection.is_everything:
            meta["remainingItemCount"] = len(records) - options.limit
        records = records[: options.limit]
    if selection.is_everything:
        records = await records_in_version(scope.resource, records)
    return response.many(scope, [record.value for record in records], meta)


async def _starting_point(registry: Registry, options: ListOptions) -> tuple[int | None, str]:
    """The revision to list at (None: now) and the key to begin with."""
    if options.continue_:
        if options.revision:
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, start = decode_continue(options.continue_)
        if revision == LATEST:
            return None, start
        if revision > registry.store.revision:
            # The token is from before a backup was restored: the client must start over.
            raise expired(CompactedError(revision, registry.store.oldest), page=start)
        return revision, start
    await reach(registry, options.revision)
    # Without resourceVersionMatch, a paged list at a revision means exactly that one; otherwise at least that fresh.
    if options.revision and (options.match == "Exact" or (options.limit and not options.match)):
        return options.revision, ""
    return None, ""


async def reach(registry: Registry, revision: int | None) -> None:
    if revision and not await registry.store.wait_for_revision(revision, seconds=_FRESHNESS_SECONDS):
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise ApiError(
            f"Timeout: Too large resource version: {revision}, current: {registry.store.revision}",
            code=504,
            reason="Timeout",
            details={"causes": [cause], "retryAfterSeconds": 1},
        )


def expired(error: CompactedError, *, page: str = "") -> ExpiredError:
    """For a page that begins with a key the answer has a token to go on with, at the price of consistency."""
    if not page:
        return ExpiredError(f"too old resource version: {error.revision} ({error.oldest})")
    return ExpiredError(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        continue_=encode_continue(LATEST, page),
    )
