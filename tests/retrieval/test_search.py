"""The read path against a real Postgres: what is shown, in which order, and what is said when an arm is missing."""

import re
from typing import Any

import psycopg
import pytest

from agent_server import db
from agent_server.catalog import Collection, create_collection, drop_collection
from agent_server.db import Database
from agent_server.errors import ContractMismatch, InvalidArgument, ReaderLoginFailed, UnknownCollection
from agent_server.retrieval import trace
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.filters import Filters
from agent_server.retrieval.search import search
from tests.corpus import File, fill, put
from tests.hash_embedder import HashEmbedder

PARAGRAPH = (
    "A member whose application was refused may ask for another look at it within forty-five days of the "
    "letter, at any branch and without a fee; a second officer who did not take part in the first decision reads "
    "the whole file again."
)


def _filler(n: int, part: str) -> str:
    words = [f"{part}{n}w{k}" for k in range(12)]
    return (
        f"The {words[0]} office keeps a record of {words[1]} and {words[2]} for the season. "
        + " ".join(words[3:])
        + "."
    )


def test_a_paragraph_in_200_files_is_one_result_from_the_highest_tier(database: Database) -> None:
    files = [
        File(
            f"memo-{n:03}.txt",
            [
                "\n\n".join([*(_filler(n, f"a{k}") for k in range(n % 3)), PARAGRAPH, _filler(n, "z")]),
                _filler(n, "other") + f" Applications of kind {n} are read by the branch.",
            ],
            authority=1.0 if n == 117 else 0.1,
        )
        for n in range(200)
    ]
    fill(database, "MANY", files)
    result = search(
        database,
        "MANY",
        "second officer reads the file again after a refused application",
        HashEmbedder(),
        SearchOptions(top_k=10),
    )
    assert len(result.passages) == 10
    assert len({p.text for p in result.passages}) == 10
    holders = [p for p in result.passages if PARAGRAPH in p.text]
    assert [p.source for p in holders] == ["memo-117.txt"]
    assert holders[0].rank == 1
    assert len(holders[0].also_in) == 199
    assert "memo-000.txt::0" in holders[0].also_in


def test_a_paragraph_that_is_a_passage_of_its_own_in_200_files_is_one_result(database: Database) -> None:
    files = [
        File(
            f"memo-{n:03}.txt",
            [PARAGRAPH, _filler(n, "other") + " Applications are read."],
            authority=0.7 if n == 44 else 0.1,
        )
        for n in range(200)
    ]
    fill(database, "OWN", files)
    result = search(database, "OWN", "second officer reads the file again", HashEmbedder(), SearchOptions(top_k=10))
    assert len(result.passages) == 10
    assert result.passages[0].chunk_id == "memo-044.txt::0"
    assert len(result.passages[0].also_in) == 199
    assert sum(PARAGRAPH in p.text for p in result.passages) == 1


def test_two_good_passages_of_one_file_both_stay(database: Database) -> None:
    files = [File("a.txt", ["Refunds are paid within ten days.", "Refunds above 500 need a second signature."])]
    fill(database, "BOTH", files)
    result = search(database, "BOTH", "refunds", HashEmbedder())
    assert {p.chunk_id for p in result.passages} == {"a.txt::0", "a.txt::1"}


def test_a_passage_that_adds_an_answer_to_a_shared_paragraph_stays(database: Database) -> None:
    deposit = "The mooring deposit is returned when the harbor master signs the release form in triplicate."
    permit = "A dredging permit is returned when the county surveyor stamps the bathymetric chart twice."
    files = [
        File("a.txt", [PARAGRAPH + "\n\n" + deposit]),
        File("b.txt", [PARAGRAPH + "\n\n" + permit]),
        File("c.txt", [PARAGRAPH + "\n\n" + _filler(1, "c")]),
    ]
    fill(database, "ADDS", files)
    query = "refused application, mooring deposit harbor master, dredging permit surveyor"
    result = search(database, "ADDS", query, HashEmbedder())
    assert {p.source for p in result.passages} == {"a.txt", "b.txt"}


