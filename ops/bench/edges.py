"""How well citations are found: against silver edges of US law, on PEPs, and on the GDPR.

    python ops/bench/edges.py FOLDER [--read] [--sample 100 --seed 1]

FOLDER holds `graph/cfpb` (silver edges of three parts of US law), `documents/credit` (the same parts, as they are
ingested), `documents/gdpr` and `documents/peps`. A private server is started for it and removed afterwards; the vectors
mean nothing, as citations are found by their form. `--read` prints every disagreement with the silver, `--sample` as
many edges of part 1002, and as many places of its text where a reference may stand, to be judged by reading.

An edge is a pair of paragraphs: the one that the words stand in and the one that is named. What only lies between the
ends of a range is counted apart, and so are references into another part. The silver lacks most references to comments
and the later items of lists; an edge that it lacks counts as right in a second figure when the name of the paragraph at
its end is what the words say ("1003-4-a-23" for "§ 1003.4(a)(23)").
"""

import argparse
import random
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.ingest.pipeline import ingest
from nightly import citations
from nightly.statements import fetch_all
from ops.bench import silver
from ops.bench.private import private_bank
from tests.hash_embedder import HashEmbedder

_REFERENCE = re.compile(
    r"§+|\b(?:[Ss]ection|[Pp]aragraph|[Aa]ppendix|[Cc]omment|[Ff]orm|[Pp]art|[Ss]upplement)(?:s|es)?\s+(?:[(\d]|[A-Z]\b)"
    r"|\b\d+ CFR\b|\bRegulation [A-Z]\b"
)


@dataclass(frozen=True)
class Edge:
    """A row of `links` or `dangling_links` in terms of documents; `target` is "" where it leads nowhere."""

    source: str
    at: int
    end: int
    target: str
    to: int
    anchor: str
    label: str
    reason: str = ""


@dataclass(frozen=True)
class Found:
    """What a collection's documents say and cite."""

    texts: dict[str, str]
    titles: dict[str, str]
    edges: list[Edge]
    seconds: float

    @cached_property
    def members(self) -> frozenset[Edge]:
        """What lies between the ends of a range: its words begin with one end and stop with the other."""
        begin = {(e.source, e.at): e.end for e in sorted(self.edges, key=lambda e: -e.end)}
        stop = {(e.source, e.end): e.at for e in sorted(self.edges, key=lambda e: e.at)}
        return frozenset(e for e in self.edges if begin[e.source, e.at] < e.end and stop[e.source, e.end] > e.at)

    def around(self, edge: Edge, before: int = 50, after: int = 40) -> str:
        text = self.texts[edge.source]
        left, right = text[max(edge.at - before, 0) : edge.at], text[edge.end : edge.end + after]
        return silver.flat(f"{left}[[{text[edge.at : edge.end]}]]{right}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--read", action="store_true", help="print every disagreement with the silver")
    parser.add_argument("--sample", type=int, default=0, help="so many edges and places of part 1002, to be judged")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with private_bank() as (database, _):
        documents = options.folder / "documents"
        law = found_in(database, "CREDIT", documents / "credit")
        for part in silver.PARTS:
            credit(law, options.folder, part, read=options.read)
        if options.sample:
            sample(law, options.sample, options.seed)
        gdpr(found_in(database, "GDPR", documents / "gdpr"), read=options.read)
        peps(found_in(database, "PEPS", documents / "peps"), read=options.read)


def found_in(database: Database, name: str, folder: Path) -> Found:
    """Ingest a folder and read its citations."""
    embedder = HashEmbedder()
    collection = create_collection(database, name, embedder.identity())
    ingest(database, name, [folder], embedder)
    report = citations.refresh(database, collection, everything=True)
    texts: dict[str, str] = {}
    titles: dict[str, str] = {}
    shift: dict[int, tuple[str, int]] = {}
    with database.owner(collection.schema_name) as connection:
        for (source,) in connection.execute("SELECT source FROM files ORDER BY 1").fetchall():
            rows = fetch_all(connection, "citations_passages", {"source": source, "limit": 10**6})
            out = ["\n"] * max(r["char_end"] for r in rows)
            for r in rows:
                lead = max((m[2] for m in r["marks"] if m[0] == "repeated"), default=0)
                out[r["char_start"] : r["char_end"]] = r["text"][lead : lead + r["char_end"] - r["char_start"]]
                shift[r["id"]] = source, r["char_start"] - lead
            texts[source], titles[source] = "".join(out), rows[0]["title"]
        links: list[Any] = connection.execute(
            "SELECT from_chunk, from_start, from_end, to_chunk, to_start, anchor, target_label, '' FROM links"
            " WHERE relation = 'cites' UNION ALL"
            " SELECT from_chunk, from_start, from_end, NULL, 0, anchor, target_label, reason FROM dangling_links"
        ).fetchall()
    edges = set()
    for origin, start, end, target, to, anchor, label, reason in links:
        source, moved = shift[origin]
        other, landed = shift[target] if target is not None else ("", 0)
        edges.add(Edge(source, moved + start, moved + end, other, landed + to, anchor, label, reason))
    ordered = sorted(edges, key=lambda e: (e.source, e.at, e.end, e.target, e.to))
    return Found(texts, titles, ordered, report.seconds)


