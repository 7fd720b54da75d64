"""One row per search, written after the answer by the owner's connection, and deleted when it is old."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg

from agent_server.db import Conn, Database, execute, fetch_all, fetch_one
from agent_server.errors import CallerError, DatabaseUnavailable, InvalidArgument
from agent_server.models import Degraded, SearchResult
from agent_server.retrieval.lexical import Term


class UnknownTrace(CallerError):
    code = "unknown_trace"
    http_status = 404


def write(
    database: Database,
    schema: str,
    result: SearchResult,
    *,
    request: Mapping[str, Any],
    terms: Sequence[Term],
    variables: Mapping[str, Any],
    candidates: Mapping[str, Any],
) -> Degraded | None:
    """Store the trace. Never raises for a database that refuses it (a replica): the answer then says so."""
    values = {
        "trace_id": result.trace_id,
        "query": result.query,
        "request": json.dumps(request),
        "terms": json.dumps([[t.lexeme, t.qtf, t.ndoc, round(t.weight, 5)] for t in terms]),
        "variables": json.dumps(variables),
        "candidates": json.dumps(candidates),
        "passages": json.dumps(
            [
                {
                    "chunk_id": p.chunk_id,
                    "score": p.score,
                    "dense_rank": p.dense_rank,
                    "dense_score": p.dense_score,
                    "lexical_rank": p.lexical_rank,
                    "lexical_score": p.lexical_score,
                    "via": p.via,
                    "text_sha256": text_sha256(p.text),
                }
                for p in result.passages
            ]
        ),
        "degraded": json.dumps([{"arm": d.arm, "reason": d.reason} for d in result.degraded]),
        "diagnostic": result.diagnostic or "",
        "timings_ms": json.dumps(dict(result.timings_ms)),
    }
    try:
        with database.owner(schema) as connection:
            execute(connection, "search_insert", values)
    except (psycopg.Error, DatabaseUnavailable) as error:
        return Degraded("trace", f"not recorded: {str(error).splitlines()[0]}")
    return None


def text_sha256(text: str) -> str:
    """Hex digest of a passage's text: a replay tells by it whether the passage is what it was."""
    return hashlib.sha256(text.encode()).hexdigest()


def prune(connection: Conn, keep_days: int, now: datetime) -> dict[str, int]:
    """Delete searches and tool calls older than `keep_days` before `now` (with its zone); 0 keeps them for ever.

    `connection` is the owner's, in the collection's schema. How many went: {"searches": n, "tool_calls": n}.
    """
    if keep_days == 0:
        return {"searches": 0, "tool_calls": 0}
    values = {"before": (now - timedelta(days=keep_days)).isoformat()}
    return {name: int(n) for name, n in (fetch_one(connection, "traces_prune", values) or {}).items()}


def list_traces(database: Database, schema: str, limit: int = 20) -> list[dict[str, Any]]:
    """The newest searches of a collection, newest first."""
    with database.owner(schema) as connection:
        return fetch_all(connection, "search_list", {"limit": limit})


def get_trace(database: Database, schema: str, trace_id: str) -> dict[str, Any]:
    """One recorded search by its id, or by a beginning of it that no other has."""
    if not trace_id or set(trace_id.lower()) - set("0123456789abcdef-"):
        raise InvalidArgument("trace_id", f"{trace_id!r} is not a trace id", hint="`kb trace list` shows them.")
    with database.owner(schema) as connection:
        rows = fetch_all(connection, "search_get", {"trace_id": trace_id.lower()})
    if len(rows) != 1:
        found = "several searches start" if rows else "no recorded search starts"
        raise UnknownTrace(f"{found} with {trace_id!r}", hint="`kb trace list` shows the newest.")
    return rows[0]


def psql_script(trace: Mapping[str, Any], schema: str) -> str:
    """psql commands that set a recorded search up again: search path, session settings and variables."""
    lines = [f'SET search_path = "{schema}", public;', "BEGIN READ ONLY;"]
    lines += [f"SET LOCAL {name} = '{value}';" for name, value in trace["request"]["session"].items()]
    for name, value in trace["variables"].items():
        text = "{" + ",".join(map(str, value)) + "}" if isinstance(value, list) else str(value)
        quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        lines.append(f"\\set {name} '{quoted}'")
    return "\n".join(lines) + "\n"
