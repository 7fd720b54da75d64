"""Reader roles that can do less or more than read their collection are found, and what is printed cures them."""

import pytest

from agent_server.catalog import create_collection
from tests.doctor.ground import Ground

DAMAGES = {
    "a reader that may not log in": ("FINANCE reader role", ['ALTER ROLE "{reader}" NOLOGIN']),
    "a reader that may not read": (
        "FINANCE reader role",
        ['REVOKE ALL ON ALL TABLES IN SCHEMA kb_finance FROM "{reader}"'],
    ),
    "a reader that may write": ("FINANCE reader role writing", ['GRANT INSERT ON chunks TO "{reader}"']),
    "a reader with powers": ("FINANCE reader role powers", ['ALTER ROLE "{reader}" CREATEDB']),
    "a reader that is a member": ("FINANCE reader role membership", ['GRANT pg_read_all_data TO "{reader}"']),
    "a reader that sees the shared schema": ("FINANCE reader role reach", ['GRANT USAGE ON SCHEMA kb TO "{reader}"']),
    "a schema that is open to all": ("FINANCE reader role reach", ["GRANT USAGE ON SCHEMA kb TO PUBLIC"]),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_a_reader_that_can_do_less_or_more_is_found_and_cured_as_printed(
    ground: Ground, name: str, damage: list[str]
) -> None:
    ground.break_by_sql(damage)
    ground.cured_of(name)


def test_a_reader_that_may_enter_another_collection_is_found_and_cured_as_printed(ground: Ground) -> None:
    create_collection(ground.database, "OTHER", ground.embedder.identity())
    ground.sql(f'GRANT USAGE ON SCHEMA kb_other TO "{ground.reader}"')
    ground.cured_of("FINANCE reader role reach")