# -- the silver -------------------------------------------------------------------------------------------------


def credit(found: Found, folder: Path, part: str, *, read: bool) -> None:
    """Precision and recall of a part's edges."""
    source = f"12-cfr-{part}.md"
    paragraphs = silver.Paragraphs(folder, part, found.texts[source])
    gold = silver.citations(folder, part)
    made: dict[tuple[str, str], Edge] = {}
    members, crossing, dangling = set(), 0, 0
    for edge in found.edges:
        if edge.source != source:
            continue
        if edge.target != source:
            crossing += bool(edge.target)
            dangling += not edge.target
            continue
        pair = paragraphs.at(edge.at), paragraphs.at(edge.to)
        if pair[0] == pair[1]:
            continue
        if edge in found.members:
            members.add(pair)
        else:
            made.setdefault(pair, edge)
    members -= set(made)
    right = set(made) & set(gold)
    precision, recall = len(right) / len(made), len(right) / len(gold)
    f1 = 2 * precision * recall / (precision + recall)
    print(f"part {part}: {len(made)} edges, {len(gold)} in the silver, {len(right)} in both")
    print(f"  precision {precision:.3f}  recall {recall:.3f}  F1 {f1:.3f}")
    named = sum(silver.bears(pair[1], made[pair].label) for pair in set(made) - right)
    print(
        f"  of the {len(made) - len(right)} only found here {named} lead to the paragraph that the words name:"
        f" precision with them {(len(right) + named) / len(made):.3f}"
    )
    print(f"  apart: {len(members)} members of ranges ({len(members & set(gold))} in the silver), ", end="")
    print(f"{crossing} references into other parts, {dangling} that lead nowhere")
    if read:
        for pair in sorted(set(made) - right):
            print(f"    only found   {pair[0]} -> {pair[1]}: {found.around(made[pair])}")
        for pair in sorted(set(gold) - right):
            start, end = gold[pair]
            words = paragraphs.words[pair[0]]
            print(f"    only silver  {pair[0]} -> {pair[1]}: {words[max(start - 50, 0) : start]}[[{words[start:end]}]]"
                  f"{words[end : end + 40]}{'  (a member)' if pair in members else ''}")  # fmt: skip


def sample(found: Found, count: int, seed: int) -> None:
    """Edges of part 1002, and places of its text that look like references with what was made of them."""
    source = "12-cfr-1002.md"
    text = found.texts[source]
    own = [e for e in found.edges if e.source == source]
    dice = random.Random(seed)
    edges = [e for e in own if e.target]
    print(f"{count} of {len(edges)} edges:")
    for edge in sorted(dice.sample(edges, min(count, len(edges))), key=lambda e: e.at):
        place = silver.flat(found.texts[edge.target][edge.to : edge.to + 70])
        where = "" if edge.target == source else f"{edge.target} "
        print(f"  {found.around(edge)}\n      {edge.label} -> {where}{edge.to}: {place}")
    places = [m.start() for m in _REFERENCE.finditer(text) if text[text.rfind("\n", 0, m.start()) + 1] != "#"]
    print(f"{count} of {len(places)} places:")
    for at in sorted(dice.sample(places, min(count, len(places)))):
        near = [e for e in own if e.at <= at + 12 and at < e.end + 2]
        says = "; ".join(
            f"{e.label} -> {silver.flat(found.texts[e.target][e.to : e.to + 40]) if e.target else e.reason}"
            for e in near
        )
        print(f"  {silver.flat(text[max(at - 50, 0) : at])} [[]]{silver.flat(text[at : at + 90])}")
        print(f"      {says or 'NOTHING'}")


# -- other collections ------------------------------------------------------------------------------------------


