"""The lexical arm: BM25 worked by hand, and two phases that lose nothing."""

import math
import random

import pytest

from agent_server.db import Database, fetch_one
from agent_server.lexemes import lexical_text
from agent_server.retrieval import lexical
from agent_server.retrieval.lexical import Term, combinations, first_phase, plan
from tests.corpus import File, fill


def _term(name: str, ndoc: int, weight: float) -> Term:
    return Term(name, 1, ndoc, hash(name) % 1000 + 1, weight)


def test_idf_is_the_bm25_form_that_is_never_negative() -> None:
    assert lexical.idf(10, 2) == pytest.approx(math.log(1 + 8.5 / 2.5))
    assert lexical.idf(10, 10) > 0
    assert lexical.idf(0, 1) == 0.0


def test_bm25_score_is_the_one_worked_by_hand(database: Database) -> None:
    # Lengths in words that are no stop words: 4, 2, 3; mean 3. "harbor" stands twice in a.txt and once in b.txt.
    files = [
        File("a.txt", ["harbor harbor boats mooring"]),
        File("b.txt", ["harbor lights"]),
        File("c.txt", ["meadow valley brook"]),
    ]
    collection = fill(database, "BM", files)
    with database.reader(collection.reader_role, collection.schema_name) as connection:
        terms = lexical.fetch_terms(connection, "english", lexical_text("harbor", question=True))
        query = plan(terms, lambda *_: None)
        rows = connection.execute(
            "SELECT source, -(bm25 <#> %s::sparsevec) FROM chunks ORDER BY source", (query.bm25,)
        ).fetchall()
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    length = (1 - 0.75) + 0.75 * 4 / 3
    assert rows[0][1] == pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * length), rel=1e-4)
    length = (1 - 0.75) + 0.75 * 2 / 3
    assert rows[1][1] == pytest.approx(idf * 1 * 2.2 / (1 + 1.2 * length), rel=1e-4)
    assert rows[2][1] == 0


def test_identifiers_do_not_lengthen_a_passage(database: Database) -> None:
    collection = fill(database, "LEN", [File("a.txt", ["code NW-4021 applies"])])
    with database.owner(collection.schema_name) as connection:
        row = connection.execute("SELECT length_lexemes(tsv), tsv::text FROM chunks").fetchone()
    assert row is not None
    assert row[0] == 4  # code, nw, 4021, appli
    assert "'#nw4021'" in row[1]


def test_a_term_never_seen_counts_as_seen_once() -> None:
    rows = [{"lexeme": "new", "qtf": 1, "ndoc": None, "dim": 5, "total": 100}]
    assert lexical.make_terms(rows)[0].ndoc == 1


def test_few_passages_are_all_ranked_without_a_probe() -> None:
    def fail(*_: str) -> float:
        raise AssertionError("no probe is needed")

    terms = [_term("rare", 3, 5.0), _term("usual", 900, 2.0)]
    assert plan(terms, fail).tsquery == "'rare' | 'usual'"


def test_common_terms_below_the_threshold_are_asked_for_only_together() -> None:
    terms = [_term("a", 5000, 1.0), _term("b", 6000, 0.9), _term("c", 7000, 0.8)]
    query = combinations(terms, threshold=(lexical.K1 + 1) * 1.75)
    assert query == "'a' & ('b' | 'c')"


def test_a_threshold_that_one_term_reaches_asks_for_it_alone() -> None:
    terms = [_term("a", 5000, 3.0), _term("b", 6000, 1.0)]
    assert combinations(terms, threshold=(lexical.K1 + 1) * 2.0) == "'a'"


def test_one_very_common_term_alone_is_the_whole_query() -> None:
    assert first_phase([_term("all", 50_000, 0.1)]) == ("'all'", ())


def test_too_few_hits_of_the_first_phase_mean_that_every_term_counts() -> None:
    terms = [_term("a", 5000, 1.0), _term("b", 6000, 0.9)]
    assert plan(terms, lambda *_: None).tsquery == "'a' | 'b'"


