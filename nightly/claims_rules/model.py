"""What is found."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["definition", "limit", "duty", "exclusion", "statement"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a passage stands: its document's title, the headings above it, the number of the innermost one, the text of
    the passage before it in the same source ('' for the first one), and keys of the terms that its source defines."""

    title: str = ""
    heading_path: tuple[str, ...] = ()
    label: str = ""
    before: str = ""
    terms: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Found:
    """A statement and the words `text[quote_start:quote_end]` that it was read from.

    `doubts` says what keeps the rule from vouching for it; without any it may be verified by rule.
    """

    kind: Kind
    subject: str
    statement: str
    quote_start: int
    quote_end: int
    rule: str  #: name of the form
    names: tuple[str, ...] = ()  #: other names of the subject
    doubts: tuple[str, ...] = field(default=())

    @property
    def confidence(self) -> float:
        """How far a person may trust it unread: .95 without doubts, less with each."""
        return 0.95 if not self.doubts else max(0.7 - 0.2 * len(self.doubts), 0.1)
