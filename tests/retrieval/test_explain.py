"""`explain`: its figures are those of the search, and every step at which a passage can drop out is named."""

import random
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pytest

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.errors import InvalidArgument, UnknownPassage
from agent_server.retrieval import trace
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.explain import explain
from agent_server.retrieval.explanation import Explained, Explanation
from agent_server.retrieval.filters import Filters
from agent_server.retrieval.search import search
from ops.bench import clusters
from tests.conftest import Builder
from tests.corpus import File, collection_of, fill
from tests.hash_embedder import HashEmbedder
from tests.retrieval.edges import cite, define

PARAGRAPH = (
    "A member whose application was refused may ask for another look at it within forty-five days of the letter, at "
    "any branch and without a fee; a second officer who did not take part in the first decision reads the whole file."
)
WORDS = [f"{a}{b}ro" for a in ("ba", "de", "fi", "go", "lu", "ma", "pe", "ri") for b in ("k", "m", "n", "t", "v")]
FUSIONS: tuple[Any, ...] = ("rrf", "score", "dense", "lexical")


def _explain(
    database: Database,
    name: str,
    query: str,
    *chunk_ids: str,
    options: SearchOptions = SearchOptions(),  # noqa: B008
) -> Explanation:
    return explain(database, name, query, HashEmbedder(), options, chunk_ids)


def _one(
    database: Database,
    name: str,
    query: str,
    chunk_id: str,
    options: SearchOptions = SearchOptions(),  # noqa: B008
) -> Explained:
    (found,) = _explain(database, name, query, chunk_id, options=options).passages
    assert found.chunk_id == chunk_id
    return found


# -- the figures of the search ----------------------------------------------------------------------------------


def _varied(database: Database) -> None:
    """Passages of random words, some with codes, copies, and paragraphs that many files share."""
    rng = random.Random(11)
    files = []
    for n in range(60):
        text = " ".join(rng.choices(WORDS, k=rng.randint(4, 20))) + f" own{n}"
        if n % 4 == 0:
            text += f" under code NW-{4000 + n % 20}"
        if n % 3 == 0:
            text = f"{text}\n\n{PARAGRAPH}"
        folder = "rules" if n % 2 else "guides"
        passages = [
            text,
            " ".join(rng.choices(WORDS, k=8)),
            f"the same words {n // 10} in {WORDS[1]} several {WORDS[2]} files",
        ]
        files.append(File(f"{folder}/f{n}.txt", passages, rng.choice([0.0, 0.4, 1.0]), heading=rng.choice(WORDS[:5])))
    fill(database, "VARIED", files)


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _varied if "varied" in request.fixturenames else None


@pytest.fixture
def varied(database: Database) -> Collection:
    return collection_of(database, "VARIED")


def _assert_same(result: Any, explained: Explanation) -> None:
    """Each shown passage has the search's figures, and they add up."""
    by_id = {p.chunk_id: p for p in explained.passages}
    assert [p.chunk_id for p in explained.passages if p.rank is not None] == [p.chunk_id for p in result.passages]
    for shown in result.passages:
        found = by_id[shown.chunk_id]
        assert found.outcome == ("shown" if shown.via == "search" else "added")
        assert (found.rank, found.authority) == (shown.rank, shown.authority)
        assert found.score == pytest.approx(shown.score, abs=1e-9)
        assert (found.dense.rank, found.lexical.rank) == (shown.dense_rank, shown.lexical_rank)
        if found.fusion is not None:
            assert found.dense.score == shown.dense_score
            if explained.settings["ranker"] == "bm25":  # else the result tells BM25, and this what ranked it
                assert found.lexical.score == shown.lexical_score


def _assert_adds_up(explained: Explanation) -> None:
    for found in explained.passages:
        if found.fusion is not None:
            parts = found.fusion
            assert parts.by_dense + parts.by_lexical + parts.by_code == pytest.approx(parts.fused, abs=1e-12)
            assert parts.score == pytest.approx(parts.fused + parts.bonus) or parts.is_capped
            if explained.settings["ranker"] == "bm25" and found.terms:
                total = sum(t.score for t in found.terms)
                assert total == pytest.approx(found.lexical.score, rel=1e-5, abs=2e-5), found.chunk_id
        for term in found.terms:
            assert (term.score > 0) == (term.tf > 0), term


