"""Letters of fonts that do not say what their codes mean: found in the tables of their collections, or left unread.

A font of Chinese, Japanese or Korean may name its letters by their number in one of Adobe's collections, and leave it
to the reader to know these. Other fonts number the drawings they carry: without a map nobody can tell the letters, and
to take such numbers for characters would index gibberish.
"""

import gzip
import json
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

from pypdf import PageObject
from pypdf.generic import DecodedStreamObject, NameObject

_NUMBERED = ("/Identity-H", "/Identity-V")
_COLLECTIONS = ("Japan1", "GB1", "CNS1", "Korea1")
_MAX_FORMS = 50  #: forms within a page, and within each other, whose fonts are looked at
#: What pypdf puts between words by itself; as codes they would be taken for letters if they had no entry.
_OWN = frozenset(" \n")
_CMAP = """/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def
1 begincodespacerange <0000> <FFFF> endcodespacerange
{entries}
endcmap end end"""


@cache
def _letters(collection: str, vertical: bool) -> dict[int, str]:
    """Number in the collection -> character, upright also where the letter is turned for vertical lines."""
    table = files("pdfminer") / "cmap" / f"to-unicode-Adobe-{collection}.json.gz"
    with table.open("rb") as packed, gzip.open(packed) as stream:
        told = json.load(stream)[f"CID2UNICHR_{'V' if vertical else 'H'}"]
    return {int(number): _upright(letter) for number, letter in told.items()}


def _upright(letter: str) -> str:
    turned = "\ufe10" <= letter <= "\ufe1f" or "\ufe30" <= letter <= "\ufe4f"
    return unicodedata.normalize("NFKC", letter) if turned else letter


def _fonts(resources: Any, left: list[int]) -> Iterator[Any]:
    """The fonts of a page and of the forms drawn on it."""
    if resources is None or left[0] <= 0:
        return
    left[0] -= 1
    resources = resources.get_object()
    for font in _named(resources, "/Font"):
        yield font.get_object()
    for drawn in _named(resources, "/XObject"):
        form = drawn.get_object()
        if form.get("/Subtype") == "/Form":
            yield from _fonts(form.get("/Resources"), left)


def _named(resources: Any, kind: str) -> Iterable[Any]:
    found = resources.get(kind)
    return found.get_object().values() if found is not None else ()


def _ordering(font: Any) -> str:
    """The collection that a font numbers its letters by, "" when it says itself what its codes mean."""
    if font.get("/Subtype") != "/Type0" or "/ToUnicode" in font or font.get("/Encoding") not in _NUMBERED:
        return ""
    inner = font["/DescendantFonts"].get_object()[0].get_object()
    ordering = str((inner.get("/CIDSystemInfo") or {}).get("/Ordering", "Identity"))
    # A stream says which drawing stands for a number: then the numbers were chosen, and are characters as a rule.
    chosen = not isinstance(inner.get("/CIDToGIDMap", "/Identity"), str)
    return "" if chosen and ordering not in _COLLECTIONS else ordering


class Fonts:
    """The fonts of one page whose letters have to be looked up. `mute` ones have letters that nobody can tell."""

    def __init__(self, page: PageObject) -> None:
        self._numbered: list[tuple[Any, str]] = []
        self.mute: list[Any] = []
        # Fonts that are not what they should be are pypdf's to make sense of.
        with suppress(Exception):
            for font in _fonts(page.get("/Resources"), [_MAX_FORMS]):
                ordering = _ordering(font)
                if ordering in _COLLECTIONS:
                    self._numbered.append((font, ordering))
                elif ordering:
                    self.mute.append(font)

    @property
    def unnamed(self) -> bool:
        """Whether there are letters to be looked up."""
        return bool(self._numbered)

    def name(self, codes: Iterable[str]) -> None:
        """Give the fonts a map of these codes, as pypdf reads them where there is none: one character a code."""
        numbers = sorted({ord(code) for code in codes if code not in _OWN} | set(map(ord, _OWN)))
        for font, ordering in self._numbered:
            letters = _letters(ordering, font["/Encoding"] == "/Identity-V")
            stream = DecodedStreamObject()
            stream.set_data(_cmap((n, letters.get(n, "\ufffd")) for n in numbers))
            font[NameObject("/ToUnicode")] = stream

    def forget(self) -> None:
        """Take the maps away: the next page uses other letters."""
        for font, _ in self._numbered:
            font.pop("/ToUnicode", None)


def _cmap(pairs: Iterable[tuple[int, str]]) -> bytes:
    lines = [f"<{number:04X}> <{letter.encode('utf-16-be').hex()}>" for number, letter in pairs if number <= 0xFFFF]
    blocks = (lines[at : at + 100] for at in range(0, len(lines), 100))
    entries = "\n".join(f"{len(b)} beginbfchar\n" + "\n".join(b) + "\nendbfchar" for b in blocks)
    return _CMAP.format(entries=entries).encode()