def test_quotes_and_operators_in_a_lexeme_stay_letters() -> None:
    terms = [_term("it's & | !(\\", 3, 1.0)]
    assert plan(terms, lambda *_: None).tsquery == "'it''s & | !(\\\\'"


WORDS = [f"w{n}" for n in range(60)]


def test_two_phases_rank_like_all_passages_for_questions_of_any_words(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(7)
    # Zipf-like: w0 in nearly every passage, w59 in few.
    passages = [
        " ".join(w for n, w in enumerate(WORDS) for _ in range(rng.randint(1, 3)) if rng.random() < 3 / (n + 3))
        + f" end{i}"
        for i in range(1500)
    ]
    collection = fill(database, "TWO", [File(f"{n}.txt", passages[n : n + 100]) for n in range(0, 1500, 100)])
    monkeypatch.setattr(lexical, "BUDGET_PASSAGES", 60)
    compared = pruned = 0
    with database.reader(collection.reader_role, collection.schema_name) as connection:

        def top(tsquery: str, bm25: str) -> list[float]:
            rows = connection.execute(
                "SELECT -(bm25 <#> %s::sparsevec) FROM chunks WHERE canonical AND tsv @@ %s::tsquery"
                " ORDER BY 1 DESC LIMIT 20",
                (bm25, tsquery),
            )
            return [r[0] for r in rows.fetchall()]

        def probe(tsquery: str, bm25: str) -> float | None:
            values = {"tsquery": tsquery, "bm25": bm25, "depth": 20, "excluded": []}
            row = fetch_one(connection, "lexical_probe", values)
            return None if row is None else float(row["score"])

        for _ in range(120):
            question = " ".join(rng.sample(WORDS[: rng.choice([5, 20, 60])], rng.choice([1, 2, 3, 5])))
            terms = lexical.fetch_terms(connection, "english", lexical_text(question, question=True))
            query = plan(terms, probe)
            everything = lexical.any_of(terms)
            assert top(query.tsquery, query.bm25) == pytest.approx(top(everything, query.bm25), abs=1e-3), question
            compared += 1
            pruned += query.tsquery != everything
    assert compared == 120
    assert pruned > 40


def test_a_very_long_question_is_planned_in_bounded_steps() -> None:
    terms = [_term(f"w{n}", 500 + n, 1.0 + n % 7) for n in range(600)]
    query = combinations(terms, threshold=(lexical.K1 + 1) * 30)
    assert query == lexical.any_of(terms) or query.count("'") <= 2 * lexical.MAX_ALTERNATIVES * lexical.MAX_DEPTH


def test_codes_are_the_rare_identifiers_that_the_collection_knows() -> None:
    terms = [
        Term("#nw4021", 1, 3, 1, 4.0, True, 1000),
        Term("#unseen1", 1, 1, 2, 6.0, False, 1000),
        Term("#in2024", 1, 400, 3, 1.0, True, 1000),
        Term("mean", 1, 90, 4, 2.0, True, 1000),
    ]
    query, entries, share = lexical.codes_of(terms)
    assert (query, entries) == ("'#nw4021'", "")
    assert share == pytest.approx(4 / 7)
    assert lexical.codes_of(terms[1:]) == ("", "", 0.0)
    entry = Term("#=nw4021", 1, 1, 5, 5.0, True, 1000)
    assert lexical.codes_of([*terms, entry])[:2] == ("'#nw4021' | '#=nw4021'", "'#=nw4021'")


def test_the_other_words_of_a_question_are_those_that_are_no_part_of_a_code_with_an_entry() -> None:
    words = [Term(w, 1, 90, n, 9.0, True, 1000) for n, w in enumerate(("nw", "4021", "refus"), 10)]
    code, entry = Term("#nw4021", 1, 3, 1, 4.0, True, 1000), Term("#=nw4021", 1, 1, 5, 5.0, True, 1000)
    assert lexical.others_of([code, entry, *words]) == ("{\"'refus'\": 9.0}", 3.0)
    assert lexical.others_of([code, *words]) == ("{}", 0.0)