def _questions(rng: random.Random, count: int) -> list[str]:
    return [
        *(" ".join(rng.sample(WORDS, rng.randint(1, 6))) for _ in range(count)),
        "second officer reads the whole file after a refused application",
        "NW-4004",
        f"what does code NW-4008 say of {WORDS[3]}",
        "the same words 3 in several files",
    ]


def test_explained_figures_are_those_of_the_search_for_any_question_and_setting(
    database: Database, varied: Collection
) -> None:
    rng = random.Random(3)
    asked = [Filters(), Filters(sources=("rules/*",)), Filters(exclude=(WORDS[7],), heading=WORDS[1])]
    seen: set[str] = set()
    for n, question in enumerate(_questions(rng, 12)):
        options = SearchOptions(
            top_k=rng.choice([1, 2, 6, 20]),
            fusion=FUSIONS[n % 4],
            filters=asked[n % 3],
            lexical_ranker="ts_rank_cd" if n % 5 == 4 else None,
            candidates=rng.choice([5, 100]),
        )
        explained = _explain(database, "VARIED", question, options=options)
        _assert_same(search(database, "VARIED", question, HashEmbedder(), options), explained)
        _assert_adds_up(explained)
        seen |= {p.outcome for p in explained.passages}
    assert {"shown", "cut"} <= seen


def test_ranks_counted_without_index_or_limit_are_those_of_the_lists(database: Database, varied: Collection) -> None:
    everything = [f"{'rules' if n % 2 else 'guides'}/f{n}.txt::{k}" for n in range(60) for k in range(3)]
    for asked in (Filters(), Filters(sources=("guides/*",))):
        options = SearchOptions(top_k=100, candidates=500, filters=asked, fold_near_copies=False)
        found = _explain(database, "VARIED", f"{WORDS[1]} {WORDS[2]} {WORDS[3]} NW-4004", *everything, options=options)
        assert found.settings["rounds"] == 1
        listed = 0
        for arm in ("dense", "lexical"):
            for passage in found.passages:
                place = getattr(passage, arm)
                if place.rank is not None:
                    assert place.rank == place.exact_rank, (arm, passage.chunk_id)
                    listed += 1
        assert listed > 100


def test_every_passage_has_one_outcome_and_the_places_are_in_one_order(database: Database, varied: Collection) -> None:
    with database.owner(varied.schema_name) as connection:
        rows = connection.execute("SELECT chunk_id FROM chunks").fetchall()
    options = SearchOptions(top_k=3, candidates=40, filters=Filters(sources=("rules/*",)))
    question = f"{WORDS[1]} {WORDS[5]} second officer reads the whole file"
    found = _explain(database, "VARIED", question, *(r[0] for r in rows), options=options)
    assert len(found.passages) == len(rows)
    outcomes = {p.outcome for p in found.passages}
    assert {"shown", "cut", "folded", "filtered", "copy", "not_found"} <= outcomes
    placed = [p for p in found.passages if p.fused_place is not None and p.fusion is not None]
    by_place = sorted(placed, key=lambda p: p.fused_place or 0)
    assert [p.fused_place for p in by_place] == list(range(1, len(placed) + 1))
    scores = [p.fusion.score for p in by_place if p.fusion]
    assert scores == sorted(scores, reverse=True)
    assert all(p.reason for p in found.passages)


def test_terms_are_told_by_kind_with_their_frequencies_and_weights(database: Database) -> None:
    files = [File("a.txt", ["Order NW-4021 ships; the order is 测试数据."]), File("b.txt", ["Another order waits."])]
    fill(database, "KINDS", files)
    found = _one(database, "KINDS", "order NW-4021 测试 order zebra", "a.txt::0")
    terms = {t.term: t for t in found.terms}
    assert (terms["order"].kind, terms["order"].qtf, terms["order"].tf, terms["order"].ndoc) == ("word", 2, 2, 2)
    assert (terms["#nw4021"].kind, terms["#nw4021"].tf) == ("identifier", 1)
    assert (terms["~测试"].kind, terms["~测试"].tf) == ("bigram", 1)
    assert (terms["zebra"].tf, terms["zebra"].score) == (0, 0.0)
    assert terms["order"].idf < terms["#nw4021"].idf


