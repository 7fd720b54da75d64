"""Expansion by edges: what is added, where, how much, and that nothing else changes."""

import json
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql as psycopg_sql

from agent_server import sql
from agent_server.catalog import Collection, get_collection
from agent_server.db import Database, execute, migrate
from agent_server.errors import InvalidArgument
from agent_server.models import Edge, Passage, SearchResult
from agent_server.retrieval import candidates, expand
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.expand import Reached, merge, worth_adding
from agent_server.retrieval.filters import Filters
from agent_server.retrieval.intent import read_intent
from agent_server.retrieval.search import search
from agent_server.retrieval.weigh import Candidate, Group
from tests.conftest import SECRET, Builder, Server
from tests.corpus import File, collection_of, fill, put
from tests.hash_embedder import HashEmbedder
from tests.retrieval.edges import cite, define, use

FILES = [
    File("rules.txt", ["Guest berth means a place for a visiting boat, let by the night.",
                       "A visiting boat pays the night fee named in section nine.",
                       "Section nine. Eleven crowns for each metre.",
                       "Section twelve. Crowns are counted at the ferry desk."]),
    File("guide.txt", ["Visiting boats find the guest berth behind the breakwater.",
                       "The guest berth has water and power.",
                       "Ask for the guest berth by radio."]),
    File("other.txt", ["Nobody swims in the lock.", "The lock opens on the hour."]),
]  # fmt: skip
OFF = SearchOptions(top_k=3, expand=())
ON = SearchOptions(top_k=3, expand=("cites", "defines"))


def _harbor(database: Database) -> None:
    collection = fill(database, "HARBOR", FILES)
    define(database, collection, [("Guest berth", "rules.txt::0")])
    cite(database, collection, ("rules.txt::1", "rules.txt::2"), ("rules.txt::2", "rules.txt::3"))


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _harbor if "harbor" in request.fixturenames else None


@pytest.fixture
def harbor(database: Database) -> Collection:
    return collection_of(database, "HARBOR")


def ask(database: Database, question: str, options: SearchOptions = ON) -> SearchResult:
    return search(database, "HARBOR", question, HashEmbedder(), options)


def ids(result: SearchResult) -> list[str]:
    return [p.chunk_id for p in result.passages]


def passage(result: SearchResult, chunk_id: str) -> Passage:
    return next(p for p in result.passages if p.chunk_id == chunk_id)


def hits(result: SearchResult) -> list[str]:
    return [p.chunk_id for p in result.passages if p.via == "search"]


# -- definitions ------------------------------------------------------------------------------------------------


def test_a_question_for_a_meaning_gets_the_defining_passage_first(database: Database, harbor: Collection) -> None:
    off = ask(database, "guest berth water power radio", OFF)
    assert "rules.txt::0" not in ids(off)
    on = ask(database, "What does guest berth mean, with water, power and radio?")
    assert ids(on)[0] == "rules.txt::0"
    first = on.passages[0]
    assert first.edge == Edge("question", "defines", "Guest berth")
    assert first.rank == 1


def test_a_hit_that_defines_moves_to_the_front_and_keeps_its_ranks(database: Database, harbor: Collection) -> None:
    question = "What does guest berth mean for visiting boats?"
    before = ask(database, question, replace(OFF, top_k=5))
    after = ask(database, question, replace(ON, top_k=5))
    assert sorted(hits(after)) == sorted(ids(before))
    was, now = passage(before, "rules.txt::0"), passage(after, "rules.txt::0")
    assert now.rank == 1
    assert now.via == "search"
    assert now.edge == Edge("question", "defines", "Guest berth")
    assert (was.dense_rank, was.lexical_rank, was.score) == (now.dense_rank, now.lexical_rank, now.score)


def test_a_bare_term_is_a_question_for_its_meaning(database: Database, harbor: Collection) -> None:
    assert ids(ask(database, "Guest Berths"))[0] == "rules.txt::0"


