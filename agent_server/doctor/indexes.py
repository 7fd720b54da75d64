"""Indexes: those that the schema makes are there, valid, hold every row, and are what searches really use."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg

from agent_server import sql
from agent_server.catalog import Collection
from agent_server.db import Conn, Database, execute, fetch_all, fetch_one, translated
from agent_server.doctor.check import FIX, Check, cure, psql, quoted
from agent_server.errors import KnowledgeBankError
from agent_server.lexemes import quote_lexeme
from agent_server.retrieval import candidates
from agent_server.retrieval.lexical import LexicalQuery

#: GIN indexes that a search relies on, with what it would do without.
GIN = {
    "chunks_tsv": "every word search reads all passages",
    "chunks_paragraphs": "near copies are found by reading all",
}
DENSE = "chunks_embedding"
#: Passages looked up through the indexes: the newest, for that is where something went missing, and some others.
NEWEST, OTHERS = 10, 10
#: A sound HNSW graph now and then misses one of its own rows.
LEAST_FOUND = 0.9
#: A word in more passages says little about one of them, and takes long.
MOST_PASSAGES = 1000
#: Below this many passages any plan is a matter of milliseconds, and the planner knows it.
FEW_PASSAGES = 2000
#: Share of dead rows from which on it is worth cleaning up; autovacuum begins at a fifth.
DEAD_SHARE = 0.3
LEAST_DEAD = 1000


# -- there and valid --------------------------------------------------------------------------------------------


def check_indexes(name: str, indexes: Sequence[Mapping[str, Any]], searched: int) -> Iterator[Check]:
    """`indexes` are rows of doctor_indexes.sql."""
    problem = dense_problem(indexes)
    if not problem:
        yield Check(f"{name} dense index", "ok", "HNSW, cosine, over the searched passages")
    elif not searched:
        yield Check(f"{name} dense index", "ok", "none yet: nothing is searched")
    else:
        yield Check(f"{name} dense index", "error", f"{problem}; searches compare all vectors", FIX)
    by_name = {i["name"]: i for i in indexes}
    for index, without in GIN.items():
        found = by_name.get(index)
        if found is None or found["method"] != "gin":
            yield Check(f"{name} {index}", "error", f"the index is missing: {without}", cure("reindex", name))
        elif found["valid"]:
            yield Check(f"{name} {index}", "ok", "GIN, valid")
    for row in indexes:
        if not row["valid"] and row["name"] != DENSE:
            problem = "the index is not valid: it is not used"
            yield Check(f"{name} {row['name']}", "error", problem, cure("reindex", name))
    missing = sorted(missing_indexes(indexes))
    if missing:
        yield Check(f"{name} other indexes", "error", f"missing: {', '.join(missing)}", FIX)
    else:
        yield Check(f"{name} other indexes", "ok", "all that the schema makes are there")


def check_shared_indexes(indexes: Sequence[Mapping[str, Any]]) -> Check:
    """`indexes` are rows of doctor_indexes.sql for the schema that all collections share."""
    broken = [i["name"] for i in indexes if not i["valid"]]
    if broken:
        statements = [f"REINDEX INDEX CONCURRENTLY kb.{quoted(n)}" for n in broken]
        return Check("shared indexes", "error", f"not valid: {', '.join(broken)}", psql(*statements))
    return Check("shared indexes", "ok", f"{len(indexes)}, all valid")


def dense_problem(indexes: Sequence[Mapping[str, Any]]) -> str:
    """Why the dense index cannot serve a search; '' when it can."""
    index = next((i for i in indexes if i["name"] == DENSE), None)
    if index is None:
        return "there is no dense index"
    if not index["valid"]:
        return "the dense index is not valid (its build was interrupted)"
    if index["method"] != "hnsw" or index["opclasses"] != "halfvec_cosine_ops":
        return f"the dense index is {index['method']} with {index['opclasses']}, not hnsw with halfvec_cosine_ops"
    if index["predicate"].strip("()") != "canonical":
        return f"the dense index covers {index['predicate'] or 'all rows'}, not the searched ones"
    return ""


_MAKES = re.compile(r'CREATE (?P<unique>UNIQUE )?INDEX (?P<name>\w+) ON "(?:[^"]|"")+"\.(?P<rest>[^;]+);')


def schema_indexes(schema: str, dimensions: int) -> dict[str, str]:
    """What collection.sql itself says: index name -> the statement that makes it, beside running writers."""
    statement = sql.load("collection").query(identifiers={"schema": schema}, dimensions=dimensions).as_string(None)
    return {
        m["name"]: f"CREATE {m['unique'] or ''}INDEX CONCURRENTLY {m['name']} ON {quoted(schema)}.{m['rest']}"
        for m in _MAKES.finditer(statement)
    }


def missing_indexes(indexes: Sequence[Mapping[str, Any]]) -> set[str]:
    """Indexes of the schema that are not there, besides those that have a check of their own."""
    return schema_indexes("any", 1).keys() - {i["name"] for i in indexes} - GIN.keys()


# -- holding every row, and used --------------------------------------------------------------------------------


def check_searching(database: Database, collection: Collection) -> Iterator[Check]:
    """Asked as a search asks: on the reader's connection, with its settings. Nothing where the reader cannot log in,
    where nothing is searched or no dense index stands: other checks say so."""
    if not collection.has_hnsw:
        return
    with database.owner(collection.schema_name) as connection:
        sample = fetch_all(connection, "doctor_sample", {"newest": NEWEST, "others": OTHERS})
        searched = (fetch_one(connection, "chunk_count") or {})["canonical"]
    if not sample:
        return
    try:
        with translated(), database.reader(collection.reader_role, collection.schema_name) as connection:
            yield check_plan(connection, collection, sample[0], searched)
            yield check_nearest(connection, collection.name, sample)
            yield check_words(connection, collection.name, sample)
    except (KnowledgeBankError, psycopg.errors.InsufficientPrivilege):
        return


def check_plan(connection: Conn, collection: Collection, row: Mapping[str, Any], searched: int) -> Check:
    """Whether the hybrid statement's plan names both indexes; `row` is one of doctor_sample.sql."""
    name = f"{collection.name} plan"
    word = quote_lexeme(row["lexeme"] or "none")
    run = candidates.Run(collection, candidates.SearchOptions(), vector=row["vector"])
    run.lexical = LexicalQuery((), word, "{1:1}/1000000000")
    candidates.set_session(connection, run)
    values = candidates.variables(run)
    explain = psycopg.sql.SQL("EXPLAIN (FORMAT JSON) ") + sql.load("hybrid", given=values).query()
    (plan,) = connection.execute(explain, values).fetchone() or ([],)
    unused = sorted({DENSE, "chunks_tsv"} - set(_index_names(plan)))
    if not unused:
        return Check(name, "ok", "a search reads both indexes")
    forbidden = fetch_all(connection, "doctor_planner")
    found = f"a search does not use {' and '.join(unused)}"
    if forbidden:
        told = ", ".join(f"{f['name']} is off by {f['source']}" for f in forbidden)
        return Check(name, "warn", f"{found}: {told}", _planner_cure(connection.info.dbname, forbidden))
    if searched < FEW_PASSAGES:
        return Check(name, "ok", f"{found}: {searched} passages are read as fast")
    return Check(name, "warn", f"{found}: the planner's statistics may be old", FIX)


