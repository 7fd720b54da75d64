"""What is found."""

from dataclasses import dataclass
from typing import Literal

#: How a definition is worded:
#: means      "X means", "X is defined as"
#: elsewhere  "X has the meaning given in section 4"
#: refers     "X refers to", "X stands for"
#: includes, excludes   "the term X includes", "the term X does not include"
#: is         "X is a", where X is marked or the place is one of definitions
#: alias      "(the 'X')", "known as 'X'"
#: abbreviation   "Long Words (LW)"
#: entry, table   of a glossary or a definition list, a row of a table of terms
Form = Literal["means", "elsewhere", "refers", "includes", "excludes", "is", "alias", "abbreviation", "entry", "table"]

#: Forms that say a part, give a name only, or say where the definition stands: others of the same term come first.
PARTIAL: frozenset[str] = frozenset({"elsewhere", "includes", "excludes", "alias", "abbreviation"})


@dataclass(frozen=True, slots=True)
class Definition:
    """A term and the words that define it: `text[start:end]` and `text[definition_start:definition_end]`.

    `scope` is where it says that it holds: "paragraph", "section", "part", "document" (also when it says nothing), or a
    place by name ("§ 12.7(d)").
    """

    term: str
    form: Form
    scope: str
    start: int
    end: int
    definition_start: int
    definition_end: int

    @property
    def span(self) -> tuple[int, int]:
        """The whole stretch it was read from: term and definition, whichever comes first."""
        return min(self.start, self.definition_start), max(self.end, self.definition_end)
