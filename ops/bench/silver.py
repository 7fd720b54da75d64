"""Silver citation edges of three parts of US law, and the paragraphs that they name in the documents as ingested."""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

PARTS = ("1002", "1003", "1030")
_BLOCK = re.compile(r"[^\n](?:[^\n]|\n(?!\n))*")


def flat(text: str) -> str:
    return " ".join(text.split())


def bears(name: str, label: str) -> bool:
    """Whether a paragraph ("1003-4-a-Interp-2") bears the name that a label gives it ("Comment 4(a), Entry (2)")."""
    said = label.replace("Entry", "Interp")
    for word in ("Comment", "Paragraph", "Appendix", "Part", "Point"):
        said = said.replace(word, "")
    words = re.findall(r"[0-9A-Za-z]+", said)
    return bool(words) and name.split("-")[-len(words) :] == words


class Paragraphs:
    """The paragraphs of a part: their names, words, and where they stand in the part's document."""

    def __init__(self, folder: Path, part: str, text: str) -> None:
        self.words: dict[str, str] = {}
        self.titles: dict[str, str] = {}
        with (folder / "graph/cfpb/corpus.jsonl").open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                if row["_id"].split("-")[0] == part:
                    self.words[row["_id"]] = flat(row["text"])
                    self.titles[row["_id"]] = flat(row["title"])
        self._names = list(self.words)
        self._order = {name: n for n, name in enumerate(self._names)}
        self._place(text)

    def _place(self, text: str) -> None:
        """Give every block of the document its paragraph: by its words, headings by what stands around them."""
        by_words: dict[str, list[str]] = defaultdict(list)
        for name, words in self.words.items():
            if words:
                by_words[words].append(name)
        blocks = [(m.start(), flat(m[0])) for m in _BLOCK.finditer(text)]
        matched: list[str] = []
        used: set[str] = set()
        last = -1
        for _, words in blocks:
            free = [name for name in by_words.get(words, []) if name not in used]
            name = min(free, key=lambda n: (self._order[n] < last, abs(self._order[n] - last)), default="")
            if name:
                used.add(name)
                last = self._order[name]
            matched.append(name)
        self._starts = [start for start, _ in blocks]
        self._at = [name or self._heading(blocks, matched, n, used) for n, name in enumerate(matched)]

    def _heading(self, blocks: list[tuple[int, str]], matched: list[str], index: int, used: set[str]) -> str:
        """A heading is a paragraph without words of that title, else the beginning of what follows it."""
        before = next((self._order[m] for m in reversed(matched[:index]) if m), -1)
        following = next((m for m in matched[index:] if m), "")
        end = self._order[following] if following else len(self._names)
        title = blocks[index][1].lstrip("# ")
        free = [n for n in self._names[before + 1 : end] if n not in used and self.titles[n] == title]
        return free[0] if free else following

    def at(self, offset: int) -> str:
        """The paragraph that holds the character."""
        return self._at[max(bisect_right(self._starts, offset) - 1, 0)]


def citations(folder: Path, part: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Edges of a part between different paragraphs, each with the offsets of one of its references."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    with (folder / "graph/cfpb/citation_edges.tsv").open(encoding="utf-8") as lines:
        for line in list(lines)[1:]:
            source, target, start, end = line.rstrip("\n").split("\t")
            if source.split("-")[0] == part and source != target:
                found.setdefault((source, target), (int(start), int(end)))
    return found
