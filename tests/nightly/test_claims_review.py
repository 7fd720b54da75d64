"""Review of claims against bad files, other reviewers, and what happens meanwhile."""

import json
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from agent_server.catalog import Collection, drop_collection
from agent_server.db import Database, execute
from agent_server.errors import InvalidArgument
from agent_server.ingest.store import in_transaction
from agent_server.retrieval.recall import recall_claims
from nightly import claims
from nightly.claims_review import Filter, Imported, decide, export_lines, import_lines, select, show
from tests.conftest import Builder
from tests.corpus import File, collection_of, fill, put

FEE = "A visitor must pay the berth fee within 3 days after arrival."
STAY = "A boat may stay at the guest quay for 14 days."
DOGS = "Dogs may not enter the fuel dock."
RULES = File("rules.md", (f"(a) {FEE}\n\n(b) {STAY}", f"(c) {DOGS}"), authority=1.0, heading="Moorings")


def _harbour(database: Database) -> None:
    collection = fill(database, "HARBOUR", [RULES])
    claims.refresh(database, collection)


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _harbour if "harbour" in request.fixturenames else None


@pytest.fixture
def harbour(database: Database) -> Collection:
    return collection_of(database, "HARBOUR")


def _line(**changes: Any) -> str:
    line = {"statement": "Dogs stay out of the fuel dock.", "subject": "dogs", "quote": DOGS, "source": "rules.md"}
    return json.dumps({**line, **changes})


def _import(database: Database, collection: Collection, *lines: str, who: str = "Ann") -> Imported:
    with database.owner(collection.schema_name) as connection:
        return import_lines(connection, collection, lines, who, "from a file")


def _rows(database: Database, collection: Collection, **wanted: Any) -> list[dict[str, Any]]:
    with database.owner(collection.schema_name) as connection:
        return select(connection, Filter(**wanted))


# -- files ------------------------------------------------------------------------------------------------------


def test_a_line_that_cannot_be_taken_is_refused_by_field_and_the_others_are_taken(
    database: Database, harbour: Collection
) -> None:
    refused = {
        "line": ["nonsense", "[]", "null", "[" * 10_000, '{"statement": "\\ud800"}', "\0"],
        "statement": [
            _line(statement=None),
            _line(statement=["a"]),
            _line(statement=""),
            _line(statement="!!! ---"),
            _line(statement="The dogs"),
            _line(statement="Dogs \x1b[2J stay out of the dock."),
            _line(statement="Dogs \0 stay out of the dock."),
            _line(statement="Dogs \u202e stay out of the dock."),
            _line(statement="dogs " * 1000),
        ],
        "subject": [_line(subject=""), _line(subject="x" * 301), _line(subject="d\x07ogs"), _line(subject=5)],
        "names": [_line(names=["x" * 5000]), _line(names="dogs"), _line(names=["\0"]), _line(names=["a"] * 21)],
        "kind": [_line(kind="truth")],
        "status": [_line(status="sure")],
        "confidence": [_line(confidence=2), _line(confidence=float("nan"))],
        "source": [_line(source=""), _line(source="a\0b")],
        "chunk_id": [_line(chunk_id="a\0b")],
        "quote": [_line(quote=""), _line(quote="\0")],
        "its quote": [_line(quote="Dogs may enter."), _line(source="other.md"), _line(source="../rules.md")],
    }
    lines = [line for bad in refused.values() for line in bad]
    report = _import(database, harbour, *lines, _line())
    said = iter(report.refused)
    for field, bad in refused.items():
        for line in bad:
            assert next(said).partition(": ")[2].startswith(field), (field, line)
    assert (report.lines, report.stored) == (len(lines) + 1, 1)


def test_a_statement_may_hold_any_script_and_line_separators_of_others(database: Database, harbour: Collection) -> None:
    statement = "Чайки\u2028не платят за ночь\u0085 у причала 🚤."
    put(database, harbour, File("sea.md", (f"Сказано:\n\n{statement}",)))
    report = _import(database, harbour, _line(statement=statement, quote=statement, source="sea.md", subject="Чайки"))
    assert report.refused == []
    with database.owner(harbour.schema_name) as connection:
        (line,) = export_lines(connection, Filter(extractor="import"))
        assert "\n" not in line
    assert json.loads(line)["statement"] == "Чайки не платят за ночь у причала 🚤."
    assert _import(database, harbour, line).refused == []
    assert len(_rows(database, harbour, extractor="import")) == 1


def test_a_name_that_grows_when_it_is_folded_does_no_harm(database: Database, harbour: Collection) -> None:
    report = _import(database, harbour, _line(subject="\ufdfa" * 300, names=["\U0001f6a4" * 300]))
    assert (report.stored, report.refused) == (1, [])


def test_other_words_about_the_same_quote_are_another_claim(database: Database, harbour: Collection) -> None:
    pairs = [
        ("A fee is paid by a visitor to the harbour.", "A fee is paid to a visitor by the harbour."),
        ("Boats and dogs stay out.", "Boats or dogs stay out."),
        ("A boat lies there with dogs.", "A boat lies there for dogs."),
    ]
    report = _import(database, harbour, *(_line(statement=s) for pair in pairs for s in pair))
    assert report.stored == 6
    assert len(_rows(database, harbour, extractor="import")) == 6


