"""What is drawn on a page of a PDF: pieces of text with their place, in the order of the file, and how far pictures
cover it.

Lengths are in points (1/72 inch) from the lower left corner, as PDF counts them.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypdf import PageObject

from agent_server.ingest.extract.pdf_fonts import Fonts
from agent_server.ingest.extract.pdf_moves import apart

_BOLD = re.compile(r"bold|black|heavy|semi ?bold|medi(?:um)?$|CMBX|-Medi", re.IGNORECASE)
_TEX_SYMBOLS = re.compile(r"(?:^/|\+)CMB?SY\d*$")


@dataclass(slots=True)
class Fragment:
    """What was drawn at one go. `text` may hold line ends and begin with a blank that parts it from the one before."""

    text: str
    x: float
    y: float
    size: float
    bold: bool

    @property
    def width(self) -> float:
        """A guess: fonts tell it, but not through pypdf."""
        return sum(0.68 if letter.isupper() else 0.5 for letter in self.text.strip()) * self.size

    def part(self, text: str) -> "Fragment":
        return Fragment(text, self.x, self.y, self.size, self.bold)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The text of a page; `mute` says that there are letters which nobody can tell, and which were left out."""

    fragments: list[Fragment]
    spots: list[tuple[float, float]]  #: where the pen stood when something was drawn, in the order of the file
    mute: bool = False

    @property
    def text(self) -> str:
        return "".join(fragment.text for fragment in self.fragments)


def draw(page: PageObject, *, fine: bool = False) -> Drawn:
    """The text of a page in the order of the file. `fine`: a piece of its own wherever the file moves the pen.

    Errors of pypdf pass through.
    """
    fonts = Fonts(page)
    if fonts.unnamed:
        fonts.name(page.extract_text())
    fragments: list[Fragment] = []
    spots: list[tuple[float, float]] = []
    mute = False

    def before(operator: bytes, _: Any, cm: Sequence[float], tm: Sequence[float]) -> None:
        if operator in (b"Tj", b"TJ"):
            spots.append(_spot(cm, tm))

    def visit(text: str, cm: Sequence[float], tm: Sequence[float], font: Any, size: float) -> None:
        nonlocal mute
        if any(font is other for other in fonts.mute):
            mute = mute or bool(text.strip())
            text = "\n" if "\n" in text else " "
        fragments.append(_place(text, cm, tm, font, size))

    try:
        with apart(page, moves=fine):
            page.extract_text(visitor_text=visit, visitor_operand_before=before)
    finally:
        fonts.forget()
    return Drawn(fragments, spots, mute)


def _spot(cm: Sequence[float], tm: Sequence[float]) -> tuple[float, float]:
    return float(tm[4] * cm[0] + tm[5] * cm[2] + cm[4]), float(tm[4] * cm[1] + tm[5] * cm[3] + cm[5])


def _place(text: str, cm: Sequence[float], tm: Sequence[float], font: Any, size: float) -> Fragment:
    x, y = _spot(cm, tm)
    c = tm[2] * cm[0] + tm[3] * cm[2]
    d = tm[2] * cm[1] + tm[3] * cm[3]
    name = str(font.get("/BaseFont", "")) if isinstance(font, dict) else ""
    if "\0" in text and _TEX_SYMBOLS.search(name):
        text = text.replace("\0", "\u2212")  # pypdf overlooks the first letter of these fonts
    return Fragment(text, x, y, float(size) * math.hypot(c, d), _BOLD.search(name) is not None)


def covered(page: PageObject) -> float:
    """How much of the page its largest picture covers, 0..1. Errors of pypdf pass through."""
    box = page.mediabox
    whole = abs(float(box.width) * float(box.height)) or 1.0
    largest = 0.0
    images = _images(page)

    def before(operator: bytes, operands: Any, cm: Sequence[float], _: Sequence[float]) -> None:
        nonlocal largest
        inline = operator in (b"BI", b"INLINE IMAGE")
        if inline or (operator == b"Do" and operands and str(operands[0]) in images):
            largest = max(largest, abs(cm[0] * cm[3] - cm[1] * cm[2]))

    page.extract_text(visitor_operand_before=before)
    return min(largest / whole, 1.0)


def _images(page: PageObject) -> set[str]:
    resources: Any = page.get("/Resources")
    drawn: Any = resources.get_object().get("/XObject") if resources is not None else None
    named = drawn.get_object().items() if drawn is not None else ()
    return {str(name) for name, one in named if one.get_object().get("/Subtype") == "/Image"}
