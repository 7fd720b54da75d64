"""Alembic's entry: one connection handed in by agent_server.db.migrate, locks and time limits set once."""

from alembic import context

connection = context.config.attributes["connection"]
# Two programs that migrate at once queue up; a migration never waits behind a long search for its table locks.
connection.exec_driver_sql("SELECT set_config('lock_timeout', '10s', false)")
connection.exec_driver_sql("SELECT pg_advisory_lock(hashtextextended('knowledge-bank migrations', 0))")
connection.commit()
try:
    context.configure(connection=connection, version_table="schema_version", version_table_schema="public")
    with context.begin_transaction():
        context.run_migrations()
finally:
    connection.exec_driver_sql("SELECT pg_advisory_unlock(hashtextextended('knowledge-bank migrations', 0))")
    connection.commit()
