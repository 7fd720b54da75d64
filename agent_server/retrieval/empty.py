"""Why a search found nothing."""

from agent_server.db import Conn, fetch_one
from agent_server.retrieval import filters
from agent_server.retrieval.candidates import Run


def why_empty(connection: Conn, run: Run) -> str:
    """What emptied the result, in one sentence."""
    row = fetch_one(connection, "empty_reason") or {}
    name = run.collection.name
    if not row["chunks"]:
        return f"Collection {name} is empty: `kb ingest {name} PATH` fills it."
    if not row["searched"]:
        return f"All {row['retired']} passages of {name} are retired."
    missing = {d.arm: d.reason for d in run.degraded}
    reasons = []
    if run.filters:
        left = filters.count_left(connection, run.filters)
        share = f"{left or 'none'} of {row['chunks'] - row['retired']} passages"
        reasons.append(f"the filter ({run.options.filters}) leaves {share}{_each_alone(connection, run)}")
        if not left:
            return f"Nothing found in {name}: {reasons[0]}."
    if run.lexical.terms:
        where = "them" if run.filters else f"the {row['searched']} passages"
        reasons.append(f"none of its {len(run.lexical.terms)} terms stands in {where}")
    elif "lexical" in missing:
        reasons.append(missing["lexical"])
    if not run.vector:
        reasons.append(f"the dense arm did not run ({missing.get('dense', 'the search is by words alone')})")
    elif not row["with_vector"]:
        reasons.append("no passage has a vector")
    return f"Nothing found in {name}: " + "; ".join(reasons or ["no passage is near the question"]) + "."


def _each_alone(connection: Conn, run: Run) -> str:
    """What each of several conditions leaves by itself: ` (source x/*: none, heading fees: 3)`."""
    conditions = run.options.filters.each()
    if len(conditions) < 2:
        return ""
    config = run.collection.text_search_config
    told = []
    for condition in conditions:
        left = filters.count_left(connection, filters.variables(connection, config, condition))
        told.append(f"{condition}: {left or 'none'}")
    return f" (alone: {', '.join(told)})"