def _ranked(database: Database, name: str, query: str, **options: float) -> list[str]:
    result = search(database, name, query, HashEmbedder(), SearchOptions(top_k=10, **options))  # type: ignore[arg-type]
    return [p.source for p in result.passages]


def test_the_rule_ranks_above_the_guide_that_quotes_it(database: Database) -> None:
    rule = "Income counts when it was received for six months and is verified. Bonuses count by half."
    guide = "Our guide says: income counts when it was received for six months and is verified. Bonuses count by half."
    fill(database, "TIER", [File("guide.txt", [guide], 0.4), File("rule.txt", [rule], 1.0)])
    query = "guide income counts when received six months and verified"
    assert _ranked(database, "TIER", query)[0] == "rule.txt"
    assert _ranked(database, "TIER", query, authority_weight=0.0)[0] == "guide.txt"


def test_authority_never_lifts_a_passage_that_neither_arm_ranks_high_over_one_that_both_do(
    database: Database,
) -> None:
    good = [
        File(f"good-{n}.txt", [f"Harbor mooring fee schedule for berth {n}, harbor mooring fee."], 0.0)
        for n in range(15)
    ]
    weak = File("primary.txt", ["The harbor has a lighthouse, a customs house, a chapel and a long stone pier."], 1.0)
    fill(database, "NEVER", [*good, weak])
    for fusion in ("rrf", "score"):
        result = search(
            database, "NEVER", "harbor mooring fee berth", HashEmbedder(),
            SearchOptions(top_k=20, fusion=fusion, authority_weight=0.1),  # type: ignore[arg-type]
        )  # fmt: skip
        places = {p.source: p for p in result.passages}
        primary = places["primary.txt"]
        assert min(primary.dense_rank or 99, primary.lexical_rank or 99) > 10
        agreed = [p for p in result.passages if max(p.dense_rank or 99, p.lexical_rank or 99) <= 3]
        assert all(p.rank < primary.rank for p in agreed)


def test_the_first_hit_of_each_arm_is_shown(database: Database) -> None:
    embedder = HashEmbedder()
    files = [File(f"f{n}.txt", [f"berth {n} harbor quay mooring rope anchor {n}"]) for n in range(30)]
    fill(database, "ANCHOR", files, embedder)
    for query in ("harbor quay", "berth 7 anchor", "rope 3 mooring quay harbor 21"):
        result = search(database, "ANCHOR", query, embedder, SearchOptions(top_k=2))
        assert any(p.dense_rank == 1 for p in result.passages), query
        assert any(p.lexical_rank == 1 for p in result.passages), query


def test_without_an_embedder_words_answer_and_the_answer_says_so(database: Database) -> None:
    fill(database, "WORDS", [File("a.txt", ["Refunds for NW-4021 are accepted within 30 days."])])
    down = HashEmbedder()
    down.lost_after = 0
    result = search(database, "WORDS", "What is the refund deadline for order NW-4021?", down)
    assert [p.source for p in result.passages] == ["a.txt"]
    assert [(d.arm, d.reason) for d in result.degraded] == [("dense", "the hash embedder is switched off")]


@pytest.mark.parametrize("spelling", ["NW-4021", "NW 4021", "NW4021", "4021", "nw-4021", "order NW-4021"])
def test_a_code_is_found_in_every_spelling(database: Database, spelling: str) -> None:
    others = [File(f"o{n}.txt", [f"Order NW-{4100 + n} ships on day {n}."]) for n in range(5)]
    fill(database, "CODES", [File("a.txt", ["Order NW-4021 ships today."]), *others])
    result = search(database, "CODES", spelling, None)
    assert result.passages[0].source == "a.txt"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("§ 1.401(k)-1", "§ 1.401(k)-1 hardship, see example 1"),
        ("Section 4(a)-2", "Section 4(a)-2 lists the exceptions"),
        ("- first item\n- second item", "the first item and the second item"),
        ("is Oregon or Texas cheaper", "Oregon is cheaper than Texas"),
        ("|---|" * 12 + "\nfee table", "the fee table of the branch"),
        ("thyroid", "thyroid/metabolic panel"),
        ("setup", "see https://example.com/docs/setup.html"),
        ("jane", "write to jane@example.com"),
        ("café", "cafe\u0301 menu"),
        ("测试", "这是一个测试"),
        ("Docker", "使用Docker部署"),
        ("it's a 'quoted' \\ & | ! <-> word:*", "a quoted word"),
    ],
)
def test_pasted_text_is_data_and_finds_its_passage(database: Database, question: str, text: str) -> None:
    fill(database, "PASTE", [File("a.txt", [text]), File("b.txt", ["Something else entirely stands here."])])
    result = search(database, "PASTE", question, None)
    assert result.passages, result.diagnostic
    assert result.passages[0].source == "a.txt"