def test_whole_definitions_come_before_those_of_a_part(database: Database) -> None:
    files = [File("a.txt", ["The term lock includes a sluice."]), File("b.txt", ["Lock means a basin with gates."])]
    collection = fill(database, "HARBOR", files)
    define(database, collection, [("lock", "a.txt::0")], form="includes")
    define(database, collection, [("lock", "b.txt::0")])
    assert ids(ask(database, "What is a lock?")) == ["b.txt::0", "a.txt::0"]


def test_of_several_senses_the_one_that_says_what_the_question_says_comes_first(database: Database) -> None:
    files = [
        File("bank.txt", ["Hold means a block on money that was pledged. Other words stand here."]),
        File("ship.txt", ["Hold means the room of a ship below deck. Other words stand here."]),
    ]
    collection = fill(database, "HARBOR", files)
    define(database, collection, [("Hold", "bank.txt::0"), ("Hold", "ship.txt::0")])
    assert ids(ask(database, "What does hold mean on a ship?"))[0] == "ship.txt::0"
    assert ids(ask(database, "What does hold mean for pledged money?"))[0] == "bank.txt::0"


def test_the_definition_of_a_term_that_question_and_hit_use_comes_last(database: Database, harbor: Collection) -> None:
    question = "How do I ask by radio for the guest berth with water and power?"
    use(database, harbor, "guide.txt::1", "rules.txt::0", "guest berth")
    off, on = ask(database, question, OFF), ask(database, question)
    assert ids(on) == [*ids(off), "rules.txt::0"]
    assert on.passages[-1].via == "defines"
    assert on.passages[-1].edge == Edge("guide.txt::1", "defines", "guest berth")


def test_a_defining_passage_that_was_folded_into_a_near_copy_is_shown_itself(database: Database) -> None:
    shared = "The pilot boat takes the lines of every ship that enters the harbor after sunset and before sunrise."
    tail = "Warping means to move a ship by hauling on a rope that is made fast to the quay or to a buoy."
    files = [File("a.txt", [f"{shared}\n\n{tail}"]), File("b.txt", [shared]), File("c.txt", ["Lock gates."])]
    collection = fill(database, "HARBOR", files)
    define(database, collection, [("Warping", "a.txt::0")])
    result = ask(database, "What does warping mean?")
    assert ids(result)[0] == "a.txt::0"


# -- citations --------------------------------------------------------------------------------------------------


def test_a_cited_passage_comes_right_after_the_hit_that_cites_it(database: Database, harbor: Collection) -> None:
    question = "What does a visiting boat pay for the night?"
    off, on = ask(database, question, replace(OFF, top_k=2)), ask(database, question, replace(ON, top_k=2))
    assert "rules.txt::2" not in ids(off)
    at = ids(on).index("rules.txt::1")
    assert ids(on)[at + 1] == "rules.txt::2"
    added = passage(on, "rules.txt::2")
    assert added.via == "cites"
    assert added.edge == Edge("rules.txt::1", "cites", "see rules.txt::2")
    assert [p.rank for p in on.passages] == [1, 2, 3]
    assert hits(on) == ids(off)


