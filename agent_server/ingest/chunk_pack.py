"""Which stretches of a document stand together in one chunk: greedy, in order, headings first.

Works on offsets alone; what a chunk says of itself (context, label, pages, hashes) is made in `chunk`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agent_server.ingest.chunk_cut import cut_prose, sentences, trim
from agent_server.ingest.chunk_rows import Parts, cut_code, cut_table
from agent_server.models import Block

PROSE = frozenset({"paragraph", "list_item", "definition"})
#: A number alone, "(iv)" or "2.": it names what follows, as a heading does.
_NUMBER = re.compile(
    r"(?:\((?:\d{1,4}|[ivxlcdm]{1,6}|[a-z]{1,2})\))+|(?:\d{1,4}|[ivxlcdm]{1,6}|[a-z])[.)]", re.IGNORECASE
)
_NUMBER_CHARS = 24


class Atom(NamedTuple):
    """What is never cut: a whole block, or a sentence, row, line or run of words of a block that was cut."""

    start: int
    end: int
    block: int  #: index of its block
    section: int  #: counts headings: equal numbers, same section
    whole: bool  #: the whole block
    fresh: bool = True  #: a sentence begins here
    prelude: int = 0  #: characters repeated before it where it begins a chunk
    closing: int = 0  #: characters added after it where it ends a chunk


@dataclass(slots=True)
class Group:
    """A chunk to be: its own atoms, and where its text begins (earlier, with overlap)."""

    start: int
    atoms: list[Atom] = field(default_factory=list)
    body: bool = False  #: holds something else than headings and numbers

    @property
    def end(self) -> int:
        return self.atoms[-1].end


class Packer:
    """Takes blocks in order; `groups` holds the finished chunks after `finish`. Sizes in characters."""

    def __init__(self, text: str, blocks: Sequence[Block], size: int, overlap: int) -> None:
        self.text = text
        self.blocks = blocks
        self.size = size
        self.most = size + size // 4  #: for what must stay together: headings with their text, tails
        self.overlap = overlap
        self.groups: list[Group] = []
        self.parts: dict[int, Parts] = {}  #: of code and tables that were cut, by block
        self._open: Group | None = None
        self._section = 0

    def pack(self) -> list[Group]:
        """The chunks to be, in order; together they hold every atom once."""
        at = 0
        for index, block in enumerate(self.blocks):
            start, end = self._stretch(block, at)
            at = block.end
            if start == end:
                continue
            if block.kind == "heading":
                self._heading(block)
            whole = Atom(start, end, index, self._section, whole=True)
            if end - start > self.size or not self._place(whole):
                for atom in self._cut(whole):
                    self._place(atom)
        if self._open and not self._merge_tail(self._open):
            self.groups.append(self._open)
        self._open = None
        return self.groups

    def _stretch(self, block: Block, at: int) -> tuple[int, int]:
        """The block without blanks around it, but with the indentation of its first line."""
        start, end = trim(self.text, block.start, block.end)
        if start == end:
            return start, end
        least = max(at, start - self.size // 4, self.text.rfind("\n", at, start) + 1)
        if least and self.text[least - 1] != "\n":
            return start, end  # not at the beginning of a line, or indented beyond reason
        return (least, end) if not self.text[least:start].strip() else (start, end)

    def _heading(self, block: Block) -> None:
        """Begin a section; its heading joins what is open only if that is headings, or tiny and above it."""
        self._section += 1
        group = self._open
        if group is None or not group.body:
            return
        if self._merge_tail(group):
            self._open = None
            return
        path = self.path(group)
        below = len(block.heading_path) > len(path) and block.heading_path[: len(path)] == path
        if not (below and group.end - group.start < self.size / 4):
            self.groups.append(group)
            self._open = None

    def path(self, group: Group) -> tuple[str, ...]:
        """The path of the first block that is neither heading nor number, else of the last block.

        What stands above the first heading of the document has no path and takes that of what follows it.
        """
        for atom in group.atoms:
            block = self.blocks[atom.block]
            if not self._names(atom) and block.heading_path:
                return block.heading_path
        return self.blocks[group.atoms[-1].block].heading_path

    def _cut(self, atom: Atom) -> list[Atom]:
        """The atoms of a block that must be cut."""
        kind = self.blocks[atom.block].kind
        if kind not in {"code", "table"}:
            cuts = cut_prose(self.text, atom.start, atom.end, self.size)
            # the indentation belongs to the first line
            return [
                Atom(atom.start if i == 0 else c.start, c.end, atom.block, atom.section, False, c.fresh)
                for i, c in enumerate(cuts)
            ]
        cutter = cut_code if kind == "code" else cut_table
        parts = cutter(self.text, atom.start, atom.end, self.size)
        self.parts[atom.block] = parts
        last = len(parts.cuts) - 1
        return [
            Atom(
                c.start,
                c.end,
                atom.block,
                atom.section,
                False,
                c.fresh,
                len(parts.prelude) if i else 0,
                len(parts.closing) + 1 if parts.closing and not (i == last and parts.closed) else 0,
            )
            for i, c in enumerate(parts.cuts)
        ]

    def _length(self, group: Group, atom: Atom) -> int:
        """Characters of the group's text with `atom` added; what is repeated counts for half a chunk at most."""
        repeated = group.atoms[0].prelude + atom.closing
        return atom.end - group.start + min(repeated, self.size // 2)

    def _place(self, atom: Atom) -> bool:
        """Add the atom to the open group or to a new one. False: it must be cut to stay with its headings."""
        while self._open is not None:
            length = self._length(self._open, atom)
            if length <= self.size or (not self._open.body and length <= self.most):
                break
            if not self._open.body and atom.whole and not self._names(atom):
                return False
            self._close()
        if self._open is None:
            self._open = Group(self._overlap(atom))
        self._open.atoms.append(atom)
        self._open.body = self._open.body or not self._names(atom)
        return True

    def _names(self, atom: Atom) -> bool:
        """Whether the atom is a heading, or a number alone on its line: both belong to what follows them."""
        block = self.blocks[atom.block]
        if block.kind == "heading":
            return True
        short = block.kind in PROSE and atom.whole and atom.end - atom.start <= _NUMBER_CHARS
        return short and _NUMBER.fullmatch(self.text[atom.start : atom.end].strip()) is not None

    def _close(self) -> None:
        """Finish the open group. Headings and numbers at its end go on with the text that belongs to them."""
        group = self._open
        if group is None:
            return
        keep = len(group.atoms)
        if group.body:
            while self._names(group.atoms[keep - 1]):
                keep -= 1
        carried = group.atoms[keep:]
        del group.atoms[keep:]
        self.groups.append(group)
        self._open = Group(carried[0].start, carried) if carried else None

    def _overlap(self, atom: Atom) -> int:
        """Where a chunk that begins with `atom` starts when it repeats the last sentences before it."""
        if not self.groups:
            return atom.start
        before = self.groups[-1]
        least = max(before.end - self.overlap, atom.end + min(atom.closing, self.size // 2) - self.size)
        best = atom.start
        for earlier in reversed(before.atoms):
            prose = self.blocks[earlier.block].kind in PROSE
            if not prose or earlier.section != atom.section or earlier.end <= least:
                break
            if not earlier.whole:
                starts = [earlier.start] if earlier.fresh else []
            else:
                starts = [earlier.start, *(lo for lo, _ in sentences(self.text, earlier.start, earlier.end))]
            best = min([best, *(s for s in starts if s >= least and s > before.start)])
        return best

    def _merge_tail(self, group: Group) -> bool:
        """Give a tiny last part of a section back to the chunk before it."""
        if not self.groups:
            return False
        before, first = self.groups[-1], group.atoms[0]
        if (
            group.end - first.start >= self.size / 5
            or before.atoms[-1].section != first.section
            or group.end - before.start > self.most
        ):
            return False
        before.atoms += group.atoms
        return True
