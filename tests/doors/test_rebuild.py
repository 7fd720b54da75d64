"""`kb reembed` and `kb reindex` from the command line."""

from tests.doors.conftest import Kb
from tests.hash_embedder import HashEmbedder


def test_kb_reembed_switches_says_so_and_finds_nothing_to_do_the_second_time(
    bank: Kb, hash_embedder: HashEmbedder
) -> None:
    hash_embedder.digest, hash_embedder.dimensions = "another", 32
    assert bank("search", "FINANCE", "income", "--json").error["code"] == "contract_mismatch"
    said = bank("reembed", "finance", "--json")
    assert (said.code, said.json["state"], said.json["after"]["dimensions"]) == (0, "switched", 32)
    assert bank("search", "FINANCE", "income", "--json").code == 0
    assert bank("doctor", "--json").json["status"] == "ok"
    assert "already" in bank("reembed", "FINANCE").out


def test_kb_reembed_that_loses_its_embedder_can_be_aborted(bank: Kb, hash_embedder: HashEmbedder) -> None:
    hash_embedder.digest = "another"
    hash_embedder.lost_after = len(hash_embedder.calls)
    said = bank("reembed", "FINANCE", "--json")
    assert (said.code, said.out, said.error["code"]) == (1, "", "embedder_unavailable")
    assert bank("reembed", "FINANCE", "--abort", "--json").json == {"collection": "FINANCE", "state": "aborted"}
    assert "no re-embedding" in bank("reembed", "FINANCE", "--abort").out


def test_kb_reembed_tells_people_what_it_did(bank: Kb, hash_embedder: HashEmbedder) -> None:
    hash_embedder.digest, hash_embedder.dimensions = "another", 32
    said = bank("reembed", "FINANCE")
    assert said.out == "FINANCE: hash, 64 wide -> hash, 32 wide\n"
    assert "embedded" in said.err


def test_kb_reindex_builds_all_indexes_anew(bank: Kb) -> None:
    said = bank("reindex", "finance", "--json")
    assert said.code == 0
    assert said.json["rebuilt"] == ["chunks_tsv", "chunks_paragraphs", "chunks_embedding"]
    assert "rebuilt chunks_tsv" in bank("reindex", "FINANCE").out
    assert bank("doctor", "--json").json["status"] == "ok"
