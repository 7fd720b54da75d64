"""Filters against a real Postgres: what they leave, which copy is shown, and that nothing that fits is missed."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql as psycopg_sql

from agent_server import sql
from agent_server.catalog import Collection, get_collection
from agent_server.db import Database, fetch_one, migrate
from agent_server.errors import InvalidArgument
from agent_server.lexemes import lexical_text
from agent_server.retrieval import candidates, filters, lexical, trace
from agent_server.retrieval.candidates import Run, SearchOptions
from agent_server.retrieval.filters import Filters
from agent_server.retrieval.search import search
from ops.bench import clusters
from tests.conftest import SECRET, Builder, Server
from tests.corpus import File, fill
from tests.hash_embedder import HashEmbedder

FILES = [
    File(
        "rules/fees.md",
        ["The mooring fee is due in spring.", "A late mooring fee costs nine pence a day."],
        1.0,
        heading="Harbor Rules > Fees",
        media_type="text/markdown",
        dated=date(2024, 3, 1),
        metadata={"audience": ["branches", "desk"], "year": 2024, "draft": False},
    ),
    File(
        "rules/old/fees.md",
        ["The mooring fee was once due in autumn."],
        0.7,
        heading="Harbor Rules > Fées abolies",
        media_type="text/markdown",
        dated=date(1999, 12, 31),
        metadata={"audience": "desk", "year": "1999"},
    ),
    File(
        "guides/mooring.pdf",
        ["Our guide to the mooring fee, with photographs."],
        0.1,
        heading="Guide > Boats",
        media_type="application/pdf",
        metadata={"title": 'a "quoted" && field'},
    ),
    File("a[1].md", ["A mooring fee in a file with an odd name."], media_type="text/markdown"),
]


def _filtered(database: Database) -> Collection:
    return fill(database, "FILTERED", FILES)


@pytest.fixture(scope="session")
def stock() -> Builder:
    return _filtered


@pytest.fixture
def collection(database: Database) -> Collection:
    with database.owner() as connection:
        return get_collection(connection, "FILTERED")


def _sources(database: Database, asked: Filters, query: str = "mooring fee", **options: Any) -> set[str]:
    """Sources found, which must be the same for each arm alone and for both."""
    name = options.pop("name", "FILTERED")
    found = [
        {p.source for p in search(database, name, query, HashEmbedder(), _options(asked, fusion)).passages}
        for fusion in ("rrf", "score", "dense", "lexical")
    ]
    assert all(f == found[0] for f in found), found
    return found[0]


def _options(asked: Filters, fusion: Any = None, top_k: int = 10) -> SearchOptions:
    return SearchOptions(top_k=top_k, fusion=fusion, filters=asked)


ALL = {f.source for f in FILES}


@pytest.mark.parametrize(
    ("asked", "sources"),
    [
        (Filters(), ALL),
        (Filters(sources=("rules/*.md",)), {"rules/fees.md"}),
        (Filters(sources=("rules/**",)), {"rules/fees.md", "rules/old/fees.md"}),
        (Filters(sources=("**/fees.md",)), {"rules/fees.md", "rules/old/fees.md"}),
        (Filters(sources=("guides/*", "rules/*")), {"rules/fees.md", "guides/mooring.pdf"}),
        (Filters(sources=("rules/fees.m?",)), {"rules/fees.md"}),
        (Filters(sources=("a[1].md",)), {"a[1].md"}),
        (Filters(sources=("**",)), ALL),
        (Filters(heading="harbor rules"), {"rules/fees.md", "rules/old/fees.md"}),
        (Filters(heading="FEES ABOLIES"), {"rules/old/fees.md"}),
        (Filters(heading="re\u0301gle"), set()),
        (Filters(min_authority=0.7), {"rules/fees.md", "rules/old/fees.md"}),
        (Filters(min_authority=0.0), ALL),
        (Filters(media_types=("application/pdf",)), {"guides/mooring.pdf"}),
        (Filters(media_types=("TEXT/*",)), ALL - {"guides/mooring.pdf"}),
        (Filters(since=date(2024, 3, 1)), {"rules/fees.md"}),
        (Filters(until=date(1999, 12, 31)), {"rules/old/fees.md"}),
        (Filters(since=date(1999, 1, 1), until=date(2024, 3, 1)), {"rules/fees.md", "rules/old/fees.md"}),
        (Filters(fields=(("audience", "desk"),)), {"rules/fees.md", "rules/old/fees.md"}),
        (Filters(fields=(("audience", "branches"),)), {"rules/fees.md"}),
        (Filters(fields=(("year", "2024"), ("audience", "desk"))), {"rules/fees.md"}),
        (Filters(fields=(("year", "1999"),)), {"rules/old/fees.md"}),
        (Filters(fields=(("draft", "false"),)), {"rules/fees.md"}),
        (Filters(fields=(("title", 'a "quoted" && field'),)), {"guides/mooring.pdf"}),
        (Filters(fields=(('audience" == 1 || "x', "y"),)), set()),
        (Filters(sources=("rules/**",), since=date(2020, 1, 1), heading="fees", exclude=("photographs",)),
         {"rules/fees.md"}),
    ],
    ids=lambda value: (str(sorted(value)) if isinstance(value, set) else str(value)) or "none",
)  # fmt: skip
def test_a_filter_leaves_what_it_says_in_both_arms(
    database: Database, collection: Collection, asked: Filters, sources: set[str]
) -> None:
    assert _sources(database, asked) == sources


@pytest.mark.parametrize(
    ("phrase", "sources"),
    [
        ("mooring fee", ALL),
        ("fee mooring", set()),
        ("late mooring", {"rules/fees.md"}),
        ("FEE is DUE", {"rules/fees.md"}),
        ("fee was once due", {"rules/old/fees.md"}),
        ("nine day", set()),
        ("' | 'mooring' & !'fee", ALL),
    ],
)
def test_a_phrase_is_words_side_by_side_in_their_order(
    database: Database, collection: Collection, phrase: str, sources: set[str]
) -> None:
    assert _sources(database, Filters(phrases=(phrase,))) == sources


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("code NW4021 applies", "The code NW-4021 applies here."),
        ("NW 4021 applies", "The code NW-4021 applies here."),
        ("C++ compiler", "Use the C++ compiler."),
        ("一个测试", "这是一个测试。"),
        ("使用Docker部署", "使用Docker部署"),
        ("menu of the café", "The menu of the cafe\u0301 is long."),
    ],
)
def test_a_phrase_holds_codes_signs_accents_and_scripts_without_spaces(
    database: Database, phrase: str, text: str
) -> None:
    decoys = [
        *("Apply code 4021 of NW here.", "The code NW-4022 applies here.", "Use the C compiler.", "测试一个这是。"),
        *("部署Docker使用", "The cafe has a menu."),
    ]
    fill(database, "PHRASE", [File("a.txt", [text]), *(File(f"d{n}.txt", [t]) for n, t in enumerate(decoys))])
    assert _sources(database, Filters(phrases=(phrase,)), phrase, name="PHRASE") == {"a.txt"}


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (("guide",), ALL - {"guides/mooring.pdf"}),
        (("photograph", "autumn"), {"rules/fees.md", "a[1].md"}),
        (("odd name",), ALL - {"a[1].md"}),
        (("name odd",), ALL),
    ],
)
def test_excluded_words_leave_passages_out_of_both_arms(
    database: Database, collection: Collection, exclude: tuple[str, ...], left: set[str]
) -> None:
    assert _sources(database, Filters(exclude=exclude)) == left


@pytest.mark.parametrize("field", ["phrases", "exclude"])
@pytest.mark.parametrize("value", ["the of", "🚀 !", "测"])
def test_words_that_cannot_be_looked_for_are_refused_by_name(
    database: Database, collection: Collection, field: str, value: str
) -> None:
    with pytest.raises(InvalidArgument, match=field):
        search(database, "FILTERED", "fee", None, _options(replace(Filters(), **{field: (value,)})))


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (Filters(sources=(" ",)), "sources"),
        (Filters(sources=("x" * 1001,)), "sources"),
        (Filters(sources=("x",) * 101), "sources"),
        (Filters(heading="\0"), "heading"),
        (Filters(min_authority=1.5), "min_authority"),
        (Filters(min_authority=float("nan")), "min_authority"),
        (Filters(since=date(2024, 1, 2), until=date(2024, 1, 1)), "since"),
        (Filters(fields=(("", "x"),)), "fields"),
        (Filters(fields=(("a", "x"), ("a", "y"))), "fields"),
        (Filters(exclude=("\ud800",)), "exclude"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_by_name(database: Database, asked: Filters, named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        search(database, "ANY", "fee", None, _options(asked))
    assert caught.value.field == named


@pytest.mark.parametrize("text", ["audience", "=x", "a=", " = "])
def test_a_field_is_a_key_and_a_value(text: str) -> None:
    with pytest.raises(InvalidArgument, match="key=value"):
        filters.parse_field(text)


def test_a_field_and_a_day_are_read_from_text() -> None:
    assert filters.parse_field(" audience = a=b ") == ("audience", "a=b")
    assert filters.parse_day("since", "2024-02-29") == date(2024, 2, 29)
    with pytest.raises(InvalidArgument, match="since"):
        filters.parse_day("since", "2023-02-29")


def test_an_empty_answer_names_the_filter_and_how_many_passages_it_left(
    database: Database, collection: Collection
) -> None:
    none = search(database, "FILTERED", "fee", HashEmbedder(), _options(Filters(sources=("x/*",), heading="fees")))
    assert (none.diagnostic or "").endswith(
        "the filter (source x/*, heading fees) leaves none of 5 passages (alone: source x/*: none, heading fees: 3)."
    )
    some = search(database, "FILTERED", "zebra", None, _options(Filters(since=date(2024, 1, 1))))
    assert "the filter (since 2024-01-01) leaves 2 of 5 passages" in (some.diagnostic or "")
    assert "none of its 1 terms stands in them" in (some.diagnostic or "")


# -- copies -----------------------------------------------------------------------------------------------------

SHARED = "The mooring fee is due in spring, and a late fee costs nine pence."


@pytest.fixture
def copies(database: Database) -> Collection:
    return fill(
        database,
        "COPIES",
        [
            File("rules/a.txt", [SHARED], 1.0, heading="Harbor dues"),
            File("guides/b.txt", [SHARED], 0.4, heading="Lighthouse"),
            File("guides/c.txt", [SHARED], 0.1, heading="Customs"),
            File("gone/d.txt", [SHARED], 0.1, retired=True),
            File("guides/e.txt", ["Something else about a fee."], 0.1, heading="Customs"),
        ],
    )


@pytest.mark.parametrize("fusion", ["rrf", "score", "dense", "lexical"])
def test_a_folded_passage_is_found_by_any_copy_that_fits_and_that_copy_is_shown(
    database: Database, copies: Collection, fusion: str
) -> None:
    for pattern, shown in (("rules/*", "rules/a.txt"), ("guides/*", "guides/b.txt"), ("guides/c*", "guides/c.txt")):
        found = search(
            database, "COPIES", "late mooring fee", HashEmbedder(), _options(Filters(sources=(pattern,)), fusion)
        ).passages
        same = [p for p in found if p.text == SHARED]
        assert [p.source for p in same] == [shown]
        assert found[0] is same[0]
        assert set(same[0].also_in) == {f"{s}::0" for s in ("rules/a.txt", "guides/b.txt", "guides/c.txt")} - {
            f"{shown}::0"
        }
        assert same[0].dense_score == pytest.approx(found[0].dense_score) if fusion != "lexical" else True


def test_a_copy_is_found_by_its_own_words_and_weighed_with_its_own_authority(
    database: Database, copies: Collection
) -> None:
    guides = Filters(sources=("guides/*",))
    by_heading = search(database, "COPIES", "lighthouse", None, _options(guides)).passages
    assert [(p.source, round(p.authority, 1)) for p in by_heading] == [("guides/b.txt", 0.4)]
    # The word stands above the copy in rules alone, which the filter leaves out.
    assert not search(database, "COPIES", "harbor", None, _options(guides)).passages


def test_a_retired_copy_never_stands_for_a_passage(database: Database, copies: Collection) -> None:
    assert not search(database, "COPIES", "fee", HashEmbedder(), _options(Filters(sources=("gone/*",)))).passages


def test_near_copies_are_folded_into_one_that_the_filter_leaves(database: Database) -> None:
    paragraph = (
        "A member whose application was refused may ask for another look at it within forty-five days of the letter, "
        "at any branch and without a fee; a second officer reads the whole file again."
    )
    files = [
        File(f"{folder}/m{n}.txt", [f"{paragraph}\n\nNote {n} of the {folder} folder, {word}."], authority)
        for folder, authority in (("rules", 1.0), ("memos", 0.1))
        for n, word in enumerate(("alder", "birch", "cedar"))
    ]
    fill(database, "NEAR", files)
    found = search(
        database, "NEAR", "second officer reads file", HashEmbedder(), _options(Filters(sources=("memos/*",)))
    ).passages
    assert [p.source.split("/")[0] for p in found] == ["memos"]


# -- nothing that fits is missed --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(server: Server) -> Iterator[tuple[Database, clusters.Made]]:
    """2,000 made rows whose folders follow the content."""
    name = psycopg_sql.Identifier("kb_test_filters")
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(psycopg_sql.SQL("DROP DATABASE IF EXISTS {}").format(name))
        admin.execute(psycopg_sql.SQL("CREATE DATABASE {}").format(name))
    with Database(server.dsn("kb_test_filters"), SECRET) as database:
        migrate(database)
        made = clusters.make(database, "MADE", rows=2000, dimensions=32, seed=8)
        yield database, made
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(psycopg_sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        admin.execute(psycopg_sql.SQL("DROP ROLE {}").format(psycopg_sql.Identifier(made.collection.reader_role)))


def _compare(database: Database, made: clusters.Made, count: int) -> dict[str, list[float]]:
    """Recall of the first ten by name of the filter, asserting that ten come back whenever ten fit."""
    embedder = clusters.Given(made.vectors.shape[1])
    ids = np.array([f"{s}::{n % clusters.ROWS_A_FILE}" for n, s in enumerate(made.sources)])
    stored = made.vectors.astype(np.float16).astype(np.float32)
    asked = [("none", Filters(), np.ones(len(ids), bool))]
    asked += [(f"path {s}", *clusters.by_path(made, s)) for s in clusters.SHARES]
    asked += [(f"lot {s}", *clusters.by_lot(made, s)) for s in clusters.SHARES]
    recalls: dict[str, list[float]] = {}
    for n, vector in enumerate(clusters.questions(made, count, np.random.default_rng(2))):
        question = f"word{n + 2} topic{n}w{n}"
        embedder.known[question] = vector
        for name, chosen, left in asked:
            rows = np.flatnonzero(left)
            if not len(rows):
                continue
            nearest = ids[rows[np.argsort(-(stored[rows] @ vector), kind="stable")[:10]]]
            for fusion in ("dense", "rrf"):
                found = search(database, "MADE", question, embedder, _options(chosen, fusion)).passages
                assert len(found) == min(10, len(rows)), (name, fusion, question)
                assert {p.chunk_id for p in found} <= set(ids[rows]), name
                if fusion == "dense":
                    recalls.setdefault(name, []).append(len({p.chunk_id for p in found} & set(nearest)) / len(nearest))
    return recalls


def test_ten_hits_come_back_whenever_ten_fit_and_they_are_the_nearest(
    small: tuple[Database, clusters.Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, made = small
    monkeypatch.setattr(filters, "EXACT_PASSAGES", 150)  # else all of these would be searched exactly
    monkeypatch.setattr(candidates, "MAX_EF_SEARCH", 200)
    recalls = _compare(database, made, 4)
    assert len(recalls) >= 9
    assert all(np.mean(r) >= 0.95 for r in recalls.values()), recalls


@pytest.mark.full
def test_ten_hits_come_back_whenever_ten_of_50000_fit_and_they_are_the_nearest(database: Database) -> None:
    recalls = _compare(database, clusters.make(database, "MADE", rows=50_000, dimensions=32, seed=8), 15)
    assert len(recalls) == 11
    assert all(np.mean(r) >= 0.95 for r in recalls.values()), recalls


def test_the_index_is_asked_where_much_is_left_and_vectors_are_compared_where_little_is(
    small: tuple[Database, clusters.Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, made = small
    monkeypatch.setattr(filters, "EXACT_PASSAGES", 200)
    monkeypatch.setattr(candidates, "MAX_EF_SEARCH", 80)  # as a collection of many more rows would see it
    embedder = clusters.Given(32)

    def exact(asked: Filters, vector: Any) -> bool:
        embedder.known["q"] = vector
        result = search(database, "MADE", "q", embedder, _options(asked, "dense"))
        return "exact" in trace.get_trace(database, made.collection.schema_name, result.trace_id)["variables"]

    half, _ = clusters.by_path(made, 0.5)
    assert not exact(half, made.centres[3])
    assert exact(half, made.centres[-3])  # far from all that the filter leaves: the index brings none of it
    assert exact(clusters.by_lot(made, 0.05)[0], made.centres[3])
    assert not exact(Filters(), made.centres[3])


def test_a_starved_index_is_followed_by_an_exact_search_without_a_filter_too(database: Database) -> None:
    made = clusters.make(database, "MADE", rows=1000, dimensions=32, seed=8)
    with database.owner(made.collection.schema_name) as connection:
        # Nearly everything is gone, nothing was vacuumed, and the scan ends among dead entries.
        connection.execute("DELETE FROM chunks WHERE source !~ 'c19[0-9]/'")
        connection.execute("SELECT '[1]'::vector")
        role = psycopg_sql.Identifier(made.collection.reader_role)
        connection.execute(psycopg_sql.SQL("ALTER ROLE {} SET hnsw.max_scan_tuples = 1").format(role))
    embedder = clusters.Given(32)
    embedder.known["q"] = made.centres[3]
    result = search(database, "MADE", "q", embedder, _options(Filters(), "dense"))
    assert len(result.passages) == 10
    assert "exact" in trace.get_trace(database, made.collection.schema_name, result.trace_id)["variables"]


def test_two_phases_rank_like_all_passages_under_a_filter(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    words = [f"w{n}" for n in range(40)]
    passages = [
        " ".join(w for n, w in enumerate(words) for _ in range(rng.randint(1, 3)) if rng.random() < 3 / (n + 3))
        + f" end{n}"
        for n in range(1200)
    ]
    # The last passages of the first files stand in copies/ again: there they stand for the first.
    collection = fill(
        database,
        "TWO",
        [
            *(File(f"{'even' if n % 200 else 'odd'}/{n}.txt", passages[n : n + 100], 0.5) for n in range(0, 1200, 100)),
            File("copies/x.txt", passages[50:150], 0.1),
        ],
    )
    monkeypatch.setattr(lexical, "BUDGET_PASSAGES", 60)
    pruned = 0
    for asked in (Filters(sources=("even/*",)), Filters(sources=("odd/*", "copies/*")), Filters(exclude=("w3",))):
        run = Run(collection, SearchOptions(top_k=10, candidates=20, filters=asked))
        with database.reader(collection.reader_role, collection.schema_name) as connection:
            candidates.set_session(connection, run)
            run.filters = filters.variables(connection, "english", asked)
            for _ in range(40):
                question = lexical_text(" ".join(rng.sample(words[:25], rng.choice([1, 2, 3, 5]))), question=True)
                run.lexical = lexical.NO_QUERY
                run.lexical = candidates.plan_lexical(connection, run, question)
                pruned += run.lexical.tsquery != lexical.any_of(run.lexical.terms)
                got = [c.lexical_score for c in candidates.hybrid(connection, run)]
                run.lexical = replace(run.lexical, tsquery=lexical.any_of(run.lexical.terms))
                everything = [c.lexical_score for c in candidates.hybrid(connection, run)]
                assert sorted(got) == pytest.approx(sorted(everything), abs=1e-3)
    assert pruned > 40


# -- statements -------------------------------------------------------------------------------------------------

FILTERED = ("hybrid", "lexical_probe", "filter_count", "expand", "explain_fit", "explain_ranks")
CONDITIONS = ("sources", "min_authority", "media_types", "since", "until", "fields", "heading", "phrase", "exclude")


def test_the_filter_is_the_same_text_in_every_statement() -> None:
    blocks = set()
    for name in FILTERED:
        text = sql.load(name).path.read_text(encoding="utf-8")
        block = re.search(r"^\\if :\{\?of_files\}\nmatched AS .*?^searched AS .*?^\)", text, re.MULTILINE | re.DOTALL)
        assert block is not None, name
        blocks.add(block.group())
    assert len(blocks) == 1
    assert all(f"\\if :{{?{condition}}}" in block.group() for condition in CONDITIONS)


def test_the_copies_that_take_a_place_under_a_filter_are_chosen_alike_by_search_and_explain() -> None:
    blocks = set()
    for name in ("hybrid", "explain_ranks"):
        text = sql.load(name).path.read_text(encoding="utf-8")
        block = re.search(r"^other_copy AS .*?^\)", text, re.MULTILINE | re.DOTALL)
        assert block is not None, name
        blocks.add(block.group())
    assert len(blocks) == 1


@pytest.mark.parametrize("name", FILTERED)
def test_only_the_conditions_in_use_are_in_the_statement(name: str) -> None:
    plain = sql.load(name).values
    assert not set(CONDITIONS) & set(plain)
    for condition in CONDITIONS:
        flags = {"filtered"} | (set() if condition in {"heading", "phrase", "exclude"} else {"of_files"})
        assert set(sql.load(name, given={condition, *flags}).values) - set(plain) == {condition}


def test_the_variables_are_those_of_the_conditions_in_use(database: Database, collection: Collection) -> None:
    with database.owner(collection.schema_name) as connection:
        assert filters.variables(connection, "english", Filters()) == {}
        found = filters.variables(connection, "english", Filters(heading="Fées", exclude=("late mooring", "guides")))
        assert found == {
            "filtered": "on",
            "heading": "fees",
            "exclude": "(('late' <1> 'moor')) | (('guid'))",
        }
        row = fetch_one(connection, "filter_count", {**found, "exact": "on", "share": 1.0, "at_least": 100})
        assert row == {"left": 2, "limit": 100}