def test_a_code_has_its_own_rank_and_its_part_of_the_score(database: Database) -> None:
    files = [File("a.txt", ["- NW-4021: the income is too low."]), File("b.txt", ["A letter that mentions NW-4021."])]
    fill(database, "CODE", [*files, File("c.txt", ["Income of another kind."])])
    found = {p.chunk_id: p for p in _explain(database, "CODE", "what does NW-4021 mean").passages}
    entry, mention = found["a.txt::0"].fusion, found["b.txt::0"].fusion
    assert entry is not None
    assert mention is not None
    assert (entry.code_rank, mention.code_rank) == (1, 2)
    assert entry.by_code > mention.by_code > 0


def test_a_bonus_that_is_held_back_is_told(database: Database) -> None:
    good = [File(f"good-{n}.txt", [f"Harbor mooring fee of berth {'and quay ' * n}."]) for n in range(15)]
    weak = File("primary.txt", ["The harbor has a lighthouse, a customs house, a chapel and a long stone pier."], 1.0)
    fill(database, "HELD", [*good, weak])
    # Ranks count for nearly nothing: without the rule the bonus would lift it over all others.
    options = SearchOptions(top_k=20, authority_weight=0.1, rrf_k=1000)
    found = _explain(database, "HELD", "harbor mooring fee berth", options=options).passages
    primary = next(p for p in found if p.chunk_id == "primary.txt::0")
    assert primary.fusion is not None
    assert primary.fusion.bonus == pytest.approx(0.1)
    assert primary.fusion.is_capped
    assert primary.to_json()["fusion"]["capped"]
    agreed = [p for p in found if max(p.dense.rank or 99, p.lexical.rank or 99) <= 3]
    assert agreed
    assert all((p.score or 0) >= (primary.score or 0) for p in agreed)
    assert not any(p.fusion.is_capped for p in agreed if p.fusion)


def test_nothing_is_recorded(database: Database, varied: Collection) -> None:
    _explain(database, "VARIED", WORDS[1])
    assert trace.list_traces(database, varied.schema_name) == []


def test_a_passage_that_is_not_there_is_named(database: Database, varied: Collection) -> None:
    with pytest.raises(UnknownPassage, match=r"'nowhere\.txt::7'"):
        _explain(database, "VARIED", WORDS[1], "nowhere.txt::7")
    assert explain(database, "VARIED", WORDS[1], None, chunk_ids=["nowhere.txt::7"], must_exist=False).passages == ()


def test_a_question_that_cannot_be_searched_cannot_be_explained(database: Database, varied: Collection) -> None:
    with pytest.raises(InvalidArgument, match="query"):
        _explain(database, "VARIED", "  ")


# -- where passages drop out ------------------------------------------------------------------------------------


def test_shown_and_the_next_few_are_explained_in_the_order_of_their_places(database: Database) -> None:
    fill(database, "NEXT", [File(f"f{n:02}.txt", [f"harbor quay {n}"]) for n in range(20)])
    found = _explain(database, "NEXT", "harbor quay", options=SearchOptions(top_k=3, fusion="lexical")).passages
    assert [p.rank for p in found] == [1, 2, 3, None, None, None, None, None]
    assert [p.folded_place for p in found] == list(range(1, 9))
    assert {p.outcome for p in found[3:]} == {"cut"}
    assert found[3].reason == "place 4 after folding, and 3 are shown"


def test_a_retired_passage(database: Database) -> None:
    fill(database, "DROP", [File("old.txt", ["Refunds are paid."], retired=True), File("new.txt", ["Refunds go out."])])
    found = _one(database, "DROP", "refunds", "old.txt::0")
    assert (found.outcome, found.rank, found.dense.rank) == ("retired", None, None)
    assert found.dense.why == "it is not searched"


def test_a_copy_names_the_passage_that_stands_for_it(database: Database) -> None:
    text = "The mooring fee is due in spring."
    files = [File("rules/a.txt", [text], 1.0), File("guides/b.txt", [text], 0.4), File("guides/c.txt", [text], 0.1)]
    fill(database, "COPY", files)
    found = _one(database, "COPY", "mooring fee", "guides/b.txt::0")
    assert (found.outcome, "rules/a.txt::0" in found.reason) == ("copy", True)
    # A filter that leaves the copies: the best of them is searched, and stands for the other.
    guides = SearchOptions(filters=Filters(sources=("guides/*",)))
    by_id = {
        p.chunk_id: p
        for p in _explain(
            database, "COPY", "mooring fee", "rules/a.txt::0", "guides/b.txt::0", "guides/c.txt::0", options=guides
        ).passages
    }
    assert by_id["rules/a.txt::0"].outcome == "filtered"
    assert (by_id["guides/b.txt::0"].outcome, by_id["guides/b.txt::0"].dense.exact_rank) == ("shown", 1)
    assert by_id["guides/c.txt::0"].reason == "its text is searched as guides/b.txt::0, which stands for all copies"


