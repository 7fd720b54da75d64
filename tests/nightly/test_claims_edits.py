"""No verified claim is ever without its quote in a live passage, whatever happens to the sources."""

import itertools
import json
from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from agent_server.catalog import Collection
from agent_server.db import Database, execute
from agent_server.ingest import store
from nightly import claims
from nightly.claims_review import Filter, decide, import_lines, select
from tests.corpus import File, fill, put

SENTENCES = (
    "A visitor must pay the berth fee within 3 days after arrival.",
    "A boat may stay at the guest quay for 14 days.",
    "Dogs may not enter the fuel dock.",
    "The buoy must be taken in within 3 days.",
    "“Slipway” means a ramp on which boats are launched.",
    "It has nothing to do with the above.",
)
NAMES = ("a.md", "b.md", "c.md", "d.md")
_NUMBERS = itertools.count()

passages = st.lists(
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=3
).map(tuple)
files = st.builds(
    File,
    source=st.just(""),
    passages=passages,
    authority=st.sampled_from((0.0, 0.4, 1.0)),
    heading=st.sampled_from(("Moorings", "Definitions")),
    retired=st.booleans().map(bool),
)


def machine(database: Database) -> type[RuleBasedStateMachine]:
    """Random edits of a collection of its own in `database`."""

    class Edits(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.collection: Collection = fill(database, f"E{next(_NUMBERS)}", [])
            self.there: set[str] = set()

        @rule(name=st.sampled_from(NAMES), file=files)
        def edit(self, name: str, file: File) -> None:
            put(database, self.collection, File(name, file.passages, file.authority, file.retired, file.heading))
            self.there.add(name)

        @precondition(lambda self: self.there)
        @rule(data=st.data())
        def remove(self, data: st.DataObject) -> None:
            name = data.draw(st.sampled_from(sorted(self.there)))
            put(database, self.collection, File(name, ()))
            self.there.discard(name)

        @precondition(lambda self: self.there and len(self.there) < len(NAMES))
        @rule(data=st.data())
        def rename(self, data: st.DataObject) -> None:
            old = data.draw(st.sampled_from(sorted(self.there)))
            new = data.draw(st.sampled_from(sorted(set(NAMES) - self.there)))
            with database.owner(self.collection.schema_name) as connection:
                row = store.read_ledger(connection)[old]
                assert store.rename_file(connection, self.collection, row, new, "r", row.authority)
            self.there = self.there - {old} | {new}

        @precondition(lambda self: self.there)
        @rule(data=st.data(), authority=st.sampled_from((0.0, 0.7)))
        def weigh(self, data: st.DataObject, authority: float) -> None:
            name = data.draw(st.sampled_from(sorted(self.there)))
            with database.owner(self.collection.schema_name) as connection:
                store.set_authority(connection, self.collection, name, authority)

        @rule()
        def read(self) -> None:
            claims.refresh(database, self.collection)

        @rule(status=st.sampled_from(("verified", "rejected")), of=st.sampled_from(("proposed", "verified", "stale")))
        def review(self, status: str, of: str) -> None:
            with database.owner(self.collection.schema_name) as connection:
                decide(connection, self.collection, Filter(status=of), status, "Ann", "")  # type: ignore[arg-type]

        @precondition(lambda self: self.there)
        @rule(data=st.data(), words=st.sampled_from(SENTENCES), status=st.sampled_from(("verified", "proposed")))
        def take_in(self, data: st.DataObject, words: str, status: str) -> None:
            name = data.draw(st.sampled_from(sorted(self.there)))
            line = {"statement": f"So says Ann: {words}", "subject": "Ann", "quote": words, "source": name}
            with database.owner(self.collection.schema_name) as connection:
                import_lines(connection, self.collection, [json.dumps({**line, "status": status})], "Ann", "known")

        @rule(words=st.sampled_from(SENTENCES))
        def change_in_place(self, words: str) -> None:
            with database.owner(self.collection.schema_name) as connection:
                connection.execute("UPDATE chunks SET text = %s WHERE id = (SELECT min(id) FROM chunks)", (words,))

        @invariant()
        def every_verified_claim_has_its_quote_in_a_live_passage(self) -> None:
            with database.owner(self.collection.schema_name) as connection:
                wrong = connection.execute(
                    """SELECT c.id, c.statement FROM claims c LEFT JOIN chunks k ON k.id = c.chunk AND NOT k.retired
                       WHERE c.status = 'verified'
                         AND (k.id IS NULL
                              OR substr(k.text, c.quote_start + 1, c.quote_end - c.quote_start) <> c.quote)"""
                ).fetchall()
                assert wrong == []
                # What leads is among the evidence, and what turned stale has none that lives.
                orphans = connection.execute(
                    """SELECT c.id FROM claims c
                       WHERE (c.chunk IS NOT NULL AND NOT EXISTS (
                                  SELECT FROM claim_evidence e
                                  WHERE (e.claim, e.chunk, e.quote_start) = (c.id, c.chunk, c.quote_start)))"""
                ).fetchall()
                assert orphans == []

        @invariant()
        def every_status_has_its_event(self) -> None:
            with database.owner(self.collection.schema_name) as connection:
                for row in select(connection, Filter()):
                    last = connection.execute(
                        "SELECT what FROM claim_events WHERE claim = %s AND what <> 'moved' ORDER BY id DESC LIMIT 1",
                        (row["id"],),
                    ).fetchone()
                    assert last is not None
                    assert last[0] == row["status"]

        def teardown(self) -> None:
            with database.owner(self.collection.schema_name) as connection:
                execute(connection, "collection_delete", {"name": self.collection.name})

    return Edits


@pytest.fixture
def edits(database: Database) -> Iterator[type[RuleBasedStateMachine]]:
    yield machine(database)


def _run(edits: type[RuleBasedStateMachine], *, runs: int, steps: int) -> None:
    unhurried = settings(
        max_examples=runs,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(edits, settings=unhurried)


def test_no_edit_leaves_a_verified_claim_without_its_quote(edits: type[RuleBasedStateMachine]) -> None:
    _run(edits, runs=4, steps=15)


@pytest.mark.full
def test_no_long_sequence_of_edits_leaves_a_verified_claim_without_its_quote(
    edits: type[RuleBasedStateMachine],
) -> None:
    _run(edits, runs=3, steps=200)
