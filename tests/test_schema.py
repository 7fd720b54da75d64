"""The readable schema and the migrations make the same database."""

import uuid

import psycopg
from psycopg import sql as psycopg_sql

from agent_server import sql
from agent_server.catalog import create_collection
from agent_server.db import Database, current_revision, head_revision, migrate
from tests.conftest import SECRET, Server
from tests.hash_embedder import HashEmbedder

CATALOG = """
SELECT 'column' AS kind, c.relname || '.' || a.attname AS name,
       format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' '
           || coalesce(pg_get_expr(d.adbin, d.adrelid), '') AS definition
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE n.nspname = 'kb' AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'r'
UNION ALL
SELECT 'index', c.relname, pg_get_indexdef(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'kb' AND c.relkind = 'i'
UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(o.oid)
FROM pg_constraint o JOIN pg_namespace n ON n.oid = o.connamespace WHERE n.nspname = 'kb' AND conrelid <> 0
UNION ALL
SELECT 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'kb'
ORDER BY 1, 2
"""


def test_schema_file_equals_the_migrations(server: Server, database: Database) -> None:
    name = f"kb_schema_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(psycopg_sql.SQL("CREATE DATABASE {}").format(psycopg_sql.Identifier(name)))
    try:
        with psycopg.connect(server.dsn(name)) as by_file:
            by_file.execute(sql.load("schema").query(), {})
            written = by_file.execute(CATALOG).fetchall()
    finally:
        with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
            admin.execute(psycopg_sql.SQL("DROP DATABASE {} WITH (FORCE)").format(psycopg_sql.Identifier(name)))
    with database.owner() as connection:
        migrated = connection.execute(CATALOG).fetchall()
    assert written == migrated
    assert len(migrated) > 30


def test_a_collection_of_the_first_schema_gets_what_a_new_one_has(
    database: Database, hash_embedder: HashEmbedder
) -> None:
    create_collection(database, "OLD", hash_embedder.identity())
    grants = (
        "SELECT relname, relacl::text FROM pg_class WHERE relnamespace = 'kb_old'::regnamespace AND relkind = 'r'"
        " ORDER BY 1"
    )
    with database.owner() as connection:
        of_old = CATALOG.replace("'kb'", "'kb_old'")
        made, granted = connection.execute(of_old).fetchall(), connection.execute(grants).fetchall()
        connection.execute("ALTER TABLE kb_old.chunks DROP COLUMN marks")
        connection.execute("DROP TABLE kb_old.links, kb_old.dangling_links, kb_old.terms, kb_old.edge_sources")
        connection.execute(
            "DROP TABLE kb_old.claims, kb_old.claim_evidence, kb_old.claim_events, kb_old.claim_conflicts,"
            " kb_old.claim_sources, kb_old.claim_lexemes, kb_old.claim_lexeme_deltas"
        )
        connection.execute(
            "DROP FUNCTION kb_old.claims_settle, kb_old.claims_lose_deleted, kb_old.claims_lose_changed,"
            " kb_old.count_claim, kb_old.citing_lexemes CASCADE"
        )
        # Pending changes of counts were lexemes, appended by functions of that time.
        connection.execute(
            """
            DROP TABLE kb_old.lexeme_deltas;
            CREATE TABLE kb_old.lexeme_deltas (lexeme text COLLATE "C" NOT NULL, d bigint NOT NULL);
            INSERT INTO kb_old.lexemes VALUES ('', 3), ('loan', 2);
            INSERT INTO kb_old.lexeme_deltas VALUES ('', 1), ('loan', 2), ('loan', -1), ('rate', 1), ('rate', -1);
            """
        )
        for event in ("inserted", "deleted", "updated"):
            connection.execute(
                f"CREATE OR REPLACE FUNCTION kb_old.count_{event}() RETURNS trigger LANGUAGE plpgsql"
                " AS 'BEGIN RETURN NULL; END'"
            )
        connection.execute("UPDATE public.schema_version SET version_num = '0001'")
    assert migrate(database) == head_revision()
    with database.owner() as connection:
        counts = connection.execute("SELECT lexeme, ndoc FROM kb_old.lexemes ORDER BY 1").fetchall()
        assert counts == [("", 4), ("loan", 3)], "what was pending is counted"
        assert connection.execute(of_old).fetchall() == made
        assert connection.execute(grants).fetchall() == granted


def test_a_migrated_database_stands_at_the_newest_revision_and_migrating_again_does_nothing(
    database: Database,
) -> None:
    with database.owner() as connection:
        assert current_revision(connection) == head_revision()
    assert migrate(database) == head_revision()


def test_a_database_without_migrations_has_no_revision(server: Server) -> None:
    name = f"kb_bare_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(psycopg_sql.SQL("CREATE DATABASE {}").format(psycopg_sql.Identifier(name)))
    try:
        with Database(server.dsn(name), SECRET) as bare, bare.owner() as connection:
            assert current_revision(connection) is None
    finally:
        with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
            admin.execute(psycopg_sql.SQL("DROP DATABASE {} WITH (FORCE)").format(psycopg_sql.Identifier(name)))
