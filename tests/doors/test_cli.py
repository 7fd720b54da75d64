"""`kb` against a real database."""

import io
import json
from pathlib import Path

import pytest

from agent_server.catalog import create_collection, get_collection
from agent_server.db import Database
from agent_server.doors.cli.progress import line
from agent_server.ingest.report import Outcome
from agent_server.models import FileStatus
from tests.doors.conftest import Kb
from tests.hash_embedder import HashEmbedder


def test_init_says_what_is_there_and_what_is_next(kb: Kb, tmp_path: Path) -> None:
    (tmp_path / "knowledge-bank" / "documents" / "K12").mkdir(parents=True)
    said = kb("init")
    assert said.code == 0
    assert "kb collection create K12" in said.out
    shown = kb("init", "--json").json
    assert shown["server"] == "external"
    assert shown["collections"] == []
    assert shown["migration"] >= "0001"


def test_a_collection_takes_the_embedders_contract(kb: Kb, database: Database, hash_embedder: HashEmbedder) -> None:
    created = kb(
        "collection", "create", "K12", "--description", "schools", "--config", "simple", "--chunk-size", "500",
        "--chunk-overlap", "50", "--json",
    )  # fmt: skip
    assert created.code == 0
    with database.owner() as connection:
        found = get_collection(connection, "K12")
    assert found.contract == hash_embedder.identity()
    assert (found.text_search_config, found.chunk_size, found.chunk_overlap) == ("simple", 500, 50)
    assert created.json["name"] == "K12"
    assert [c["name"] for c in kb("collection", "list", "--json").json["collections"]] == ["K12"]
    assert kb("collection", "show", "k12", "--json").json["description"] == "schools"
    assert "schools" in kb("collection", "show", "K12").out
    assert "K12" in kb("collection", "list").out


def test_a_name_that_is_none_is_refused(kb: Kb) -> None:
    for name in ("1x", "a b", "x" * 41, "", "ä", "x'; DROP TABLE kb.collections; --"):
        said = kb("collection", "create", "--json", "--", name)
        assert (said.code, said.out) == (1, "")


def test_a_name_that_is_taken_is_refused(bank: Kb) -> None:
    said = bank("collection", "create", "finance", "--json")
    assert (said.code, said.out, said.error["code"]) == (1, "", "collection_exists")


def test_dropping_needs_a_yes_where_nobody_can_be_asked(bank: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert bank("collection", "drop", "FINANCE").code == 2
    assert bank("collection", "show", "FINANCE").code == 0
    assert bank("collection", "drop", "FINANCE", "--yes", "--json").json["dropped"] == "FINANCE"
    assert bank("collection", "show", "FINANCE").code == 1


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_dropping_asks_on_a_terminal(bank: Kb, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    said = bank("collection", "drop", "FINANCE")
    assert said.code == code
    assert "Drop FINANCE with" in said.err


def test_an_ingestion_prints_a_line_a_file_and_exits_3_when_one_was_not_indexed(kb: Kb, documents: Path) -> None:
    kb("collection", "create", "FINANCE")
    said = kb("ingest", "FINANCE", str(documents))
    lines = said.out.splitlines()
    assert said.code == 3
    assert [text[0] for text in lines] == ["!", "+", "+", "+", "+"]
    assert lines[0].startswith("! a_picture.png  ")
    assert lines[1].startswith("+ guide.md  1 chunk")
    assert said.err.startswith("FINANCE: 4 indexed, 1 not indexed; ")


def test_a_second_ingestion_changes_nothing_and_says_what_moved_or_went(bank: Kb, documents: Path) -> None:
    (documents / "a_picture.png").unlink()
    (documents / "guide.md").rename(documents / "help.md")
    (documents / "two.txt").unlink()
    foretold = bank("ingest", "FINANCE", str(documents), "--dry-run")
    said = bank("ingest", "FINANCE", str(documents))
    assert said.code == foretold.code == 0
    assert "~ help.md (was guide.md)" in said.out
    assert {text[0] for text in said.out.splitlines()} == {"~", "=", "-"}
    assert sorted(text[:6] for text in foretold.out.splitlines()) == sorted(text[:6] for text in said.out.splitlines())
    assert "dry run" in foretold.err


def test_a_dry_run_does_nothing(kb: Kb, documents: Path) -> None:
    kb("collection", "create", "FINANCE")
    shown = kb("ingest", "FINANCE", str(documents), "--dry-run", "--json").json
    assert shown["dry_run"] is True
    assert len(shown["files"]) == 5
    assert kb("files", "FINANCE", "--json").json["files"] == []


def test_an_ingestion_as_json_prints_nothing_else(kb: Kb, documents: Path) -> None:
    kb("collection", "create", "FINANCE")
    said = kb("ingest", "FINANCE", str(documents), "--json")
    assert said.code == 3
    assert said.json["counts"]["indexed"] == 4
    assert said.err == ""


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome("+", "a.md", FileStatus.INDEXED, 12), "+ a.md  12 chunks"),
        (Outcome("=", "a.md", FileStatus.INDEXED, 12), "= a.md"),
        (Outcome("~", "new.md", FileStatus.INDEXED, 12, "was old.md"), "~ new.md (was old.md)"),
        (Outcome("-", "a.md", FileStatus.REMOVED), "- a.md"),
        (Outcome("!", "a.pdf", FileStatus.ENCRYPTED, 0, "is encrypted"), "! a.pdf  is encrypted"),
        (Outcome("!", "a\x1b[2J\n.pdf", FileStatus.NO_TEXT), "! a\ufffd[2J .pdf  no_text"),
    ],
)
def test_each_mark_has_its_line(outcome: Outcome, text: str) -> None:
    assert line(outcome) == text


