"""`kb search` and `kb collection expand`: edges followed or not, and what is said of them."""

from agent_server.catalog import get_collection
from agent_server.db import Database
from tests.doors.conftest import Kb
from tests.retrieval.edges import cite, define

QUESTION = "What does income mean?"
CITING = "How much does a loan need in dollars a month?"


def _edges(kb: Kb, *options: str) -> list[tuple[str, str, str]]:
    """(chunk_id, via, relation of the edge) of every passage that an edge put where it stands, for two questions."""
    asked = (QUESTION, CITING)
    found = [kb("search", "FINANCE", q, "--top-k", "1", "--json", *options).json["passages"] for q in asked]
    return [(p["chunk_id"], p["via"], p["edge"]["relation"]) for passages in found for p in passages if p["edge"]]


def _with_edges(database: Database) -> None:
    with database.owner() as connection:
        collection = get_collection(connection, "FINANCE")
    define(database, collection, [("income", "guide.md::0")])
    cite(database, collection, ("rules.md::0", "one.txt::0"))


def test_a_search_follows_edges_as_the_collection_says_unless_it_is_told_otherwise(
    bank: Kb, database: Database
) -> None:
    _with_edges(database)
    defined, cited = ("guide.md::0", "defines", "defines"), ("one.txt::0", "cites", "cites")
    assert _edges(bank) == [defined, cited]
    assert _edges(bank, "--no-expand") == []
    assert _edges(bank, "--hops", "2") == [defined, cited]
    said = bank("collection", "expand", "FINANCE", "--no-cites")
    assert (said.code, said.out) == (0, "FINANCE: cites off, defines on\n")
    assert _edges(bank) == [defined]
    assert _edges(bank, "--expand") == [defined, cited]
    said = bank("collection", "expand", "FINANCE", "--cites")
    assert (said.code, said.out) == (0, "FINANCE: cites on, defines on\n")
    assert _edges(bank) == [defined, cited]
    assert bank("collection", "expand", "finance", "--cites", "--no-defines", "--json").json == {
        "collection": "FINANCE",
        "cites": True,
        "defines": False,
    }
    assert _edges(bank) == [cited, cited]  # also beside the meaning that is asked for
    assert bank("collection", "expand", "FINANCE").out == "FINANCE: cites on, defines off\n"
    assert bank("collection", "show", "FINANCE", "--json").json["expand_defines"] is False


def test_a_printed_result_says_which_edge_led_to_a_passage(bank: Kb, database: Database) -> None:
    _with_edges(database)
    assert "defines: income" in bank("search", "FINANCE", QUESTION, "--top-k", "1", "--expand").out
    said = bank("search", "FINANCE", CITING, "--top-k", "1", "--expand").out
    assert "cited by rules.md::0: see one.txt::0" in said


def test_a_third_hop_and_an_unknown_collection_are_refused(bank: Kb) -> None:
    assert bank("search", "FINANCE", QUESTION, "--hops", "3").code == 2
    said = bank("collection", "expand", "NOWHERE", "--cites", "--json")
    assert said.code == 1
    assert said.error["code"] == "unknown_collection"