FILTERED = File(
    "rules/fees.md", ["The mooring fee is due in spring."], 0.4, heading="Harbor", media_type="text/markdown",
    metadata={"audience": "desk"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Filters(sources=("guides/*",)), "source guides/*"),
        (Filters(heading="lighthouse"), "heading lighthouse"),
        (Filters(min_authority=0.7), "authority at least 0.7"),
        (Filters(media_types=("application/pdf",)), "media type application/pdf"),
        (Filters(fields=(("audience", "branches"),)), "audience = branches"),
        (Filters(phrases=("fee mooring",)), 'phrase "fee mooring"'),
        (Filters(exclude=("spring",)), 'without "spring"'),
        (Filters(sources=("rules/*",), phrases=("mooring fee", "fee spring"), exclude=("spring", "autumn")),
         'phrase "fee spring", without "spring"'),
    ],
    ids=str,
)  # fmt: skip
def test_a_filtered_passage_names_the_conditions_that_it_does_not_meet(
    database: Database, asked: Filters, said: str
) -> None:
    fill(database, "FILT", [FILTERED, File("guides/b.md", ["Nothing of this kind."])])
    found = _one(database, "FILT", "mooring fee", "rules/fees.md::0", SearchOptions(filters=asked))
    assert (found.outcome, found.reason) == ("filtered", f"left out by the filter: {said}")


def test_a_passage_without_a_vector_and_without_the_words(database: Database) -> None:
    collection = fill(database, "NONE", [File("a.txt", ["Refunds are paid."]), File("b.txt", ["Something else."])])
    with database.owner(collection.schema_name) as connection:
        connection.execute("UPDATE chunks SET embedding = NULL WHERE source = 'b.txt'")
    found = _one(database, "NONE", "refunds", "b.txt::0")
    assert (found.outcome, found.dense.why) == ("not_found", "it has no vector")
    assert found.lexical.why == "it holds none of the question's terms"
    assert found.reason == "dense: it has no vector; words: it holds none of the question's terms"


def test_a_passage_beyond_the_candidates_of_both_arms(database: Database) -> None:
    files = [
        File(f"f{n:02}.txt", [" ".join(["harbor"] * (20 - n) + [f"x{n}y{k}" for k in range(n)])]) for n in range(15)
    ]
    fill(database, "BEYOND", files)
    found = _one(database, "BEYOND", "harbor", "f14.txt::0", SearchOptions(top_k=2, candidates=5))
    assert (found.outcome, found.lexical.rank, found.lexical.exact_rank) == ("not_found", None, 15)
    assert found.lexical.why == "15th of all, and the first 5 are candidates"
    assert "and the first 5 are candidates" in found.dense.why
    assert found.dense.score is not None


def test_a_passage_that_the_dense_index_missed(database: Database) -> None:
    made = clusters.make(database, "MADE", rows=1500, dimensions=32, seed=8)
    with database.owner(made.collection.schema_name) as connection:  # as poor an index as there can be
        connection.execute("DROP INDEX chunks_embedding")
        connection.execute(
            "CREATE INDEX chunks_embedding ON chunks USING hnsw (embedding halfvec_cosine_ops)"
            " WITH (m = 2, ef_construction = 4) WHERE canonical"
        )
        names = [r[0] for r in connection.execute("SELECT chunk_id FROM chunks ORDER BY id").fetchall()]
    embedder = clusters.Given(32)
    missed = 0
    for n in range(0, 60, 6):
        embedder.known["q"] = made.centres[n]
        nearest = [names[i] for i in np.argsort(-(made.vectors @ made.centres[n]), kind="stable")[:40]]
        options = SearchOptions(fusion="dense", candidates=100)
        found = explain(database, "MADE", "q", embedder, options, nearest).passages
        for passage in (p for p in found if p.outcome == "not_found"):
            assert passage.dense.exact_rank is not None
            assert passage.dense.exact_rank <= 100
            assert passage.dense.why.endswith("of all, but the index did not come to it")
            missed += 1
    assert missed > 0