def test_a_question_of_stop_words_is_answered_by_vectors_alone(database: Database) -> None:
    fill(database, "STOP", [File("a.txt", ["The Who played in Leeds."])])
    result = search(database, "STOP", "the who", HashEmbedder())
    assert [p.source for p in result.passages] == ["a.txt"]
    assert [d.arm for d in result.degraded] == ["lexical"]


def _diagnostic(database: Database, name: str, query: str, embedder: HashEmbedder | None, **options: Any) -> str:
    result = search(database, name, query, embedder, SearchOptions(**options))
    assert result.passages == ()
    assert result.diagnostic is not None
    return result.diagnostic


def test_an_empty_collection_is_named_with_what_fills_it(database: Database) -> None:
    fill(database, "EMPTY", [])
    found = _diagnostic(database, "EMPTY", "refunds", HashEmbedder())
    assert found == "Collection EMPTY is empty: `kb ingest EMPTY PATH` fills it."


def test_a_collection_of_retired_passages_is_named(database: Database) -> None:
    fill(database, "RETIRED", [File("a.txt", ["Refunds are paid.", "Fees too."], retired=True)])
    assert _diagnostic(database, "RETIRED", "refunds", HashEmbedder()) == "All 2 passages of RETIRED are retired."


def test_words_that_stand_nowhere_are_counted_and_the_missing_arm_named_with_its_reason(database: Database) -> None:
    fill(database, "OTHER", [File("a.txt", ["Refunds are paid."])])
    down = HashEmbedder()
    down.lost_after = 0
    start = "Nothing found in OTHER: none of its 2 terms stands in the 1 passages; the dense arm did not run "
    assert _diagnostic(database, "OTHER", "zebra quagga", down) == start + "(the hash embedder is switched off)."
    assert _diagnostic(database, "OTHER", "zebra quagga", None) == start + "(no embedder was asked for)."
    alone = _diagnostic(database, "OTHER", "zebra quagga", None, fusion="lexical")
    assert alone == start + "(the search is by words alone)."


def test_a_question_of_stop_words_without_an_embedder_is_named(database: Database) -> None:
    fill(database, "STOPS", [File("a.txt", ["Refunds are paid."])])
    for query in ("what is it", "the who", "🚀"):
        found = _diagnostic(database, "STOPS", query, None)
        assert found.startswith("Nothing found in STOPS: the question holds only stop words or symbols; the dense arm")


def test_passages_without_vectors_and_without_the_words_are_named(database: Database) -> None:
    collection = fill(database, "BARE", [File("a.txt", ["Refunds are paid."])])
    with database.owner(collection.schema_name) as connection:
        connection.execute("UPDATE chunks SET embedding = NULL")
    found = _diagnostic(database, "BARE", "zebra", HashEmbedder())
    assert found.endswith("none of its 1 terms stands in the 1 passages; no passage has a vector.")
    assert _diagnostic(database, "BARE", "refunds", HashEmbedder(), fusion="dense").endswith(
        ": no passage has a vector."
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Filters(sources=("x/*",)), "the filter (source x/*) leaves none of 2 passages"),
        (Filters(phrases=("paid refunds",)), 'the filter (phrase "paid refunds") leaves none of 2 passages'),
        (Filters(exclude=("paid",)), 'the filter (without "paid") leaves none of 2 passages'),
        (
            Filters(sources=("a*",), exclude=("refunds", "fees")),
            'the filter (source a*, without "refunds", without "fees") leaves none of 2 passages'
            ' (alone: source a*: 2, without "refunds": 1, without "fees": 1)',
        ),
    ],
    ids=str,
)
def test_a_filter_that_leaves_nothing_is_named_with_what_each_condition_leaves(
    database: Database, asked: Filters, said: str
) -> None:
    fill(database, "FILTER", [File("a.txt", ["Refunds are paid.", "Fees are paid."])])
    found = _diagnostic(database, "FILTER", "refunds", HashEmbedder(), filters=asked)
    assert found == f"Nothing found in FILTER: {said}."


