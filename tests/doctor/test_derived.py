"""Edges and claims that no longer fit their passages are found, and what is printed cures them."""

import pytest

from tests.doctor.ground import Ground

LINK = (
    "INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label)"
    " SELECT min(id), max(id), 'cites', {}, 0, 5, 0, 1, 'x' FROM chunks"
)


DAMAGES = {
    "a claim's term count": ("FINANCE claims' term counts", ["INSERT INTO claim_lexemes VALUES ('ghost', 3)"]),
    "an edge whose words are not there": ("FINANCE edges", [LINK.format("'never said'")]),
    "an edge from a passage that is gone": (
        "FINANCE edges",
        [
            LINK.format("(SELECT left(text, 5) FROM chunks ORDER BY id LIMIT 1)"),
            "SET session_replication_role = replica",
            "DELETE FROM chunks WHERE id = (SELECT to_chunk FROM links LIMIT 1)",
        ],
    ),
    "a claim whose words are not there": (
        "FINANCE claims",
        [
            "UPDATE claims SET quote = 'nobody wrote this'",
            "UPDATE claim_evidence SET quote = 'nobody wrote this'",
        ],
    ),
    "a claim that drifted from its evidence": ("FINANCE claims", ["UPDATE claims SET quote_start = quote_start + 1"]),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_what_does_not_fit_its_passages_is_found_and_cured_as_printed(
    ground: Ground, name: str, damage: list[str]
) -> None:
    ground.break_by_sql(damage)
    ground.cured_of(name)