def gdpr(found: Found, *, read: bool) -> None:
    """References to articles that exist: how many lead to that article's text."""
    text = next(iter(found.texts.values()))
    starts = {int(m[1]): m.start() for m in re.finditer(r"^Article (\d+) - ", text, re.MULTILINE)}
    order = sorted(starts.values())
    ends = {n: next((s for s in order if s > at), len(text)) for n, at in starts.items()}
    own, right, wrong = 0, 0, []
    for m in re.finditer(r"\bArticles?\s+(\d+)(?!\d)(?:\((\d+)\))?(?!\s+-\s)", text):
        number = int(m[1])
        if number not in starts or re.match(
            r"[^.;]{0,40}?\bof (?:that |the )?(?:Directive|Regulation \(|TFEU|Treaty|Charter)|\s*TFEU", text[m.end() :]
        ):
            continue
        own += 1
        at = m.start(1)
        led = [e for e in found.edges if e.target and e.at <= at < e.end and e not in found.members]
        good = any(starts[number] <= e.to < ends[number] for e in led)
        if good and m[2]:
            good = any(re.match(rf"\({m[2]}\)", text[e.to :]) or starts[number] <= e.to < ends[number] for e in led)
        right += good
        if not good:
            wrong.append((m.start(), led))
    exact = [e for e in found.edges if e.target and re.fullmatch(r"Article \d+\(\d+\)", e.label)]
    there = sum(text.startswith(f"({re.split(r'[()]', e.label)[1]})", e.to) for e in exact)
    print(f"GDPR: {len(found.edges)} references in {found.seconds:.2f} s")
    print(f"  to articles that exist: {right} of {own} = {right / own:.3f} lead there")
    print(f"  to their paragraphs: {there} of {len(exact)}")
    if read:
        for at, led in wrong:
            print(f"    {silver.flat(text[max(at - 40, 0) : at + 60])}: {[(e.label, e.to) for e in led]}")
    reasons = sorted({e.label for e in found.edges if not e.target})
    print(f"  leading nowhere: {reasons[:40]}")


def peps(found: Found, *, read: bool) -> None:
    """Roles, "PEP n" and links between the PEPs that are there: how many lead to the right document or section."""
    have = {int(m[1]): s for s in found.texts if (m := re.search(r"pep-0*(\d+)", s))}
    roles, plain, missed = [0, 0], [0, 0], []
    for source, text in found.texts.items():
        own = [e for e in found.edges if e.source == source]
        for pattern, count in ((_ROLE, roles), (_PLAIN, plain)):
            for m in pattern.finditer(text):
                target = have.get(int(m["number"]))
                if target is None or target == source or in_code(text, m.start()):
                    continue
                count[0] += 1
                led = [e for e in own if e.target and e.at < m.end() and m.start() < e.end]
                if any(e.target == target for e in led):
                    count[1] += 1
                else:
                    missed.append(f"{source}: {silver.flat(text[max(m.start() - 30, 0) : m.end() + 30])}")
    print(f"PEPs: {len(found.edges)} references in {found.seconds:.2f} s")
    print(
        f'  roles that lead to their PEP: {roles[1]} of {roles[0]}; "PEP n" outside of code: {plain[1]} of {plain[0]}'
    )
    sections = [e for e in found.edges if e.target and not re.fullmatch(r"(?:PEP|RFC) \d+", e.label)]
    lost = [e for e in found.edges if not e.target and not re.match(r"(?:PEP|RFC) \d+\Z", e.label)]
    print(f"  links to sections: {len(sections)}; named sections that were not found: {len(lost)}")
    if read:
        for line in missed:
            print(f"    {line}")
        for edge in lost:
            print(f"    {edge.source}: {found.around(edge, 20, 20)}: {edge.reason}")
        for edge in sections:
            place = silver.flat(found.texts[edge.target][edge.to : edge.to + 60])
            print(f"    {edge.source}: {found.around(edge, 10, 10)} -> {edge.target}: {place}")


_ROLE = re.compile(r":pep:`(?:[^`<]*<)?(?P<number>\d+)[^`]*`")
_PLAIN = re.compile(r"(?<![\w`:])PEPs? (?P<number>\d+)\b")


def in_code(text: str, at: int) -> bool:
    """Whether the line is indented as literal blocks are, or the words stand in double backticks."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line.startswith("    ") or line.count("``") % 2 == 1 or text.startswith("PEP: ", at)


if __name__ == "__main__":
    main()