def test_a_filter_that_leaves_passages_without_the_words_is_named_with_their_number(database: Database) -> None:
    fill(database, "SOME", [File("a.txt", ["Refunds are paid."]), File("b.txt", ["Fees are paid."])])
    found = _diagnostic(database, "SOME", "refunds", None, filters=Filters(sources=("b*",)))
    assert found.startswith(
        "Nothing found in SOME: the filter (source b*) leaves 1 of 2 passages; none of its 1 terms stands in them; "
    )


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\r", "\x00", "\t"])
def test_spaces_of_every_kind_part_the_words_of_a_question(database: Database, space: str) -> None:
    fill(database, "SPACES", [File("a.txt", ["The escape ladder is named Jacob."])])
    assert search(database, "SPACES", f"escape{space}named", None).passages


def test_a_code_alone_brings_the_passages_that_hold_it_before_its_neighbours(database: Database) -> None:
    holders = [File(f"h{n}.txt", [f"Section {n} of the manual mentions NW-4021 among other things."]) for n in range(3)]
    others = [File(f"o{n}.txt", [f"Code NW-{4100 + n} and code NW-{4200 + n}: decisions."]) for n in range(20)]
    fill(database, "HOLD", [*others, *holders])
    for query in ("NW-4021", "nw 4021", "what is code NW4021"):
        found = [p.source for p in search(database, "HOLD", query, HashEmbedder()).passages[:3]]
        assert sum(source.startswith("h") for source in found) >= 2, (query, found)
        assert found[0].startswith("h")


@pytest.mark.parametrize("query", ["", "  \n\t", "\x00\x00"])
def test_a_blank_question_is_refused_by_name(database: Database, query: str) -> None:
    with pytest.raises(InvalidArgument, match="query"):
        search(database, "ANY", query, None)


def test_a_question_over_the_limit_is_refused_with_both_numbers(database: Database) -> None:
    with pytest.raises(InvalidArgument, match="has 5000 characters; at most 4000"):
        search(database, "ANY", "x" * 5000, None)


@pytest.mark.parametrize("name", ["nope", "", " kb ", "kb; drop table x"])
def test_an_unknown_collection_is_refused_with_the_names_there_are(database: Database, name: str) -> None:
    fill(database, "KNOWN", [])
    with pytest.raises(UnknownCollection) as caught:
        search(database, name, "x", None)
    assert caught.value.details["known"] == ["KNOWN"]


def test_vectors_of_another_model_are_refused_with_the_cure(database: Database) -> None:
    fill(database, "MODEL", [File("a.txt", ["Refunds."])])
    with pytest.raises(ContractMismatch, match="digest is 'other'"):
        search(database, "MODEL", "refunds", HashEmbedder(digest="other"))


def test_a_change_is_seen_at_once_and_the_old_text_is_gone(database: Database) -> None:
    collection = fill(database, "CHANGE", [File("a.txt", ["The ferry costs ninepence."])])
    put(database, collection, File("a.txt", ["The ferry costs a shilling."]))
    assert not search(database, "CHANGE", "ninepence", None).passages
    assert search(database, "CHANGE", "shilling", None).passages