def test_a_citation_in_a_sentence_about_something_else_is_followed_for_the_first_hit_alone(database: Database) -> None:
    texts = ["Night fees of visiting boats.", "Visiting boats pay night fees. Dogs are walked as section nine says."]
    files = [File("a.txt", texts), File("b.txt", ["Section nine. Dogs and leads.", "Section ten. Eleven crowns."])]
    collection = fill(database, "HARBOR", files)
    question = "night fees of visiting boats"
    dogs = texts[1].index("section nine"), texts[1].index(" says")
    cite(database, collection, ("a.txt::1", "b.txt::0"), at=dogs)
    assert ids(ask(database, question, replace(ON, top_k=2))) == ["a.txt::0", "a.txt::1"]
    cite(database, collection, ("a.txt::0", "b.txt::1"))
    assert ids(ask(database, question, replace(ON, top_k=2))) == ["a.txt::0", "b.txt::1", "a.txt::1"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Dogs are leashed. ", ". Cats are not."),
        ("Dogs: ", "; cats."),
        ("Dogs are leashed\n\n", "\n\nCats are not"),
        ("| Dogs | ", "\n| Cats | are not |"),
        ("dogs " * 100, " and so on" * 40 + " cats"),
        ("", ""),
    ],
)
def test_a_citation_is_known_by_its_own_sentence_or_cell(
    database: Database, harbor: Collection, before: str, after: str
) -> None:
    anchor = "section nine"
    text = f"{before}Boats pay as {anchor} says{after}"
    start = text.index(anchor)
    values = ["english", text, start, start + len(anchor)]
    with database.owner(harbor.schema_name) as connection:
        row = connection.execute("SELECT citing_lexemes(%s, %s, %s, %s)", values).fetchone()
    assert row is not None
    assert {"boat", "pay", "section", "nine", "say"} <= set(row[0])
    assert "cat" not in row[0]
    assert ("dog" in row[0]) == before.startswith("dogs")


def test_no_citation_stands_beside_a_definition_that_is_asked_for(database: Database, harbor: Collection) -> None:
    cite(database, harbor, ("guide.txt::0", "rules.txt::3"))
    assert "cites" in {p.via for p in ask(database, "guest berth behind the breakwater, visiting boats find").passages}
    assert {p.via for p in ask(database, "what is a guest berth?").passages} <= {"search", "defines"}


def test_the_result_says_in_its_json_what_led_to_a_passage(database: Database, harbor: Collection) -> None:
    result = ask(database, "What does a visiting boat pay for the night?", replace(ON, top_k=2)).to_json()
    added = next(p for p in json.loads(json.dumps(result))["passages"] if p["via"] == "cites")
    assert added["edge"] == {"from": "rules.txt::1", "relation": "cites", "anchor": "see rules.txt::2"}
    assert {p["edge"] for p in result["passages"] if p["via"] == "search"} == {None}


def test_a_second_hop_is_taken_only_when_asked_for(database: Database, harbor: Collection) -> None:
    question = "visiting boat pays the night fee"
    one = ask(database, question, replace(ON, top_k=1))
    two = ask(database, question, replace(ON, top_k=1, hops=2))
    assert ids(one) == ["rules.txt::1", "rules.txt::2"]
    assert ids(two) == ["rules.txt::1", "rules.txt::2", "rules.txt::3"]
    assert two.passages[2].edge == Edge("rules.txt::2", "cites", "see rules.txt::3")


def test_at_most_three_passages_are_added_and_no_hit_is_lost(database: Database) -> None:
    cited = [f"Section {n}. Eleven crowns." for n in range(8)]
    files = [File("a.txt", ["Fees are named in many sections.", "More fees are named there."]), File("b.txt", cited)]
    collection = fill(database, "HARBOR", files)
    cite(database, collection, *((f"a.txt::{n % 2}", f"b.txt::{n}") for n in range(8)))
    off, on = (ask(database, "many fees named", replace(o, top_k=2)) for o in (OFF, ON))
    assert len(on.passages) == 5
    assert hits(on) == ids(off)
    assert len(set(ids(on))) == 5


def test_what_is_near_the_question_is_added_first(database: Database) -> None:
    files = [
        File("a.txt", ["Night fees are named elsewhere."]),
        File("b.txt", [*(f"Nothing {n} here." for n in range(4)), "Night fees of boats.", "Night fees of tugs."]),
    ]
    collection = fill(database, "HARBOR", files)
    cite(database, collection, *(("a.txt::0", f"b.txt::{n}") for n in range(6)))
    result = ask(database, "night fees named elsewhere", replace(ON, top_k=1))
    assert ids(result)[:1] == ["a.txt::0"]
    assert set(ids(result)) >= {"b.txt::4", "b.txt::5"}