def test_whatever_a_line_says_of_itself_its_quote_decides_and_the_person_answers_for_it(
    database: Database, harbour: Collection
) -> None:
    lies = {"verified_by": "rule: duty", "extractor": "rules", "id": 1, "vouched": True, "chunk": 1, "quote_start": 0}
    assert _import(database, harbour, _line(status="verified", **lies)).verified == 1
    (row,) = _rows(database, harbour, extractor="import")
    assert (row["verified_by"], row["status"]) == ("Ann", "verified")
    for nobody in ("", "  ", "rule: duty", " rule:duty"):
        with pytest.raises(InvalidArgument):
            _import(database, harbour, _line(status="verified"), who=nobody)


def test_a_fault_in_the_middle_takes_the_whole_file_back(database: Database, harbour: Collection) -> None:
    before = _rows(database, harbour)

    class Killed(Exception):
        pass

    def lines() -> Any:
        yield _line(status="verified")
        raise Killed

    with pytest.raises(Killed), database.owner(harbour.schema_name) as connection:
        import_lines(connection, harbour, lines(), "Ann", "")
    assert _rows(database, harbour) == before


def test_a_very_long_term_in_a_document_does_no_harm(database: Database, harbour: Collection) -> None:
    long = "".join(chr(97 + n * n % 26) for n in range(6000))
    text = f"| Code | Meaning |\n|---|---|\n| {long} | Left |\n| QX-1 | {long} |\n\n**{long}** means a boat."
    put(database, harbour, File("long.md", (text, f"“{long} {long}” means a boat with a deck."), heading="Definitions"))
    claims.refresh(database, harbour)
    assert recall_claims(database, [harbour], "what is " + long[:3000]).claims == ()


def test_control_characters_of_a_document_reach_no_key_and_break_nothing(
    database: Database, harbour: Collection
) -> None:
    text = "“Sl\x1b[31mipway” means a ramp\x07 on which boats\x85 are launched.\n\n\x0cDogs\x1f may not enter the quay."
    put(database, harbour, File("odd.md", (text,), heading="Definitions"))
    claims.refresh(database, harbour)
    assert recall_claims(database, [harbour], "what is a sl\x1b[31mipway").timings_ms
    keys = [key for row in _rows(database, harbour) for key in row["subject_keys"]]
    assert [key for key in keys if not key.isprintable()] == []


# -- at the same time -------------------------------------------------------------------------------------------


def _at_once(*works: Callable[[], object]) -> list[Exception]:
    faults: list[Exception] = []
    gate = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        gate.wait()
        try:
            work()
        except Exception as error:  # noqa: BLE001  told to the test
            faults.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return faults


def test_two_reviewers_and_an_ingestion_at_once_leave_every_status_with_its_event(
    database: Database, harbour: Collection
) -> None:
    def review(who: str, status: Any) -> Callable[[], object]:
        def once(connection: Any) -> bool:
            decide(connection, harbour, Filter(source="rules.md"), status, who, "")
            return True

        return lambda: [in_transaction(database, harbour, once) for _ in range(8)]

    def ingest() -> None:
        for n in range(4):
            put(database, harbour, RULES if n % 2 else File(RULES.source, RULES.passages[1:], 1.0, heading="Moorings"))
            claims.refresh(database, harbour)

    assert _at_once(review("Ann", "verified"), review("Bob", "rejected"), ingest) == []
    with database.owner(harbour.schema_name) as connection:
        for row in select(connection, Filter()):
            events = [e for e in show(connection, row["id"])["events"] if e["what"] != "moved"]
            assert events[-1]["what"] == row["status"]
            if row["status"] == "verified":
                assert row["chunk_id"] is not None
                assert row["verified_by"] in (events[-1]["who"], "Ann", "rule: limit", "rule: duty")


def test_a_passage_that_goes_while_a_claim_on_it_is_stored_takes_the_claim_along(
    database: Database, harbour: Collection
) -> None:
    with database.owner_autocommit(harbour.schema_name) as other:
        with other.transaction():
            execute(other, "chunk_delete", {"source": "rules.md"})
            stored: list[Imported] = []
            late = threading.Thread(target=lambda: stored.append(_import(database, harbour, _line(status="verified"))))
            late.start()
            while not other.execute(
                "SELECT 1 FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"
            ).fetchone():  # it has come to the passage that is going
                assert late.is_alive()
        late.join(30)
    assert [(r.stored, len(r.refused)) for r in stored] == [(0, 1)]
    assert _rows(database, harbour, status="verified") == []


def test_a_collection_that_was_dropped_has_no_claims_and_says_so(database: Database, harbour: Collection) -> None:
    drop_collection(database, harbour.name)
    with pytest.raises(psycopg.errors.UndefinedTable):
        _rows(database, harbour)
    again = fill(database, "HARBOUR", [RULES])
    assert _rows(database, again) == []
    assert "no claims yet" in (recall_claims(database, [again], "dogs").diagnostic or "")
