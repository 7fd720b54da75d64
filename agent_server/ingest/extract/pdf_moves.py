"""The drawing of a page rewritten so that pypdf tells the place of every piece of text, and not of whole lines alone.

pypdf ends a piece where a font is chosen: so the font is chosen anew before every move of the pen, and a leap within a
line (from one column to the next, say) becomes a move.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pypdf import PageObject
from pypdf.errors import LimitReachedError
from pypdf.generic import ArrayObject, ContentStream, FloatObject, NameObject

_MOVES = (b"Td", b"TD", b"T*")
_LEAP = -1000.0  #: thousandths of the letter size from which on a gap within a line is a leap
_STRETCHED = -3000.0  #: the same beside a blank
_USUAL_WIDTH = 500.0  #: of a letter that the font says nothing of

Operation = tuple[Any, bytes]


@contextmanager
def apart(page: PageObject, *, moves: bool) -> Iterator[None]:
    """The page drawn like this within the block, and as it was after it: leaps as moves, and with `moves` the font
    chosen before every move. A page that cannot be rewritten is left alone. Raises LimitReachedError."""
    stream = _stream(page, moves=moves)
    if stream is None:
        yield
        return
    before = page.raw_get("/Contents")
    page[NameObject("/Contents")] = stream
    try:
        yield
    finally:
        page[NameObject("/Contents")] = before


def _stream(page: PageObject, *, moves: bool) -> ContentStream | None:
    try:
        stream = ContentStream(page["/Contents"].get_object(), page.pdf, "bytes")
        resources: Any = page.get("/Resources")
        fonts = resources.get_object().get("/Font") if resources is not None else None
        stream.operations = list(_rewritten(stream.operations, fonts.get_object() if fonts is not None else {}, moves))
    except LimitReachedError:
        raise
    except Exception:  # noqa: BLE001  what is odd about it pypdf may still read
        return None
    return stream


def _rewritten(operations: Sequence[Operation], fonts: Any, moves: bool) -> Iterator[Operation]:
    chosen: Any = None
    kept: list[Any] = []
    leapt = 0.0  # how far the pen is ahead of where the file believes its line to begin
    for operands, operator in operations:
        if operator == b"Tf":
            chosen = operands
        elif operator == b"q":
            kept.append(chosen)
        elif operator == b"Q" and kept:
            chosen = kept.pop()
        elif operator in (b"Tm", b"BT"):
            leapt = 0.0
            if moves and operator == b"Tm" and chosen is not None:
                yield chosen, b"Tf"
        elif operator in _MOVES and chosen is not None and (moves or leapt):
            yield chosen, b"Tf"
            if leapt:
                yield _step(-leapt)
                leapt = 0.0
        elif operator == b"TJ" and chosen is not None and len(chosen) > 1 and operands:
            for part, leap in _parts(operands[0], fonts.get(chosen[0]), float(chosen[1])):
                yield [part], operator
                if leap:
                    leapt += leap
                    yield [" "], b"Tj"  # what pypdf itself puts where it sees a gap
                    yield chosen, b"Tf"
                    yield _step(leap)
            continue
        yield operands, operator


def _step(by: float) -> Operation:
    return [FloatObject(by), FloatObject(0)], b"Td"


def _parts(shown: Any, font: Any, size: float) -> Iterator[tuple[ArrayObject, float]]:
    """The pieces between leaps, each with the distance from its beginning to that of the next; 0 for the last."""
    widths = _widths(font)
    if widths is None:
        yield shown, 0.0
        return
    part: list[Any] = []
    width = 0.0
    for item in shown:
        if isinstance(item, int | float):
            # A gap beside a blank belongs to a stretched line.
            if item < (_STRETCHED if _blank(part[-1:]) else _LEAP) and part:
                yield ArrayObject(part), (width - item) / 1000 * size
                part, width = [], 0.0
                continue
            width -= float(item)
        else:
            width += _width(item, *widths)
        part.append(item)
    yield ArrayObject(part), 0.0


def _blank(part: Sequence[Any]) -> bool:
    """Whether the last thing shown ends with a blank."""
    return any(isinstance(item, bytes | str) and item[-1:] in (b" ", " ") for item in part)


def _widths(font: Any) -> tuple[int, Any] | None:
    """The first code of a font and the widths from there on; None where it has other codes than bytes."""
    about = font.get_object() if font is not None else {}
    known = about.get("/Widths")
    return None if known is None else (int(about.get("/FirstChar", 0)), known.get_object())


def _width(text: Any, first: int, widths: Any) -> float:
    """The width of a string in thousandths of the letter size."""
    codes = text if isinstance(text, bytes) else str(text).encode("latin-1", "replace")
    return sum(float(widths[c - first]) if 0 <= c - first < len(widths) else _USUAL_WIDTH for c in codes)