def test_a_copy_of_a_hit_is_not_added(database: Database) -> None:
    same = "A visiting boat pays the night fee."
    collection = fill(database, "HARBOR", [File("a.txt", [same]), File("b.txt", [same]), File("c.txt", ["See there."])])
    cite(database, collection, ("c.txt::0", "b.txt::0"))
    result = ask(database, "visiting boat night fee, see there", replace(ON, top_k=2))
    assert sorted(ids(result)) == ["a.txt::0", "c.txt::0"]


# -- limits -----------------------------------------------------------------------------------------------------


def test_what_a_filter_leaves_out_is_not_added(database: Database, harbor: Collection) -> None:
    question = "What does guest berth mean for a visiting boat that asks by radio?"
    only_guide = replace(ON, filters=Filters(sources=("guide.txt",)))
    assert "rules.txt::0" in ids(ask(database, question))
    assert {p.source for p in ask(database, question, only_guide).passages} == {"guide.txt"}
    without = replace(ON, top_k=1, filters=Filters(exclude=("crowns",)))
    assert ids(ask(database, "visiting boat pays the night fee", without)) == ["rules.txt::1"]


def test_a_retired_passage_is_not_added(database: Database, harbor: Collection) -> None:
    put(database, harbor, File("old.txt", ["Guest berth means a place at the old quay."], retired=True))
    define(database, harbor, [("Guest berth", "old.txt::0")])
    cite(database, harbor, ("rules.txt::1", "old.txt::0"))
    assert "old.txt::0" not in ids(ask(database, "What does guest berth mean?", replace(ON, top_k=1)))
    assert "old.txt::0" not in ids(ask(database, "What does a visiting boat pay?", replace(ON, top_k=1)))


@pytest.mark.parametrize(
    ("question", "relation"),
    [("What does guest berth mean?", "defines"), ("What does a visiting boat pay for the night?", "cites")],
)
def test_each_relation_can_be_switched_for_a_search_and_for_a_collection(
    database: Database, harbor: Collection, question: str, relation: str
) -> None:
    def edges(options: SearchOptions) -> list[str]:
        return [p.edge.relation for p in ask(database, question, options).passages if p.edge]

    asked_for = replace(ON, top_k=2)
    unset = replace(asked_for, expand=None)
    assert relation in edges(asked_for)
    assert relation in edges(unset)
    with database.owner() as connection:
        connection.execute(f"UPDATE kb.collections SET expand_{relation} = true")
    assert relation in edges(unset)
    assert edges(replace(asked_for, expand=())) == []
    assert relation not in edges(replace(asked_for, expand=tuple({"cites", "defines"} - {relation})))
    with database.owner() as connection:
        connection.execute(f"UPDATE kb.collections SET expand_{relation} = false")
    assert relation not in edges(unset)
    assert relation in edges(asked_for)


def test_unknown_relations_and_depths_are_refused(database: Database, harbor: Collection) -> None:
    with pytest.raises(InvalidArgument, match="expand"):
        ask(database, "a", replace(ON, expand=("likes",)))
    with pytest.raises(InvalidArgument, match="hops"):
        ask(database, "a", replace(ON, hops=3))


def test_without_edges_a_result_is_what_it_was(database: Database) -> None:
    fill(database, "HARBOR", FILES)
    for question in ("What does guest berth mean?", "What does a visiting boat pay?", "lock"):
        off, on = ask(database, question, OFF), ask(database, question)
        assert on.passages == off.passages


def test_edges_that_cannot_be_read_in_time_leave_the_hits_and_are_named(
    database: Database, database_dsn: str, harbor: Collection
) -> None:
    question = "What does a visiting boat pay for the night?"
    off = ask(database, question, OFF)
    with psycopg.connect(database_dsn) as other:
        other.execute("LOCK TABLE kb_harbor.links IN ACCESS EXCLUSIVE MODE")
        result = ask(database, question)
        other.rollback()
    assert ids(result) == ids(off)
    assert [d.arm for d in result.degraded] == ["expansion"]
    assert "0.25 s" in result.degraded[0].reason
    assert ask(database, question).degraded == ()


