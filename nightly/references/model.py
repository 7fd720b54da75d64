"""What is found in a text: references, and what they name."""

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["place", "comment", "document", "link", "near"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step on the way to a place: "Article 6(1)" is the word "article", the number "6" and the path ("1",)."""

    word: str  #: canonical; "" for a number or a path alone
    number: str = ""  #: as `numbering.normal` writes it
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        plain = self.number[:1].isdigit() or self.number in {"above", "below"}
        number = self.number if plain else self.number.upper()
        path = "".join(f"({value})" for value in self.path)
        if self.word == "section":
            return f"§ {number}{path}" if number else path
        return f"{self.word.capitalize()} {number}{path}".strip() if self.word else f"{number}{path}"


@dataclass(frozen=True, slots=True)
class Reference:
    """The words `text[start:end]` that name a place. `steps` lead to it, the outermost first.

    `within` says from where: "this section" is "section"; "" leaves it to the place of the reference. `outside` is the
    name of another document as it is written ("Regulation Z", "RFC 2119"). `member`: named by a range only ("(b)" in
    "(a) through (c)"); its words are those of the range.
    """

    start: int
    end: int
    kind: Kind
    steps: tuple[Step, ...] = ()
    within: str = ""
    outside: str = ""
    member: bool = False
    plain: bool = False  #: numbers alone, without a word that says whose they are

    @property
    def label(self) -> str:
        """What is named, in short: "§ 12.4(a), Appendix B"."""
        named = ", ".join(str(step) for step in self.steps if str(step))
        return " ".join(part for part in (self.outside, named) if part)

    def inside(self, outer: "Reference") -> "Reference":
        """This reference as one into what `outer` names: "point (f)" of "Article 6(1)"."""
        return replace(
            self,
            steps=outer.steps + self.steps,
            within=outer.within,
            outside=outer.outside or self.outside,
            kind="place" if self.kind == "document" else self.kind,
            plain=False,
        )


@dataclass(frozen=True, slots=True)
class Parsed:
    """References that were named in one breath, and where their words end."""

    found: tuple[Reference, ...]
    end: int
