"""`kb claims` through the program: look, decide, take out and in."""

import json
from pathlib import Path

import pytest

from agent_server.catalog import Collection
from agent_server.db import Database
from nightly import claims
from tests.conftest import Builder
from tests.corpus import File, collection_of, fill, put
from tests.doors.conftest import Kb
from tests.doors.conftest import kb as _kb
from tests.doors.conftest import plain_kb as _plain_kb

kb, plain_kb = _kb, _plain_kb

FEE = "A visitor must pay the berth fee within 3 days after arrival."
DOGS = "Dogs may not enter the fuel dock."
BUOY = "The buoy must be taken in within 3 days."
RULES = File("rules/moorings.md", (f"(a) {FEE}\n\n(b) {DOGS}", f"(c) {BUOY}"), authority=1.0, heading="Moorings")

FILTERS = ["--status", "--kind", "--subject", "--source", "--extractor", "--text", "--max-confidence"]
COMMANDS = {
    "list": [*FILTERS, "--limit", "--json"],
    "show": ["--json"],
    "verify": [*FILTERS, "--by", "--why", "--json"],
    "reject": [*FILTERS, "--by", "--why", "--json"],
    "import": ["--by", "--why", "--json"],
    "export": [*FILTERS, "--json"],
}


def _harbour(database: Database) -> None:
    collection = fill(database, "HARBOUR", [RULES])
    claims.refresh(database, collection)


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _harbour if "harbour" in request.fixturenames else None


@pytest.fixture
def harbour(database: Database) -> Collection:
    return collection_of(database, "HARBOUR")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_explains_itself_and_its_flags(plain_kb: Kb, command: str) -> None:
    said = plain_kb("claims", command, "--help")
    assert (said.code, said.err) == (0, "")
    assert [flag for flag in COMMANDS[command] if flag not in said.out] == []


def test_the_list_is_filtered_by_everything_at_once_or_says_that_there_is_nothing(kb: Kb, harbour: Collection) -> None:
    every = kb("claims", "list", "HARBOUR", "--json").json
    assert {c["status"] for c in every["claims"]} == {"verified", "proposed"}
    (only,) = kb(
        *("claims", "list", "harbour", "--status", "proposed", "--kind", "limit", "--subject", "The buoys"),
        *("--source", "rules/**", "--extractor", "rules", "--text", "TAKEN in", "--max-confidence", ".6", "--json"),
    ).json["claims"]
    assert only["quote"] == BUOY
    table = kb("claims", "list", "HARBOUR", "--limit", "1").out
    assert table.splitlines()[0].split() == ["id", "status", "kind", "places", "conflicts", "statement"]
    assert len(table.splitlines()) == 2
    nothing = kb("claims", "list", "HARBOUR", "--source", "other/*")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no such claim in HARBOUR\n")


def test_a_claim_is_shown_with_its_places_and_what_happened_to_it(kb: Kb, harbour: Collection) -> None:
    (row,) = kb("claims", "list", "HARBOUR", "--text", "dogs", "--json").json["claims"]
    shown = kb("claims", "show", "HARBOUR", str(row["id"])).out
    assert "> rules/moorings.md::0" in shown
    assert "rule: duty" in shown
    assert kb("claims", "show", "HARBOUR", str(row["id"]), "--json").json["events"][-1]["what"] == "verified"


def test_decisions_by_number_and_by_filter_have_who_and_why(kb: Kb, harbour: Collection) -> None:
    (row,) = kb("claims", "list", "HARBOUR", "--text", "buoy", "--json").json["claims"]
    number = str(row["id"])
    assert kb("claims", "verify", "HARBOUR", number, "--by", "Ann", "--why", "seen").out == "HARBOUR: 1 verified\n"
    shown = kb("claims", "show", "HARBOUR", number, "--json").json
    assert (shown["status"], shown["verified_by"]) == ("verified", "Ann")
    assert [(e["who"], e["what"], e["why"]) for e in shown["events"]][-1] == ("Ann", "verified", "seen")
    done = kb("claims", "reject", "HARBOUR", "--kind", "limit", "--by", "Bob", "--json").json
    assert (done["status"], len(done["done"]), done["refused"]) == ("rejected", 2, [])
    last = kb("claims", "show", "HARBOUR", number, "--json").json["events"][-1]
    assert (last["who"], last["why"]) == ("Bob", "rejected by Bob")


def test_what_has_lost_its_words_cannot_be_verified(kb: Kb, database: Database, harbour: Collection) -> None:
    put(database, harbour, File(RULES.source, ()))
    said = kb("claims", "verify", "HARBOUR", "--text", "dogs", "--by", "Ann")
    assert said.out == "HARBOUR: 0 verified; 1 cannot be: their quote stands in no live passage\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("verify", "HARBOUR"), "invalid_argument"),
        (("verify", "HARBOUR", "1", "--by", "rule: duty"), "invalid_argument"),
        (("verify", "HARBOUR", "999999"), "unknown_claim"),
        (("show", "HARBOUR", "999999"), "unknown_claim"),
        (("show", "HARBOUR", "99999999999999999999"), "invalid_argument"),
        (("list", "HARBOUR", "--status", "sure"), "invalid_argument"),
        (("list", "NOWHERE"), "unknown_collection"),
        (("import", "HARBOUR", "missing.jsonl"), "invalid_argument"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    kb: Kb, harbour: Collection, arguments: tuple[str, ...], code: str
) -> None:
    said = kb("claims", *arguments, "--json")
    assert said.code in (1, 2)
    assert said.out == ""
    assert said.error["code"] == code


def test_claims_go_out_and_come_in_again_as_they_were(
    kb: Kb, database: Database, harbour: Collection, tmp_path: Path
) -> None:
    out = kb("claims", "export", "HARBOUR").out
    lines = [json.loads(line) for line in out.splitlines()]
    assert kb("claims", "export", "HARBOUR", "--json").json == lines
    other = fill(database, "OTHER", [RULES])
    file = tmp_path / "claims.jsonl"
    file.write_text("\ufeff" + out.replace("\n", "\r\n"), encoding="utf-8")
    report = kb("claims", "import", "OTHER", str(file), "--by", "Ann", "--json").json
    assert (report["lines"], report["stored"], report["verified"], report["refused"]) == (3, 3, 2, [])
    again = [json.loads(line) for line in kb("claims", "export", "OTHER").out.splitlines()]
    keep = ("status", "kind", "statement", "quote", "source", "chunk_id")
    assert [[c[k] for k in keep] for c in again] == [[c[k] for k in keep] for c in lines]
    assert {c["verified_by"] for c in again} == {"Ann", None}
    claims.refresh(database, other)
    assert {c["verified_by"] for c in kb("claims", "list", "OTHER", "--json").json["claims"]} == {"Ann", None}


def test_import_reads_a_pipe_and_says_of_each_line_why_it_is_refused(
    kb: Kb, harbour: Collection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    good = {"statement": FEE, "subject": "visitor", "quote": FEE, "source": RULES.source, "status": "rejected"}
    file = tmp_path / "mixed.jsonl"
    file.write_text(json.dumps(good) + '\n\n{"statement": 5}\n', encoding="utf-8")
    with file.open(encoding="utf-8") as lines:
        monkeypatch.setattr("sys.stdin", lines)
        said = kb("claims", "import", "HARBOUR", "-", "--by", "Ann", "--why", "old rules")
    assert said.out == "HARBOUR: 1 of 2 claims taken in, 0 verified, 1 rejected\n"
    assert said.err.startswith("! line 3: statement: ")
