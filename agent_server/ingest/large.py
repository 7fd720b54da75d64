"""Text files too large to be held: surveyed once, then decoded in windows that end where nothing is torn.

Memory depends on the window, not on the file, and so does the time per megabyte.
"""

import codecs
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from agent_server.ingest.chunk_cut import grapheme_edge
from agent_server.ingest.hygiene import guess_encoding

WINDOW_CHARS = 1_000_000
_BLOCK_BYTES = 1024 * 1024
_SAMPLE_BYTES = 64 * 1024
_LOOK_BACK = 2_000  #: characters searched for a space where there is no line end, and for the edge of a grapheme
_FENCE_CHARS = 200  #: of a fence's first line that are repeated, shorter than half a window
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLANK_OR_FENCE = re.compile(r"^(?:[ \t\r]*\n|[ \t>]*(?P<mark>`{3,}|~{3,})(?P<rest>[^\n]*)\n)", re.MULTILINE)


class Cut(NamedTuple):
    """Where a window ends, and what is added to it and to the next one so that each can be read alone."""

    at: int
    closing: str = ""
    opening: str = ""


def survey(stream: BinaryIO) -> tuple[str, str]:
    """SHA-256 (hex) and encoding of a text, read to its end: byte order mark, UTF-8 with few faults, else a guess."""
    digest = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    sample, good, broken = b"", 0, 0
    while block := stream.read(_BLOCK_BYTES):
        digest.update(block)
        sample = sample or block[:_SAMPLE_BYTES]
        if not block.isascii():
            text = decoder.decode(block)
            faults = text.count("\ufffd")
            broken += faults
            good += len(text) - len(text.encode("ascii", "ignore")) - faults
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return digest.hexdigest(), encoding
    if not broken or (good >= 3 and good >= 2 * broken):
        return digest.hexdigest(), "utf-8-sig"
    return digest.hexdigest(), guess_encoding(sample)


def windows(
    stream: BinaryIO,
    encoding: str,
    cut: Callable[[str, int], Cut],
    *,
    size_chars: int = WINDOW_CHARS,
    watch: Callable[[bytes], None] = lambda _: None,
) -> Iterator[str]:
    """The text in order, in windows of about `size_chars`. `watch` is given every byte that was read.

    A window begins with the line ends that part it from the one before, so that only the first can begin with front
    matter.
    """
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    held = ""
    while block := stream.read(_BLOCK_BYTES):
        watch(block)
        held += decoder.decode(block)
        while len(held) > 2 * size_chars:
            found = cut(held, size_chars)
            yield held[: found.at] + found.closing
            held = found.opening + held[found.at :]
    held += decoder.decode(b"", final=True)
    if held:
        yield held


def cut_plain(text: str, size: int) -> Cut:
    """Before the last blank line of the window's second half, else a line end, a space, the edge of a grapheme."""
    at = max(text.rfind(gap, size // 2, size) for gap in ("\n\n", "\n\r\n"))
    if at < 0:
        at = text.rfind("\n", size // 2, size)
    least = max(size // 2, size - _LOOK_BACK)
    if at < 0:
        at = max(text.rfind(space, least, size) for space in (" ", "\t", "\r"))
    if at < 0:
        at = next((n for n in range(size, least, -1) if grapheme_edge(text, n)), size)
    return Cut(at)


def cut_markdown(text: str, size: int) -> Cut:
    """Before the last blank line outside of fences; a fence longer than the window is closed and opened again."""
    best, mark, opening = 0, "", ""
    for found in _BLANK_OR_FENCE.finditer(text, 0, size):
        drawn = found["mark"]
        if drawn is None:
            if not mark:
                best = found.start()
        elif not mark:
            mark, opening = drawn, found[0]
        elif drawn[0] == mark[0] and len(drawn) >= len(mark) and not found["rest"].strip():
            mark = ""
    if best > 0:
        return Cut(best)
    at = cut_plain(text, size).at
    return Cut(at, f"\n{mark}", opening[: min(_FENCE_CHARS, size // 4)].rstrip("\n")) if mark else Cut(at)
