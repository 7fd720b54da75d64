"""Letters that every later room can trust: one decoder, one cleaner.

Text that went through `clean` can be stored by Postgres (`text` and `jsonb`), sent as UTF-8 JSON and compared
letter by letter: no NUL, no half of a surrogate pair, one form of every letter, one form of the line end.
"""

import codecs
import math
import re
import unicodedata
from typing import Any

from charset_normalizer import from_bytes

#: Characters that mean "the line ends here" and would weld two words if they were dropped.
_LINE_ENDS = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_NUL = "\x00"
_CONTROLS = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_HALF = re.compile("[\ud800-\udfff]")
#: Invisible and without meaning for a reader: soft hyphen, zero-width space, word joiner, byte order mark, marks
#: of writing direction. The zero-width (non-)joiners stay: Persian and emoji are spelled with them.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
#: Letters that stand for several: Latin and Armenian ligatures, Arabic presentation forms (as PDF fonts have them).
_LIGATURES = re.compile("[\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufbb1\ufbd3-\ufd3d\ufd50-\ufdf9\ufe80-\ufefc]")
_SIGN_IN_WORD = re.compile("[a-z][¡-©«-´¶-¹»-¿×÷ØÐÞ\u0178ŒŠŽ][a-z]")
_SAMPLE_BYTES = 64 * 1024
_TOO_FEW = 8  #: letters beyond ASCII below which a guess is a toss-up
_LARGEST = 2**63
_NEARLY = 0.12  #: difference of charset-normalizer's measure of chaos (0..1) that decides nothing


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def clean(text: str) -> tuple[str, tuple[str, ...]]:
    """The text as it will be stored, indexed and cited, and notes on what was lost on the way.

    Line ends become LF. NUL and other control characters except tab and LF are removed and counted. Surrogate
    pairs are joined, halves become U+FFFD and are counted. Soft hyphens, zero-width spaces, byte order marks and
    direction marks go, ligatures are spelled out, and letters are composed (NFC). Applying it twice changes
    nothing. Never raises for a `str`.
    """
    notes: list[str] = []
    text = _LINE_ENDS.sub("\n", text)
    nuls = text.count(_NUL)
    if nuls:
        text = text.replace(_NUL, "")
        notes.append(f"removed {_count(nuls, 'NUL character')}")
    text, controls = _CONTROLS.subn("", text)
    if controls:
        notes.append(f"removed {_count(controls, 'control character')}")
    text = _PAIR.sub(lambda m: (m[1] + m[2]).encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
    text, halves = _HALF.subn("\ufffd", text)
    if halves:
        notes.append(f"replaced {_count(halves, 'half')} of surrogate pairs by U+FFFD".replace("halfs", "halves"))
    text = _INVISIBLE.sub("", text)
    text = _LIGATURES.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
    return unicodedata.normalize("NFC", text), tuple(notes)


def clean_line(text: str) -> str:
    """`clean` for something shown on one line (titles, headings): runs of blanks become one space."""
    return " ".join(clean(text)[0].split())


def clean_value(value: Any) -> Any:
    """`value` with every string in it cleaned, dictionary keys too, as values that `json.dumps` takes.

    Must run before encoding: in JSON text a NUL stands as six ordinary letters that no cleaner finds. Tuples and
    sets become lists; what JSON has no form for (dates, paths, NaN) becomes its `str`, and a number beyond 64 bits
    its hexadecimal digits.
    """
    if isinstance(value, str):
        return clean(value)[0]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < _LARGEST else hex(value)  # decimal digits of large ones are refused or take long
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {clean_line(str(key)): clean_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [clean_value(item) for item in value]
    return clean(str(value))[0]


def _almost_utf8(data: bytes) -> str | None:
    """UTF-8 with few broken bytes in it, or None: one bad byte must not turn every accent into two letters."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    good = sum(1 for letter in text if letter > "\x7f" and letter != "\ufffd")
    return text if good >= 3 and good >= 2 * broken else None


def _western(data: bytes) -> bool:
    """Whether the bytes read as Windows-1252 have accents inside words and signs outside of them."""
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return _SIGN_IN_WORD.search(text) is None


def _guess(data: bytes) -> str | None:
    """The name of the encoding that charset-normalizer finds likeliest, or None."""
    if sum(byte > 0x7F for byte in data) < _TOO_FEW and _western(data):
        return "cp1252"
    matches = from_bytes(data)
    best = matches.best()
    if best is None:
        return None
    # Many one-byte encodings fit a short text nearly equally; what Western Windows writes is the best bet then.
    for match in matches:
        near = match.chaos <= best.chaos + _NEARLY
        if near and "cp1252" in (match.encoding, *match.could_be_from_charset) and _western(data):
            return "cp1252"
    return best.encoding


def decode(data: bytes) -> str:
    """Bytes as text: byte order mark, UTF-8, a guess by charset-normalizer, then Windows-1252. Never raises."""
    for mark, encoding in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    # Some programs write surrogates as if they were letters; `clean` joins or replaces them.
    for errors in ("strict", "surrogatepass"):
        try:
            return data.decode("utf-8-sig", errors)
        except UnicodeDecodeError:
            continue
    almost = _almost_utf8(data)
    if almost is not None:
        return almost.removeprefix("\ufeff")
    try:
        return data.decode(guess_encoding(data))
    except (UnicodeDecodeError, LookupError):
        return data.decode("cp1252", "replace")  # the sample was in another encoding than the rest


def guess_encoding(data: bytes) -> str:
    """The likeliest encoding of bytes that are not UTF-8, by their beginning; Windows-1252 for want of better."""
    return _guess(data[:_SAMPLE_BYTES]) or "cp1252"