def test_the_ledger_lists_each_file_with_its_status_and_reason(bank: Kb) -> None:
    rows = bank("files", "FINANCE", "--json").json["files"]
    assert {r["source"]: r["status"] for r in rows}["guide.md"] == "indexed"
    assert len(rows) == 5
    not_indexed = [r for r in rows if r["status"] != "indexed"]
    assert [r["source"] for r in not_indexed] == ["a_picture.png"]
    assert not_indexed[0]["reason"]
    assert "guide.md" in bank("files", "FINANCE").out
    only = bank("files", "FINANCE", "--status", "indexed", "--json").json["files"]
    assert {r["status"] for r in only} == {"indexed"}
    assert bank("files", "FINANCE", "--status", "nope").code == 2


def test_a_removed_file_is_gone_from_searches_and_listed_as_removed(bank: Kb) -> None:
    said = bank("remove", "FINANCE", "guide.md")
    assert (said.code, said.out) == (0, "- guide.md\n")
    assert "guide.md" not in bank("files", "FINANCE").out
    assert "guide.md" in bank("files", "FINANCE", "--status", "removed").out
    assert bank("remove", "FINANCE", "guide.md", "--json").error["code"] == "invalid_argument"


def test_a_search_shows_where_each_passage_stands_and_which_list_found_it(bank: Kb) -> None:
    said = bank("search", "FINANCE", "what does NW-4021 mean?", "--top-k", "2")
    assert said.code == 0
    first = said.out.partition("\n 2. ")[0]
    assert first.startswith(" 1. rules.md::")
    assert "words #1" in first
    assert "dense #" in first
    assert "score " in first
    assert "NW-4021 means that the income is too low" in first
    assert "trace " in said.out
    assert "\x1b" not in said.out


def test_a_search_as_json_is_the_contract(bank: Kb) -> None:
    said = bank("search", "FINANCE", "what does NW-4021 mean?", "--json")
    assert said.json["passages"][0]["source"] == "rules.md"
    assert said.json["degraded"] == []
    assert said.err == ""


def test_copies_are_named_with_the_passage_that_stands_for_them(bank: Kb) -> None:
    assert "also in two.txt::" in bank("search", "FINANCE", "valuation of a house").out


def test_a_question_can_come_from_standard_input(bank: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("NW-4021\n"))
    assert bank("search", "FINANCE", "-", "--json").json["query"] == "NW-4021"