@pytest.mark.parametrize(("fusion", "dense", "words"), [
    ("dense", "", "did not run (not asked for)"), ("lexical", "did not run (not asked for)", ""),
])  # fmt: skip
def test_an_arm_that_was_not_asked_for(database: Database, fusion: Any, dense: str, words: str) -> None:
    fill(database, "ARM", [File("a.txt", ["Refunds are paid."])])
    found = _one(database, "ARM", "refunds", "a.txt::0", SearchOptions(fusion=fusion))
    assert (found.dense.why, found.lexical.why) == (dense, words)


def test_an_arm_that_could_not_run_says_why(database: Database) -> None:
    fill(database, "DOWN", [File("a.txt", ["Refunds are paid."])])
    down = HashEmbedder()
    down.lost_after = 0
    found = explain(database, "DOWN", "refunds", down)
    assert found.passages[0].dense.why == "did not run (the hash embedder is switched off)"
    stop = _explain(database, "DOWN", "what is it")
    assert stop.passages[0].lexical.why == "did not run (the question holds only stop words or symbols)"
    assert stop.passages[0].terms == ()


def test_an_empty_collection_is_explained_by_its_diagnostic(database: Database) -> None:
    fill(database, "EMPTY", [])
    found = _explain(database, "EMPTY", "refunds")
    assert found.passages == ()
    assert "is empty" in (found.diagnostic or "")


def test_a_near_copy_names_the_passage_that_it_was_folded_into(database: Database) -> None:
    files = [File(f"m{n}.txt", [f"{PARAGRAPH}\n\nNote {n} of the folder."]) for n in range(4)]
    fill(database, "NEAR", files)
    question = "second officer reads the whole file"
    shown = search(database, "NEAR", question, HashEmbedder()).passages
    assert len(shown) == 1
    others = [f"m{n}.txt::0" for n in range(4) if f"m{n}.txt::0" != shown[0].chunk_id]
    for found in _explain(database, "NEAR", question, *others).passages:
        assert (found.outcome, found.folded_into) == ("folded", shown[0].chunk_id)
        assert found.fused_place is not None
    head = _one(database, "NEAR", question, shown[0].chunk_id)
    assert head.reason == "rank 1; stands for 3 near copies among the candidates"


@pytest.mark.parametrize("is_candidate", [True, False])
def test_a_copy_of_higher_authority_says_whose_place_it_takes(database: Database, is_candidate: bool) -> None:
    def text(n: int) -> str:
        more = "" if is_candidate or n != 17 else " ".join(f"other{k} thing{k}" for k in range(60))
        return f"{PARAGRAPH}\n\nRemark {n} with words of its own: {n}a {n}b {n}c. {more}"

    fill(database, "TIER", [File(f"memo-{n:03}.txt", [text(n)], 1.0 if n == 17 else 0.1) for n in range(30)])
    options = SearchOptions(top_k=3, candidates=10)
    question = "second officer reads the file again"
    shown = search(database, "TIER", question, HashEmbedder(), options).passages
    assert shown[0].chunk_id == "memo-017.txt::0"
    found = _one(database, "TIER", question, "memo-017.txt::0", options)
    assert found.outcome == "shown"
    assert found.score == shown[0].score
    assert (found.fused_place is not None) == is_candidate
    assert "rank 1; takes the place of memo-" in found.reason


def test_a_passage_that_the_search_looked_past(database: Database) -> None:
    files = [File(f"m{n:03}.txt", [f"{PARAGRAPH}\n\nNote {n}.", f"Reading {n} of officer {n}."]) for n in range(60)]
    fill(database, "PAST", files)
    options = SearchOptions(top_k=10, candidates=20)
    question = "second officer reads the whole file"
    everything = [f"m{n:03}.txt::0" for n in range(60)]
    found = _explain(database, "PAST", question, *everything, options=options)
    assert found.settings["rounds"] > 1
    head = next(p for p in found.passages if p.outcome == "shown")
    past = [p for p in found.passages if p.outcome == "passed_over"]
    assert len(past) >= 20
    assert all(p.reason.startswith(f"holds a paragraph that {head.chunk_id} shows") for p in past)
    _assert_same(
        search(database, "PAST", question, HashEmbedder(), options),
        _explain(database, "PAST", question, options=options),
    )


