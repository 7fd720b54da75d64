"""Tools for models: `schemas` says what there is, `dispatch` does it and keeps a log."""

import json
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from agent_server.catalog import Collection
from agent_server.db import execute
from agent_server.errors import CallerError, KnowledgeBankError
from agent_server.tools import arguments, knowledge_base, recall_claims
from agent_server.tools.toolbox import BUDGET_TOKENS, Toolbox

__all__ = ["BUDGET_TOKENS", "Toolbox", "UnknownTool", "dispatch", "schemas"]

logger = logging.getLogger(__name__)

_RUN: dict[str, Callable[[Toolbox, Collection, Mapping[str, Any]], dict[str, Any]]] = {
    knowledge_base.SEARCH: knowledge_base.run_search,
    knowledge_base.GET_PASSAGE: knowledge_base.run_get_passage,
}
_PARAMETERS: dict[str, tuple[str, ...]] = {
    schema["function"]["name"]: tuple(schema["function"]["parameters"]["properties"])
    for schema in (*knowledge_base.schemas(()), recall_claims.schema(()))
}
_KNOWN = tuple(_PARAMETERS)
_LOGGED_CHARS = 4000


class UnknownTool(CallerError):
    code = "unknown_tool"
    http_status = 404


def schemas(toolbox: Toolbox) -> list[dict[str, Any]]:
    """The tools that this caller has, in the OpenAI and Ollama function shape."""
    visible = toolbox.visible()
    return [*knowledge_base.schemas(visible), recall_claims.schema(visible)]


def dispatch(toolbox: Toolbox, name: str, given: Any) -> dict[str, Any]:
    """Call the tool `name` with `given` (an object, or JSON text of one); the contract's JSON.

    Raises UnknownTool, InvalidArgument, UnknownCollection, UnknownPassage, and what a search raises. Each call that
    names a collection the caller may see stands in its tool_calls afterwards, a refused one too; one that looks in all
    of them stands in each.
    """
    if name not in _PARAMETERS:
        raise UnknownTool(
            f"no tool is called {arguments.shown(name)}",
            hint=f"There are: {', '.join(_KNOWN)}.",
            details={"known": list(_KNOWN)},
        )
    values = arguments.as_object(given)
    everywhere = name == recall_claims.RECALL and values.get("collection") is None
    collections = toolbox.visible() if everywhere else [toolbox.collection(arguments.text(values, "collection"))]
    outcome, trace_id, result = "internal", None, None
    try:
        arguments.check_names(values, _PARAMETERS[name], name)
        if name == recall_claims.RECALL:
            result = recall_claims.run_recall(toolbox, collections, values)
        else:
            result = _RUN[name](toolbox, collections[0], values)
        outcome, trace_id = "ok", result.get("trace_id")
    except KnowledgeBankError as error:
        outcome = error.code
        raise
    finally:
        problems = [_log(toolbox, collection, name, values, outcome, trace_id) for collection in collections]
        problem = next(filter(None, problems), "")
        if problem and result is not None and "degraded" in result:
            result["degraded"].append({"arm": "tool_log", "reason": problem})
    return result


def _log(
    toolbox: Toolbox, collection: Collection, tool: str, given: Mapping[str, Any], outcome: str, trace_id: str | None
) -> str:
    """Keep the call; a database that refuses it (a replica) must not cost the answer. Why it failed, else ''."""
    values = {
        "tool": tool,
        "arguments": json.dumps({_plain(k): _plain(v) for k, v in given.items()}),
        "outcome": outcome,
        "trace_id": trace_id or "",
    }
    try:
        with toolbox.database.owner(collection.schema_name) as connection:
            execute(connection, "tool_call_insert", values)
    except (psycopg.Error, PoolTimeout, KnowledgeBankError) as error:
        problem = f"not recorded: {(str(error).splitlines() or [''])[0]}"
        logger.warning("tool call of %s %s", tool, problem)
        return problem
    return ""


def _plain(value: Any) -> Any:
    """`value` as jsonb takes it: no NUL, no broken surrogates, no NaN, and of bounded length."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else "a huge number"
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    text = text[:_LOGGED_CHARS].encode("utf-8", "replace").decode()
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