def test_by_words_alone_no_model_is_asked(bank: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_server.doors.cli.context.opened_embedder", None)
    for flags in (["--lexical"], ["--fusion", "lexical"]):
        shown = bank("search", "FINANCE", "NW-4021", *flags, "--json").json
        assert {p["dense_rank"] for p in shown["passages"]} == {None}
        assert shown["passages"][0]["lexical_rank"] == 1


def test_each_way_of_ranking_can_be_chosen(bank: Kb) -> None:
    ways = ["--fusion rrf", "--fusion score", "--fusion dense", "--ranker ts_rank_cd", "--ranker bm25"]
    for flags in (*ways, "--authority-weight 0"):
        assert bank("search", "FINANCE", "income of a loan", *flags.split(), "--json").json["passages"], flags


def test_flags_that_contradict_each_other_are_a_usage_error(bank: Kb) -> None:
    assert bank("search", "FINANCE", "x", "--lexical", "--fusion", "dense").code == 2


def test_an_arm_that_did_not_run_is_named(bank: Kb, hash_embedder: HashEmbedder) -> None:
    hash_embedder.lost_after = 0
    said = bank("search", "FINANCE", "NW-4021")
    assert said.code == 0
    assert "without dense: the hash embedder is switched off" in said.out


def test_an_empty_collection_says_so(kb: Kb) -> None:
    kb("collection", "create", "FINANCE")
    said = kb("search", "FINANCE", "anything")
    assert said.code == 0
    assert "FINANCE is empty" in said.out


def test_an_unknown_collection_is_the_same_error_everywhere(bank: Kb) -> None:
    commands = [
        "search nope x", "files nope", "ingest nope .", "remove nope x", "stats nope", "trace list nope",
        "trace show nope", "collection show nope", "collection drop nope --yes", "db psql nope",
        "mcp --collection nope",
    ]  # fmt: skip
    for command in commands:
        said = bank(*command.split(), "--json")
        assert (said.code, said.out) == (1, ""), command
        assert said.error["code"] == "unknown_collection"
        assert said.error["details"]["known"] == ["FINANCE"]


def test_a_blank_question_is_an_error(bank: Kb) -> None:
    said = bank("search", "FINANCE", "  ", "--json")
    assert (said.code, said.out, said.error["code"]) == (1, "", "invalid_argument")


def test_searches_are_recorded_listed_and_shown(bank: Kb) -> None:
    assert "no search" in bank("trace", "list", "FINANCE").err
    assert bank("trace", "show", "FINANCE", "--json").error["code"] == "unknown_trace"
    trace_id = bank("search", "FINANCE", "what does NW-4021 mean?", "--json").json["trace_id"]
    listed = bank("trace", "list", "FINANCE", "--limit", "5", "--json").json["traces"]
    assert [t["trace_id"] for t in listed] == [trace_id]
    assert trace_id[:8] in bank("trace", "list", "FINANCE").out
    assert bank("trace", "show", "FINANCE", trace_id[:8], "--json").json["trace_id"] == trace_id
    shown = bank("trace", "show", "FINANCE").out
    assert trace_id in shown
    assert "#nw4021" in shown
    assert "rules.md::" in shown


def test_a_trace_sets_itself_up_again_in_psql(bank: Kb) -> None:
    bank("search", "FINANCE", "what does NW-4021 mean?")
    script = bank("trace", "show", "FINANCE", "--psql").out
    assert '"kb_finance"' in script
    assert "\\set excluded '{}'" in script
    assert script.rstrip("\n") == bank("trace", "show", "FINANCE", "--psql", "--json").json["psql"].rstrip("\n")


def test_stats_count_what_is_there(bank: Kb) -> None:
    bank("search", "FINANCE", "loan")
    one = bank("stats", "FINANCE", "--json").json
    assert (one["files"], one["searches"]) == (5, 1)
    assert one["searched"] == one["passages"] - 1
    assert one["files_by_status"]["indexed"] == 4
    assert bank("stats", "--json").json["collections"][0]["collection"] == "FINANCE"
    assert "FINANCE" in bank("stats").out
    assert "4 indexed" in bank("stats", "FINANCE").out


def test_psql_is_run_with_the_collections_search_path_and_no_password_in_its_arguments(bank: Kb) -> None:
    shown = bank("db", "psql", "FINANCE", "-c", "SELECT 1", "--json").json
    assert shown["command"][0].endswith("psql")
    assert shown["command"][2:] == ["-c", "SELECT 1"]
    assert "kb_finance" in shown["command"][1]
    assert "password" not in shown["command"][1]
    assert bank("db", "psql", "--json").json["search_path"] is None


def test_roles_are_made_sure_of(bank: Kb) -> None:
    assert len(bank("db", "roles", "--json").json["roles"]) == 1
    assert "finance" in bank("db", "roles").out


def test_db_status_shows_the_schemas_migration(bank: Kb) -> None:
    shown = bank("db", "status", "--json").json
    assert shown["running"] is True
    assert shown["migration"] == shown["needs"]
    assert "running" in bank("db", "status").out


def test_mcp_can_print_the_schemas_of_what_may_be_seen(
    bank: Kb, database: Database, hash_embedder: HashEmbedder
) -> None:
    create_collection(database, "SECRET", hash_embedder.identity())
    shown = json.dumps(bank("mcp", "--collection", "finance", "--json").json)
    assert '"enum": ["FINANCE"]' in shown
    assert "SECRET" not in shown