def _planner_cure(database: str, forbidden: Sequence[Mapping[str, Any]]) -> str:
    sources = {f["source"] for f in forbidden}
    if sources == {"user"}:
        return cure("db", "roles")  # sets what a reader role has of its own back
    if sources <= {"user", "database"}:
        return psql(*(f"ALTER DATABASE {quoted(database)} RESET {f['name']}" for f in forbidden))
    return psql(*(f"ALTER SYSTEM RESET {f['name']}" for f in forbidden), "SELECT pg_reload_conf()")


def _index_names(plan: Any) -> Iterator[str]:
    if isinstance(plan, list):
        for part in plan:
            yield from _index_names(part)
    elif isinstance(plan, dict):
        if "Index Name" in plan:
            yield plan["Index Name"]
        for part in plan.values():
            yield from _index_names(part)


def check_nearest(connection: Conn, name: str, sample: Sequence[Mapping[str, Any]]) -> Check:
    """Whether passages are found by their own vectors: an index may be valid and lack rows. The transaction has the
    settings of a search."""
    execute(connection, "doctor_ordered")
    found = [fetch_one(connection, "doctor_nearest", {"vector": r["vector"], "id": r["id"]}) or {} for r in sample]
    return _held(f"{name} dense entries", "vector", [bool(f["found"]) for f in found], name)


def check_words(connection: Conn, name: str, sample: Sequence[Mapping[str, Any]]) -> Check:
    """Whether passages are found by their rarest words through the GIN index; changes what the planner may do in this
    transaction, as `check_nearest` does."""
    execute(connection, "doctor_bitmap")
    asked = [r for r in sample if r["lexeme"] and r["ndoc"] <= MOST_PASSAGES]
    values = [{"tsquery": quote_lexeme(r["lexeme"]), "id": r["id"]} for r in asked]
    found = [fetch_one(connection, "doctor_word", v) or {} for v in values]
    return _held(f"{name} word entries", "rarest word", [bool(f["found"]) for f in found], name)


def _held(name: str, what: str, found: Sequence[bool], collection: str) -> Check:
    text = f"{sum(found)} of {len(found)} passages looked up by their {what} are found"
    if sum(found) >= LEAST_FOUND * len(found):
        return Check(name, "ok", text)
    return Check(name, "error", f"{text}: the index lacks rows", cure("reindex", collection))


def check_dead(name: str, row: Mapping[str, Any]) -> Check:
    """`row` is that of doctor_activity.sql."""
    live, dead = row["live"], row["dead"]
    share = dead / max(1, live + dead)
    found = f"{dead} dead rows beside {live} live ones"
    if dead >= LEAST_DEAD and share > DEAD_SHARE:
        return Check(f"{name} dead rows", "warn", f"{found}: searches step over them", FIX)
    return Check(f"{name} dead rows", "ok", found)