def test_a_candidate_too_far_behind_to_be_looked_at(database: Database) -> None:
    fill(database, "FAR", [File(f"f{n:02}.txt", [f"harbor quay {n}"]) for n in range(40)])
    everything = [f"f{n:02}.txt::0" for n in range(40)]
    found = _explain(database, "FAR", "harbor quay", *everything, options=SearchOptions(top_k=1)).passages
    behind = [p for p in found if p.outcome == "not_kept"]
    assert len(behind) == 40 - 13
    assert behind[0].reason == f"place {behind[0].fused_place} after fusion, and the first 13 are looked at further"


def _apart(database: Database) -> Collection:
    """b.txt is first by words and nowhere by meaning, where a.txt, c.txt and d.txt are ahead of all others."""
    files = [File(f"{n}.txt", [f"quay {n} rope"]) for n in "acdefgh"]
    collection = fill(database, "APART", [*files, File("b.txt", ["zebra quay"])])
    cosines = {"a": 0.95, "c": 0.9, "d": 0.85, "e": 0.8, "f": 0.7, "g": 0.6, "h": 0.5, "b": 0.1}
    with database.owner(collection.schema_name) as connection:
        for name, cosine in cosines.items():
            vector = [cosine, (1 - cosine**2) ** 0.5] + [0.0] * 62
            connection.execute(
                "UPDATE chunks SET embedding = %s::halfvec WHERE source = %s", (str(vector), f"{name}.txt")
            )
    return collection


class _Fixed(HashEmbedder):
    def embed_query(self, text: str) -> Any:
        return np.array([1.0] + [0.0] * 63, np.float32)


def test_an_arms_first_hit_says_so_and_what_it_displaced_says_so_too(database: Database) -> None:
    _apart(database)
    # By score alone b.txt would come last: its meaning is far, and words count little.
    options = SearchOptions(top_k=2, fusion="score", fusion_weight=0.95)
    found = explain(database, "APART", "zebra quay", _Fixed(), options)
    by_id = {p.chunk_id: p for p in found.passages}
    assert [p.chunk_id for p in found.passages if p.rank] == ["a.txt::0", "b.txt::0"]
    anchor = by_id["b.txt::0"]
    assert anchor.folded_place == 8
    assert anchor.reason == "rank 2; place 8 after folding, kept as the first hit by words"
    assert by_id["c.txt::0"].outcome == "displaced"
    assert by_id["c.txt::0"].reason == "place 2 after folding, given up for an arm's first hit: 2 are shown"


def test_what_edges_added_or_moved_says_so(database: Database) -> None:
    files = [
        File("rules.txt", ["A guest berth means a place for a visiting boat.", "The night fee is in section nine.",
                           "Section nine. Eleven crowns."]),
        *(File(f"guide{n}.txt", [f"The guest berth {n} has water."]) for n in range(3)),
    ]  # fmt: skip
    collection = fill(database, "EDGES", files)
    define(database, collection, [("guest berth", "rules.txt::0")])
    cite(database, collection, ("rules.txt::1", "rules.txt::2"))
    options = SearchOptions(top_k=1, expand=("cites", "defines"))
    for question in ("how much is the night fee", "what is a guest berth"):
        result = search(database, "EDGES", question, HashEmbedder(), options)
        explained = _explain(database, "EDGES", question, options=options)
        _assert_same(result, explained)
        for passage in result.passages:
            reason = next(p.reason for p in explained.passages if p.chunk_id == passage.chunk_id)
            assert ("by an edge" in reason) == (passage.via != "search")
            if passage.via == "search" and passage.edge:
                assert "put in front" in reason
    assert "added" in {
        p.outcome for p in _explain(database, "EDGES", "how much is the night fee", options=options).passages
    }


def test_options_survive_being_written_down() -> None:
    options: Sequence[SearchOptions] = [
        SearchOptions(),
        SearchOptions(top_k=3, fusion="score", fusion_weight=0.3, expand=("cites",), hops=2, fold_near_copies=False),
        SearchOptions(filters=Filters(sources=("a", "b"), min_authority=0.0, fields=(("k", "v"),), exclude=("x",))),
        SearchOptions(filters=Filters(since=date(2024, 2, 29), phrases=("a b",), media_types=("text/*",), heading="h")),
    ]
    for one in options:
        assert SearchOptions.from_json(one.to_json()) == one
