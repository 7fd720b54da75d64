"""What a tool call needs to know about its caller."""

from dataclasses import dataclass

from agent_server.catalog import Collection, list_collections
from agent_server.db import Database, translated
from agent_server.embedding import Embedder
from agent_server.errors import UnknownCollection
from agent_server.settings import Settings
from agent_server.tools.arguments import shown

#: A passage is about 250 tokens with its labels: this leaves room for all of a default search.
BUDGET_TOKENS = 3000


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Where tools look, and what this caller may see."""

    database: Database
    embedder: Embedder | None  #: None: by words alone
    settings: Settings
    allowed: frozenset[str] | None = None  #: names of collections, ignoring case; None: all
    budget_tokens: int = BUDGET_TOKENS

    def visible(self) -> list[Collection]:
        """The collections that the caller may see, by name."""
        with translated(), self.database.owner() as connection:
            found = list_collections(connection)
        if self.allowed is None:
            return found
        allowed = {name.lower() for name in self.allowed}
        return [c for c in found if c.name.lower() in allowed]

    def collection(self, name: str) -> Collection:
        """The visible collection called `name`, ignoring case and blanks around it.

        Raises UnknownCollection in the same words for one that is not there and one that the caller may not see.
        """
        found = self.visible()
        for collection in found:
            if collection.name.lower() == name.strip().lower():
                return collection
        known = [c.name for c in found]
        raise UnknownCollection(
            f"no collection is called {shown(name)}",
            hint=f"Known: {', '.join(known)}." if known else "There is none that you may search.",
            details={"known": known},
        )