def test_the_reader_may_read_edges_and_not_write_them(database: Database, harbor: Collection) -> None:
    with database.reader(harbor.reader_role, harbor.schema_name) as connection:
        for table in ("links", "terms", "dangling_links"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() is not None
    with (
        pytest.raises(psycopg.errors.Error),
        database.reader(harbor.reader_role, harbor.schema_name) as connection,
    ):
        connection.execute("SET TRANSACTION READ WRITE")
        connection.execute("DELETE FROM links")


# -- merging ----------------------------------------------------------------------------------------------------


def group(n: int) -> Group:
    return Group(Candidate(n, f"h::{n}", 1 / n, n, None, n, None, 0.0, "", "", {}))


def reached(n: int, place: int | None, *, relation: str = "cites", nearness: float = 0.5, said: float = 0) -> Reached:
    edge = Edge("question" if place is None else f"h::{place}", relation, "x")  # type: ignore[arg-type]
    return Reached(n, f"e::{n}", edge, place, 0 if place is None else 1, "means", str(n).encode(), nearness, said)


def order(placed: list[expand.Placed]) -> list[int]:
    return [p.id for p in placed]


def test_of_what_no_sentence_about_the_question_cites_one_passage_of_the_first_hit_is_worth_adding() -> None:
    found = [reached(20, 1, nearness=0.9), reached(21, 1, nearness=1.0), reached(22, 2), reached(23, 2, said=0.2)]
    assert [(one.id, one.place) for one in worth_adding(found, 10)] == [(23, 2), (21, expand.UNSAID_AFTER)]
    assert [(one.id, one.place) for one in worth_adding(found[:2], 2)] == [(21, 2)]
    asked = reached(10, None, relation="defines")
    assert worth_adding([*found, asked], 10) == [asked]


def test_merging_puts_definitions_first_and_citations_behind_their_hits() -> None:
    shown = [group(1), group(2), group(3)]
    got = merge(shown, [reached(12, 2), reached(11, 1), reached(10, None, relation="defines")])
    assert order(got) == [10, 1, 11, 2, 12, 3]
    assert [p.via for p in got] == ["defines", "search", "cites", "search", "cites", "search"]


def test_merging_gives_definitions_the_room_first() -> None:
    found = [
        *(reached(n, None, relation="defines") for n in (10, 11)),
        *(reached(n, 1, nearness=2.0) for n in (20, 21)),
    ]
    assert order(merge([group(1)], found)) == [10, 11, 1, 20]


def test_merging_lets_no_more_than_three_definitions_stand_in_front() -> None:
    shown = [group(n) for n in range(1, 8)]
    found = [reached(n, None, relation="defines", nearness=n / 10) for n in (2, 3, 4, 5, 6)]
    assert order(merge(shown, found)) == [6, 5, 4, 1, 2, 3, 7]


def test_merging_never_loses_or_doubles_a_hit() -> None:
    shown = [group(n) for n in range(1, 5)]
    found = [reached(n, place) for n in (1, 3, 20, 21, 22, 23) for place in (1, 2, None)]
    got = order(merge(shown, found))
    assert {1, 2, 3, 4} <= set(got)
    assert len(got) == len(set(got)) <= 4 + expand.MAX_ADDED


# -- hubs -------------------------------------------------------------------------------------------------------

HUB_ROWS = """
INSERT INTO chunks (source, chunk_index, text, context, heading_path, label, char_start, char_end, passage_hash,
                    paragraph_hashes, paragraph_spans, canonical, authority, retired, tsv, bm25)
SELECT 'rules.txt', 100 + n, 'Passage ' || n, '', '{}', '', n * 20, n * 20 + 10, sha256(('p' || n)::bytea), '{}', '{}',
       true, 0, false, ''::tsvector, '{}/1000000000'
FROM generate_series(1, %(rows)s) AS n
"""
HUB_EDGES = """
INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label)
SELECT c.id, hub.id, 'cites', 'see section nine', 0, 1, 0, 1, '9' FROM chunks c, chunks hub
WHERE hub.chunk_id = 'rules.txt::2' AND c.chunk_index > 100
UNION ALL
SELECT hub.id, c.id, 'cites', 'see ' || c.chunk_id, c.chunk_index, c.chunk_index + 1, 0, 1, '' FROM chunks c, chunks hub
WHERE hub.chunk_id = 'guide.txt::0' AND c.chunk_index > 100
"""


def make_hub(database: Database, collection: Collection, rows: int) -> None:
    """A passage that `rows` others cite, and one that cites them all."""
    with database.owner(collection.schema_name) as connection:
        connection.execute(HUB_ROWS, {"rows": rows})
        connection.execute(HUB_EDGES)
    with database.owner_autocommit(collection.schema_name) as connection:
        connection.execute("ANALYZE chunks")
        connection.execute("ANALYZE links")


def explained(database: Database, collection: Collection, question: str, hits_: list[str]) -> str:
    """The plan of expand.sql as the reader runs it, with what it really touched."""
    run = candidates.Run(collection, SearchOptions(hops=2))
    with database.owner(collection.schema_name) as connection:
        rows = connection.execute("SELECT chunk_id, id FROM chunks WHERE chunk_id = ANY (%s)", (hits_,)).fetchall()
    found = dict(rows)
    values = expand.variables(run, read_intent(question), expand.RELATIONS, [found[h] for h in hits_])
    with database.reader(collection.reader_role, collection.schema_name) as connection:
        execute(connection, "expand_session", {"timeout_ms": "60000"})
        statement = psycopg_sql.SQL("EXPLAIN (ANALYZE, TIMING OFF) ") + sql.load("expand", given=values).query()
        return "\n".join(row[0] for row in connection.execute(statement, values).fetchall())


@pytest.fixture
def hub(server: Server, request: pytest.FixtureRequest) -> Iterator[tuple[Database, Collection]]:
    name = "kb_test_hub"
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(psycopg_sql.SQL("CREATE DATABASE {}").format(psycopg_sql.Identifier(name)))
    with Database(server.dsn(name), SECRET) as database:
        migrate(database)
        collection = fill(database, "HARBOR", FILES)
        define(database, collection, [("Guest berth", "rules.txt::0")])
        cite(database, collection, ("rules.txt::1", "rules.txt::2"))
        make_hub(database, collection, request.param)
        with database.owner() as connection:
            yield database, get_collection(connection, "HARBOR")
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(psycopg_sql.SQL("DROP DATABASE {} WITH (FORCE)").format(psycopg_sql.Identifier(name)))
        admin.execute(psycopg_sql.SQL("DROP ROLE {}").format(psycopg_sql.Identifier(collection.reader_role)))


@pytest.mark.parametrize("hub", [5_000, pytest.param(50_000, marks=pytest.mark.full)], indirect=True)
def test_a_hub_is_passed_over_and_costs_a_bounded_number_of_rows(hub: tuple[Database, Collection]) -> None:
    database, collection = hub
    for question, index in (("find the guest berth", "links_from"), ("what is a guest berth", "terms_folded")):
        plan = explained(database, collection, question, ["guide.txt::0", "rules.txt::1"])
        for name in ("links_from", "links_to", index):
            assert name in plan, plan
        for table in ("links", "chunks", "terms"):
            assert f"Seq Scan on {table}" not in plan, plan
        read = [float(part.split()[0]) for part in plan.split("actual rows=")[1:]]
        assert max(read) <= 2 * expand.EDGES_A_HIT * expand.FOLLOWED_HITS, plan
    result = search(database, "HARBOR", "visiting boat night fee", HashEmbedder(), replace(ON, top_k=2))
    assert "rules.txt::1" in ids(result)
    assert "rules.txt::2" not in ids(result)  # everybody cites it
    assert result.degraded == ()