def test_the_trace_tells_how_a_result_came_about_and_psql_can_run_it_again(database: Database) -> None:
    collection = fill(database, "TRACE", [File("a.txt", ["The ferry's costs: ninepence."])])
    result = search(database, "TRACE", "ferry's cost", HashEmbedder())
    kept = trace.get_trace(database, collection.schema_name, result.trace_id[:8])
    assert kept["query"] == "ferry's cost"
    assert [p["chunk_id"] for p in kept["passages"]] == ["a.txt::0"]
    assert kept["candidates"] == {"dense": 1, "lexical": 1, "folded": 0}
    assert {t[0] for t in kept["terms"]} == {"ferri", "cost"}
    script = trace.psql_script(kept, collection.schema_name)
    assert re.search(r"\\set tsquery '\\'cost\\' \| \\'ferri\\''", script)
    assert trace.list_traces(database, collection.schema_name)[0]["trace_id"] == kept["trace_id"]


def test_a_search_answers_where_no_trace_can_be_written(database: Database) -> None:
    collection = fill(database, "REPLICA", [File("a.txt", ["The ferry."])])
    with database.owner(collection.schema_name) as connection:
        connection.execute("ALTER TABLE searches RENAME TO elsewhere")
    result = search(database, "REPLICA", "ferry", HashEmbedder())
    assert result.passages
    assert [d.arm for d in result.degraded] == ["trace"]


# -- isolation --------------------------------------------------------------------------------------------------


@pytest.fixture
def two(database: Database) -> tuple[Collection, Collection]:
    return fill(database, "ONE", [File("a.txt", ["Ours."])]), fill(database, "TWO", [File("b.txt", ["Theirs."])])


def test_searches_log_in_as_the_collections_reader(database: Database, two: tuple[Collection, Collection]) -> None:
    one, _ = two
    with database.reader(one.reader_role, one.schema_name) as connection:
        row = connection.execute("SELECT session_user, current_user").fetchone()
    assert row == (one.reader_role, one.reader_role)


@pytest.mark.parametrize(
    "statement",
    [
        'SELECT * FROM "kb_two".chunks',
        'SELECT * FROM "kb_one".searches',
        "SELECT * FROM kb.collections",
        "SELECT * FROM kb.vector_cache",
        "CREATE TABLE public.x (y int)",
    ],
)
def test_a_reader_sees_nothing_but_its_own_passages(
    database: Database, two: tuple[Collection, Collection], statement: str
) -> None:
    one, _ = two
    with (
        pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)),
        database.reader(one.reader_role, one.schema_name) as connection,
    ):
        connection.execute(statement)  # type: ignore[call-overload]


def test_a_reader_cannot_become_another_role_inside_a_select(
    database: Database, two: tuple[Collection, Collection]
) -> None:
    one, other = two
    with database.owner() as connection:
        owner = connection.execute("SELECT current_user").fetchone()
    assert owner is not None
    for role in (other.reader_role, owner[0]):
        inner = f"SELECT tsv FROM kb_two.chunks WHERE set_config('role', '{role}', false) IS NOT NULL"
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege),
            database.reader(one.reader_role, one.schema_name) as connection,
        ):
            connection.execute("SELECT * FROM ts_stat(%s)", (inner,))
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege),
            database.reader(one.reader_role, one.schema_name) as connection,
        ):
            connection.execute("SELECT set_config('role', %s, false)", (role,))


def test_a_host_with_another_secret_is_told_how_to_mend_it(
    database: Database, two: tuple[Collection, Collection], server: object
) -> None:
    one, _ = two
    trusting = "the embedded test server trusts its superuser alone"
    with Database(database.dsn, b"another secret") as stranger:
        with pytest.raises(ReaderLoginFailed, match="cannot log in") as caught:
            search(stranger, one.name, "ours", None)
        assert "kb db roles" in caught.value.hint, trusting


def test_dropping_a_collection_leaves_no_schema_and_no_role(
    database: Database, two: tuple[Collection, Collection]
) -> None:
    one, _ = two
    search(database, "ONE", "ours", None)
    drop_collection(database, "one")
    with database.owner() as connection:
        left = connection.execute(
            "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = %s),"
            " (SELECT count(*) FROM pg_roles WHERE rolname = %s)",
            (one.schema_name, one.reader_role),
        ).fetchone()
    assert left == (0, 0)
    create_collection(database, "ONE", HashEmbedder().identity())


def test_migration_state_is_checked_when_opened(database: Database) -> None:
    with database.owner() as connection:
        assert db.current_revision(connection) == db.head_revision()
