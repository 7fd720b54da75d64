"""hybrid.sql against numbers worked by hand, on a made list of ranks."""

from typing import Any

import pytest

from agent_server.catalog import Collection
from agent_server.db import Database, fetch_all
from agent_server.lexemes import lexical_text
from agent_server.retrieval import lexical
from tests.corpus import File, fill
from tests.hash_embedder import HashEmbedder

# One vector per passage on a circle in two of 64 dimensions: the cosine to the question (1, 0) is chosen here.
COSINES = {"p1": 0.9, "p2": 0.8, "p3": 0.7, "p4": 0.6, "p5": 0.5, "p6": 0.4}
# How often the word "harbor" stands in each: BM25 ranks by it, as all are equally long.
COUNTS = {"p1": 0, "p2": 2, "p3": 0, "p4": 5, "p5": 4, "p6": 3}


@pytest.fixture
def collection(database: Database) -> Collection:
    files = [
        File(
            f"{p}.txt",
            [" ".join(["harbor"] * COUNTS[p] + [f"{p}x{n}" for n in range(6 - COUNTS[p])])],
            _authority(p),
        )
        for p in COSINES
    ]
    made = fill(database, "FUSE", files)
    with database.owner(made.schema_name) as connection:
        for name, cosine in COSINES.items():
            vector = [cosine, (1 - cosine**2) ** 0.5] + [0.0] * 62
            connection.execute(
                "UPDATE chunks SET embedding = %s::halfvec WHERE source = %s", (str(vector), f"{name}.txt")
            )
    return made


def _authority(name: str) -> float:
    return 1.0 if name == "p6" else 0.0


def _run(database: Database, collection: Collection, **changes: Any) -> dict[str, dict[str, Any]]:
    with database.reader(collection.reader_role, collection.schema_name) as connection:
        terms = lexical.fetch_terms(connection, "english", lexical_text("harbor", question=True))
        query = lexical.plan(terms, lambda *_: None)
        values = {
            "vector": str([1.0] + [0.0] * 63),
            "tsquery": query.tsquery,
            "bm25": query.bm25,
            "candidates": 100,
            "keep": 100,
            "fusion": "rrf",
            "rrf_k": 60.0,
            "fusion_weight": 0.5,
            "ranker": "bm25",
            "authority_weight": 0.0,
            "excluded": [],
            "codes": "",
            "code_weight": 2.0,
            "entries": "",
            "others": "{}",
            "others_margin": 0.0,
            "mention_weight": 0.5,
            "dense_before": 0,
            "lexical_before": 0,
        }
        rows = fetch_all(connection, "hybrid", values | changes)
    return {r["chunk_id"].removesuffix(".txt::0"): r for r in rows}


def test_reciprocal_ranks_with_k_60_over_their_greatest_sum(database: Database, collection: Collection) -> None:
    rows = _run(database, collection)
    # dense: p1 p2 p3 p4 p5 p6; lexical: p4 p5 p6 p2
    assert [(r["dense_rank"], r["lexical_rank"]) for _, r in sorted(rows.items())] == [
        (1, None), (2, 4), (3, None), (4, 1), (5, 2), (6, 3),
    ]  # fmt: skip
    assert float(rows["p4"]["score"]) == pytest.approx((1 / 64 + 1 / 61) / (2 / 61))
    assert float(rows["p2"]["score"]) == pytest.approx((1 / 62 + 1 / 64) / (2 / 61))
    assert float(rows["p1"]["score"]) == pytest.approx((1 / 61) / (2 / 61))


def test_with_k_0_one_first_place_beats_two_fourth_places_and_with_k_60_it_does_not(
    database: Database, collection: Collection
) -> None:
    # p4 is dense fourth; its words are taken down to fourth place too.
    with database.owner(collection.schema_name) as connection:
        text = "harbor p4a p4b p4c p4d p4e"
        connection.execute(
            "UPDATE chunks SET tsv = to_tsvector('english', %s), bm25 = bm25_doc(to_tsvector('english', %s), 6)"
            " WHERE source = 'p4.txt'",
            (text, text),
        )
    near = _run(database, collection, rrf_k=0.0)
    assert (near["p4"]["dense_rank"], near["p4"]["lexical_rank"]) == (4, 4)
    assert float(near["p4"]["score"]) == pytest.approx((1 / 4 + 1 / 4) / 2)
    assert float(near["p1"]["score"]) == pytest.approx(1 / 2)
    far = _run(database, collection, rrf_k=60.0)
    assert float(far["p4"]["score"]) == pytest.approx((2 / 64) / (2 / 61))
    assert float(far["p4"]["score"]) > float(far["p1"]["score"])


