"""The fixtures of the doors, whose `kb` the doctor is asked through, and the ground to break."""

from pathlib import Path

import pytest

from agent_server.db import Database
from agent_server.settings import Settings
from tests.doctor.ground import Ground
from tests.doors.conftest import Kb, bank, documents, kb, plain_kb, stock  # noqa: F401  fixtures
from tests.hash_embedder import HashEmbedder


@pytest.fixture
def ground(bank: Kb, database: Database, settings: Settings, documents: Path, hash_embedder: HashEmbedder) -> Ground:  # noqa: F811
    return Ground(bank, database, settings, documents, hash_embedder)
