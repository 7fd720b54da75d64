"""Candidates of a question: both arms in one statement, near copies folded, the places that this frees filled again."""

import psycopg

from agent_server.db import Conn
from agent_server.lexemes import LexicalText
from agent_server.models import Degraded
from agent_server.retrieval import filters, lexical, near
from agent_server.retrieval.candidates import Run, hybrid, plan_lexical, session, set_session
from agent_server.retrieval.weigh import Candidate, Group

MAX_REFILLS = 3


def retrieve(connection: Conn, run: Run, text: LexicalText, *, use_lexical: bool) -> list[Group]:
    """Both arms, fused and folded; an arm that Postgres refuses is left out and named."""
    connection.execute("SAVEPOINT arms")
    while True:
        try:
            return _fold_and_refill(connection, run, text, use_lexical=use_lexical)
        except psycopg.errors.QueryCanceled:
            connection.execute("ROLLBACK TO SAVEPOINT arms")
            if run.vector and (run.exact or not run.collection.has_hnsw) and use_lexical:
                run.degraded.append(Degraded("dense", _too_slow(run)))
                run.vector = ""
                continue
            raise
        except (psycopg.DataError, psycopg.InternalError, psycopg.errors.ProgramLimitExceeded) as error:
            connection.execute("ROLLBACK TO SAVEPOINT arms")
            if not (run.vector and use_lexical):
                raise
            run.degraded.append(Degraded("lexical", str(error).splitlines()[0]))
            run.lexical, use_lexical = lexical.NO_QUERY, False


def _fold_and_refill(connection: Conn, run: Run, text: LexicalText, *, use_lexical: bool) -> list[Group]:
    """Fold near copies; while that leaves fewer than top_k, look past the paragraphs folded so far.

    Each round's statement passes over them and ranks what it finds behind what earlier rounds found.
    """
    run.counts, run.excluded, run.rounds = {}, [], []  # nothing of an attempt that was given up
    run.dense_before = run.lexical_before = 0
    set_session(connection, run)
    _apply_filters(connection, run)
    candidates: dict[int, Candidate] = {}
    groups: list[Group] = []
    for round_number in range(MAX_REFILLS + 1):
        if use_lexical:
            run.lexical = plan_lexical(connection, run, text)
            if not run.lexical.terms and round_number == 0:
                run.degraded.append(Degraded("lexical", "the question holds only stop words or symbols"))
        new = [c for c in hybrid(connection, run) if c.id not in candidates]
        candidates |= {c.id: c for c in new}
        ranked = sorted(candidates.values(), key=lambda c: (-c.score, c.chunk_id))
        groups = near.folded(connection, run, ranked)
        folded = sorted({h for g in groups for h in g.hashes})
        if len(groups) >= run.options.top_k or not new or set(folded) <= set(run.excluded):
            break
        if round_number < MAX_REFILLS:
            run.excluded = folded
            run.dense_before, run.lexical_before = run.counts["dense"], run.counts["lexical"]
            run.counts["refills"] = round_number + 1
    run.counts["folded"] = sum(len(g.folded) for g in groups)
    return groups


def _too_slow(run: Run) -> str:
    limit_s = int(session(run)["statement_timeout"]) / 1000
    why = "the filter leaves few" if run.collection.has_hnsw else "no HNSW index stands"
    return f"{why}, and comparing their vectors one by one took over {limit_s:g} s"


def _apply_filters(connection: Conn, run: Run) -> None:
    """Know what the filter leaves: few passages are searched exactly."""
    run.filters = filters.variables(connection, run.collection.text_search_config, run.options.filters)
    if run.filters:
        run.exact, run.counts["filter"] = filters.leaves_few(connection, run.filters)
        set_session(connection, run)