def test_score_fusion_weighs_min_max_cosine_and_bm25_over_its_best(database: Database, collection: Collection) -> None:
    rows = _run(database, collection, fusion="score", fusion_weight=0.5)
    best = max(float(r["lexical_score"]) for r in rows.values())
    for name, row in rows.items():
        dense = (COSINES[name] - 0.4) / (0.9 - 0.4)
        words = float(row["lexical_score"]) / best
        assert float(row["score"]) == pytest.approx(0.5 * dense + 0.5 * words, abs=2e-3), name
    assert float(rows["p4"]["lexical_score"]) == best


def test_scores_of_both_arms_are_known_for_every_candidate(database: Database, collection: Collection) -> None:
    rows = _run(database, collection, candidates=2)
    assert set(rows) == {"p1", "p2", "p4", "p5"}
    assert rows["p4"]["dense_rank"] is None
    assert float(rows["p4"]["dense_score"]) == pytest.approx(0.6, abs=2e-3)


def test_the_authority_bonus_is_its_weight_times_the_tier(database: Database, collection: Collection) -> None:
    plain, weighed = _run(database, collection), _run(database, collection, authority_weight=0.08)
    assert float(weighed["p6"]["score"]) - float(plain["p6"]["score"]) == pytest.approx(0.08)
    assert weighed["p1"]["score"] == plain["p1"]["score"]


def test_one_arm_alone_is_measured_against_its_own_maximum(database: Database, collection: Collection) -> None:
    words = _run(database, collection, vector="")
    assert float(words["p4"]["score"]) == pytest.approx(1.0)
    assert set(words) == {"p2", "p4", "p5", "p6"}
    dense = _run(database, collection, tsquery="", bm25=lexical.EMPTY_BM25)
    assert float(dense["p1"]["score"]) == pytest.approx(1.0)
    assert dense["p1"]["lexical_score"] is None


def test_without_a_vector_nothing_gets_a_dense_rank(database: Database, collection: Collection) -> None:
    assert all(r["dense_rank"] is None for r in _run(database, collection, vector="").values())


def test_the_same_text_scores_1(database: Database) -> None:
    embedder = HashEmbedder()
    made = fill(database, "SAME", [File("a.txt", ["mooring fees are due in spring"])], embedder)
    vector = str(embedder.embed_query("mooring fees are due in spring").tolist())
    rows = _run(database, made, vector=vector)
    assert float(rows["a"]["dense_score"]) == pytest.approx(1.0, abs=1e-3)


def test_passages_that_hold_a_code_of_the_question_get_a_third_rank(database: Database, collection: Collection) -> None:
    # p5 and p6 hold the code; by BM25 p5 comes first of the two.
    rows = _run(database, collection, codes="'#p5x0' | '#p6x0'", code_weight=0.5)
    greatest = 2 / 61 + 0.5 / 61
    assert float(rows["p5"]["score"]) == pytest.approx((1 / 65 + 1 / 62 + 0.5 / 61) / greatest)
    assert float(rows["p6"]["score"]) == pytest.approx((1 / 66 + 1 / 63 + 0.5 / 62) / greatest)
    assert float(rows["p4"]["score"]) == pytest.approx((1 / 64 + 1 / 61) / greatest)


def test_the_entry_of_a_code_comes_before_the_passages_that_mention_it(
    database: Database, collection: Collection
) -> None:
    # p5 and p6 hold the code, and p6, which BM25 puts behind p5, has the entry.
    rows = _run(database, collection, codes="'#p5x0' | '#p6x0'", entries="'#p6x0'", code_weight=2.0, mention_weight=0.5)
    greatest = 2 / 61 + 2 / 61
    assert float(rows["p6"]["score"]) == pytest.approx((1 / 66 + 1 / 63 + 2 / 61) / greatest)
    assert float(rows["p5"]["score"]) == pytest.approx((1 / 65 + 1 / 62 + 0.5 * 2 / 62) / greatest)


def test_a_passage_with_much_more_of_the_other_words_comes_before_the_entry(
    database: Database, collection: Collection
) -> None:
    coded = {"codes": "'#p5x0' | '#p6x0'", "entries": "'#p6x0'", "code_weight": 2.0, "mention_weight": 0.5}
    greatest = 2 / 61 + 2 / 61
    rows = _run(database, collection, **coded, others="{\"'#p5x0'\": 3.0}", others_margin=2.0)
    assert float(rows["p5"]["score"]) == pytest.approx((1 / 65 + 1 / 62 + 2 / 61) / greatest)
    assert float(rows["p6"]["score"]) == pytest.approx((1 / 66 + 1 / 63 + 0.75 * 2 / 62) / greatest)
    rows = _run(database, collection, **coded, others="{\"'#p5x0'\": 3.0}", others_margin=3.0)
    assert float(rows["p6"]["score"]) == pytest.approx((1 / 66 + 1 / 63 + 2 / 61) / greatest)


def test_ranks_of_a_later_round_go_on_behind_the_earlier_ones(database: Database, collection: Collection) -> None:
    rows = _run(database, collection, dense_before=100, lexical_before=40)
    assert (rows["p1"]["dense_rank"], rows["p4"]["lexical_rank"]) == (101, 41)
