"""Passages whose vectors, copies, counts or lengths are wrong are found, and what is printed cures them."""

import pytest

from tests.doctor.ground import COPY_OF_A_ROW, Ground

DAMAGES = {
    "zero vectors": ("FINANCE vectors", ["UPDATE chunks SET embedding = array_fill(0, ARRAY[64])::halfvec"]),
    "a vector lost": ("FINANCE vectors", ["UPDATE chunks SET embedding = NULL WHERE source = 'guide.md'"]),
    "a column of any width": (
        "FINANCE width",
        [
            "DROP INDEX chunks_embedding",
            "ALTER TABLE chunks ALTER COLUMN embedding TYPE halfvec",
        ],
    ),
    "a contract of another width": ("FINANCE width", ["UPDATE kb.collections SET dimensions = 32"]),
    "no copy stands": ("FINANCE copies", ["UPDATE chunks SET canonical = false WHERE source = 'guide.md'"]),
    "two copies stand": (
        "FINANCE copies",
        ["DROP INDEX chunks_canonical", COPY_OF_A_ROW.format("passage_hash", "embedding")],
    ),
    "a term count too high": ("FINANCE term counts", ["UPDATE lexemes SET ndoc = ndoc + 1 WHERE lexeme = 'incom'"]),
    "a wrong number of passages": ("FINANCE term counts", ["UPDATE lexemes SET ndoc = 0 WHERE lexeme = ''"]),
    "a term that stands nowhere": ("FINANCE term counts", ["INSERT INTO lexemes VALUES ('ghost', 3)"]),
    "counts not merged": ("FINANCE term counts", ["INSERT INTO lexeme_deltas VALUES ('loan', 1), ('loan', -1)"]),
    "no mean length": ("FINANCE mean length", ["UPDATE kb.collections SET avg_length = NULL"]),
    "a mean length of long ago": ("FINANCE mean length", ["UPDATE kb.collections SET avg_length = avg_length * 2"]),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_passages_that_are_wrong_are_found_and_cured_as_printed(ground: Ground, name: str, damage: list[str]) -> None:
    ground.break_by_sql(damage)
    ground.cured_of(name)
