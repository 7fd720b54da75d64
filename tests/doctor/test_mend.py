"""`kb doctor --fix`: it says what it mended and what it could not."""

from tests.doctor.ground import Ground


def test_the_mending_says_what_it_did_and_nothing_where_all_was_well(ground: Ground) -> None:
    assert ground.kb("doctor", "--fix", "--json").json["fixed"] == []
    ground.sql(f'ALTER ROLE "{ground.reader}" NOLOGIN', "DROP INDEX searches_at, chunks_embedding")
    said = ground.kb("doctor", "--fix")
    assert said.code == 0
    assert said.out.splitlines()[:3] == [
        "fixed  FINANCE: reader role made anew",
        "fixed  FINANCE: index searches_at made",
        "fixed  FINANCE: dense index built over 3 passages",
    ]


def test_what_cannot_be_mended_now_is_said_and_keeps_the_rest_from_nothing(ground: Ground) -> None:
    ground.sql("UPDATE chunks SET embedding = NULL", "DELETE FROM kb.vector_cache", "DROP INDEX searches_at")
    ground.embedder.lost_after = len(ground.embedder.calls)
    said = ground.kb("doctor", "--fix", "--json")
    assert said.code == 1
    assert said.json["left"] == ["FINANCE: the hash embedder is switched off"]
    assert "FINANCE: index searches_at made" in said.json["fixed"]
    assert "left   FINANCE: the hash embedder is switched off" in ground.kb("doctor", "--fix").out
    ground.embedder.lost_after = None
    ground.cured_of("FINANCE vectors")


def test_a_passage_that_the_model_refuses_at_the_mending_is_said_in_the_ledger(ground: Ground) -> None:
    ground.sql("UPDATE chunks SET embedding = NULL WHERE source = 'guide.md'", "DELETE FROM kb.vector_cache")
    ground.embedder.poison = "branch"
    ground.cured_of("FINANCE vectors")
    assert "poison" in ground.kb("files", "FINANCE", "--status", "partial").out
