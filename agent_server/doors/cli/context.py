"""What commands need: settings, a database, an embedder, each opened late and closed at the end."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent_server.catalog import Collection, get_collection
from agent_server.db import Database, open_database, translated
from agent_server.settings import Settings, load_settings

if TYPE_CHECKING:
    from agent_server.embedding import Embedder


@contextlib.contextmanager
def opened(*, migrated: bool = True) -> Iterator[tuple[Settings, Database]]:
    """Settings from the environment and the database that they name.

    Raises SettingsError, DatabaseUnavailable, and MigrationNeeded unless `migrated` is False.
    """
    settings = load_settings()
    with translated(), open_database(settings, migrated=migrated) as database:
        yield settings, database


@contextlib.contextmanager
def opened_embedder(settings: Settings) -> Iterator["Embedder"]:
    """The embedder that the settings name."""
    from agent_server.embedding import make_embedder  # noqa: PLC0415  loads a model's runtime

    embedder = make_embedder(settings)
    try:
        yield embedder
    finally:
        embedder.close()


def collection_called(database: Database, name: str) -> Collection:
    """Raises UnknownCollection with the names there are."""
    with database.owner() as connection:
        return get_collection(connection, name)
