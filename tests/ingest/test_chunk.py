"""Chunking: verbatim, on structure, one heading path each, nothing lost, nothing endless."""

import re
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_server.errors import InvalidArgument
from agent_server.ingest.chunk import chunk_document
from agent_server.ingest.chunk_label import context, number_of
from agent_server.ingest.paragraphs import paragraph_hash
from agent_server.models import Block, BlockKind, Chunk, Document, Page

Piece = tuple[BlockKind, str] | tuple[BlockKind, str, int]

SENTENCE = "The clerk shall keep a copy of the notice for seven years. "


def document(*pieces: Piece, title: str = "Guide", gap: str = "\n\n", pages: Sequence[Page] = ()) -> Document:
    """A document of blocks one after the other; a heading's third value is its level."""
    text = ""
    blocks: list[Block] = []
    path: list[tuple[int, str]] = []
    for kind, content, *level in pieces:
        text += gap if text else ""
        start = len(text)
        text += content
        if kind == "heading":
            path = [(n, t) for n, t in path if n < level[0]]
            path.append((level[0], content.strip("# \n")))
        names = tuple(t for _, t in path)
        blocks.append(Block(kind, start, len(text), names, level[0] if level else 0))
    return Document(title, text, tuple(blocks), tuple(pages))


def slices_hold(doc: Document, chunks: Sequence[Chunk]) -> None:
    for chunk in chunks:
        part = doc.text[chunk.char_start : chunk.char_end]
        assert chunk.text.startswith(chunk.prelude + part)
        assert chunk.text.strip()
        assert part == part.rstrip() and part.split("\n", 1)[0].strip()
        for paragraph in chunk.paragraphs:
            assert chunk.text[paragraph.start : paragraph.end].strip()


def covered(doc: Document, chunks: Sequence[Chunk]) -> bool:
    seen = bytearray(len(doc.text))
    for chunk in chunks:
        seen[chunk.char_start : chunk.char_end] = b"\1" * (chunk.char_end - chunk.char_start)
    return all(seen[i] or letter.isspace() for i, letter in enumerate(doc.text))


# --- headings -----------------------------------------------------------------------------------------------


def test_a_heading_starts_a_new_chunk() -> None:
    doc = document(
        ("heading", "# Loans", 1),
        ("paragraph", SENTENCE * 5),
        ("heading", "# Fees", 1),
        ("paragraph", "Ten."),
    )
    chunks = chunk_document(doc)
    assert [c.heading_path for c in chunks] == [("Loans",), ("Fees",)]
    assert chunks[1].text == "# Fees\n\nTen."


def test_headings_in_a_row_stand_with_the_text_below_the_last() -> None:
    doc = document(("heading", "# A", 1), ("heading", "## B", 2), ("paragraph", SENTENCE * 13))
    (chunk,) = chunk_document(doc)
    assert chunk.text.startswith("# A\n\n## B\n\nThe clerk")
    assert chunk.heading_path == ("A", "B")


def test_a_tiny_introduction_stays_with_the_deeper_section_below_it() -> None:
    doc = document(("heading", "# A", 1), ("paragraph", "Short."), ("heading", "## B", 2), ("paragraph", SENTENCE * 3))
    (chunk,) = chunk_document(doc)
    assert chunk.heading_path == ("A",)


def test_a_line_above_the_first_heading_takes_the_path_of_what_follows() -> None:
    doc = document(
        ("paragraph", ".. _anchor:"),
        ("heading", "1 Scope", 1),
        ("paragraph", SENTENCE),
        ("heading", "1.1 X", 2),
    )
    first = chunk_document(doc)[0]
    assert first.text.startswith(".. _anchor:\n\n1 Scope\n\nThe clerk")
    assert (first.heading_path, first.label) == (("1 Scope",), "1")


def test_a_tiny_section_is_not_merged_with_its_neighbour() -> None:
    doc = document(("heading", "## A", 2), ("paragraph", "Short."), ("heading", "## B", 2), ("paragraph", "Also."))
    assert [c.heading_path for c in chunk_document(doc)] == [("A",), ("B",)]


@pytest.mark.parametrize("number", ["(iv)", "(b)", "2.", "(a)(1)", "12)"])
def test_a_number_alone_stands_with_what_it_numbers(number: str) -> None:
    doc = document(
        ("heading", "## Tiers", 2),
        ("list_item", number),
        ("heading", "## Method", 2),
        ("paragraph", SENTENCE * 3),
        ("paragraph", number),
        ("paragraph", SENTENCE * 11),
    )
    chunks = chunk_document(doc)
    assert chunks[0].text.startswith(f"## Tiers\n\n{number}\n\n## Method\n\nThe clerk")
    assert chunks[0].heading_path == ("Method",)
    assert not chunks[0].text.endswith(number)
    assert chunks[1].text.endswith(f"{number}\n\n{(SENTENCE * 11).strip()}")
    assert covered(doc, chunks)


def test_a_number_with_nothing_to_number_and_a_short_answer_are_kept() -> None:
    doc = document(("heading", "# A", 1), ("paragraph", "None."), ("heading", "# B", 1), ("paragraph", "(iv)"))
    assert [c.text for c in chunk_document(doc)] == ["# A\n\nNone.", "# B\n\n(iv)"]


def test_a_heading_never_ends_a_chunk_whose_text_begins_the_next() -> None:
    doc = document(
        ("heading", "# A", 1),
        ("paragraph", "Short. " * 20),
        ("heading", "## B", 2),
        ("paragraph", SENTENCE * 12),
    )
    first, second = chunk_document(doc)
    assert first.text.startswith("# A") and "## B" not in first.text
    assert second.text.startswith("## B\n\nThe clerk")


def test_headings_alone_at_the_end_are_kept() -> None:
    doc = document(("heading", "# A", 1), ("paragraph", SENTENCE * 5), ("heading", "# Notes", 1))
    assert [c.text for c in chunk_document(doc)][1:] == ["# Notes"]


def test_a_document_without_headings_has_an_empty_path() -> None:
    (chunk,) = chunk_document(document(("paragraph", "Only this.")))
    assert (chunk.heading_path, chunk.context, chunk.label) == ((), "Guide", "")


def test_a_comment_in_a_fence_is_no_heading() -> None:  # B68
    doc = document(("heading", "# Guide", 1), ("code", "```bash\n# install\nmake\n```"))
    (chunk,) = chunk_document(doc)
    assert chunk.heading_path == ("Guide",)


# --- prose --------------------------------------------------------------------------------------------------


def test_paragraphs_that_fit_stay_whole() -> None:
    paragraphs = [f"Paragraph {n}: " + SENTENCE * 5 for n in range(8)]
    doc = document(*(("paragraph", p.strip()) for p in paragraphs))
    chunks = chunk_document(doc)
    assert all(sum(p.strip() in c.text for c in chunks) == 1 for p in paragraphs)


def test_a_long_paragraph_is_cut_after_sentences_and_overlaps_by_whole_ones() -> None:
    doc = document(("paragraph", "".join(f"Sentence number {n} says little. " for n in range(200)).strip()))
    chunks = chunk_document(doc)
    assert len(chunks) > 5
    for before, after in pairwise(chunks):
        assert before.text.endswith(".") and after.text.startswith("Sentence number")
        assert 0 < before.char_end - after.char_start <= 100
    slices_hold(doc, chunks)


def test_abbreviations_and_list_numbers_do_not_end_a_sentence() -> None:
    text = "See Art. 6 and No. 4 of the U.S. Code, e.g. the part by J. Smith on 1.5 per cent. " * 30
    chunks = chunk_document(document(("paragraph", text.strip())), size=200, overlap=0)
    assert all(c.text.endswith("per cent.") for c in chunks)


def test_sentences_of_chinese_end_without_blanks() -> None:
    chunks = chunk_document(document(("paragraph", "贷款应在三十天内偿还。" * 200)), size=200, overlap=30)
    assert all(c.text.endswith("。") and len(c.text) <= 200 for c in chunks)


def test_a_sentence_without_end_is_cut_at_clauses_or_words() -> None:
    doc = document(("paragraph", "one two three four five, " * 100))
    chunks = chunk_document(doc)
    assert covered(doc, chunks) and all(c.text.endswith(",") for c in chunks[:-1])
    words = chunk_document(document(("paragraph", "alpha beta " * 300)))
    assert all(set(c.text.split()) == {"alpha", "beta"} for c in words)


def test_overlap_never_crosses_a_heading() -> None:
    doc = document(
        ("heading", "# A", 1),
        ("paragraph", SENTENCE * 20),
        ("heading", "# B", 1),
        ("paragraph", SENTENCE * 20),
    )
    chunks = chunk_document(doc)
    at = doc.text.index("# B")
    assert next(c.char_start for c in chunks if c.char_start >= at) == at
    assert all(c.char_end <= at for c in chunks if c.char_start < at)


def test_without_a_sentence_that_fits_there_is_no_overlap() -> None:
    long = "This sentence has rather more than fifty characters in it, all told. "
    chunks = chunk_document(document(("paragraph", (long * 30).strip())), overlap=50)
    assert all(a.char_end < b.char_start for a, b in pairwise(chunks))


def test_a_tiny_tail_goes_back_to_its_section() -> None:
    doc = document(("paragraph", SENTENCE.strip() + " " + SENTENCE * 12), ("paragraph", "The end."))
    (chunk,) = chunk_document(doc, size=780)
    assert chunk.text.endswith("The end.")


def test_indentation_of_the_first_line_stays() -> None:
    doc = document(("paragraph", "Intro."), ("list_item", "    - inner item"), ("code", "    x = 1\n    y = 2"))
    assert [c.text for c in chunk_document(doc, size=20, overlap=0)] == [
        "Intro.",
        "    - inner item",
        "    x = 1\n    y = 2",
    ]
    text = "Introduction.\n\n    y = 2"
    bare = Document("t", text, (Block("paragraph", 0, 13, ()), Block("code", 19, 24, ())))
    assert [c.text for c in chunk_document(bare, size=16, overlap=0)] == ["Introduction.", "    y = 2"]


# --- code and tables ----------------------------------------------------------------------------------------


def test_a_fence_that_fits_is_kept_whole() -> None:
    fence = "```python\n" + "x = 1\n" * 80 + "```"
    doc = document(("paragraph", SENTENCE * 8), ("code", fence), ("paragraph", SENTENCE * 8))
    assert sum(fence in c.text for c in chunk_document(doc)) == 1


@pytest.mark.parametrize("end", ["\n```", ""])
def test_each_part_of_a_long_fence_is_opened_and_closed(end: str) -> None:  # B69
    fence = "```python\n" + "".join(f"value_{n} = compute({n})\n" for n in range(150)).strip() + end
    doc = document(("heading", "# A", 1), ("code", fence))
    chunks = chunk_document(doc)
    slices_hold(doc, chunks)
    assert covered(doc, chunks) and len(chunks) > 4
    assert all(re.findall(r"^```", c.text, re.M) == ["```", "```"] for c in chunks)
    assert [c.prelude for c in chunks] == [""] + ["```python\n"] * (len(chunks) - 1)
    assert all(c.text.endswith("\n```") and len(c.text) <= 1000 for c in chunks)


def test_the_closing_mark_is_as_long_as_the_opening_one() -> None:
    fence = "- ~~~~sh\n" + "  echo ~~~ done\n" * 60 + "  ~~~~"
    chunks = chunk_document(document(("code", fence)), size=300, overlap=0)
    assert all(c.text.splitlines()[-1] == "  ~~~~" for c in chunks)


def test_a_fence_never_closed_loses_nothing_and_does_not_touch_what_follows() -> None:  # B69
    doc = document(("heading", "# A", 1), ("code", "```\ncode\n# B\ntext\n``` done"))
    (chunk,) = chunk_document(doc)
    assert chunk.text == doc.text and chunk.heading_path == ("A",)


def _table(rows: int) -> str:
    head = "| Code | Fee |\n|:-----|----:|\n"
    return head + "\n".join(f"| F-{n:03} \\| old | {n} dollars and some words |" for n in range(rows))


def test_each_part_of_a_long_table_begins_with_its_header() -> None:  # B70
    doc = document(("heading", "# Fees", 1), ("table", _table(60)))
    chunks = chunk_document(doc)
    slices_hold(doc, chunks)
    assert covered(doc, chunks)
    head = "| Code | Fee |\n|:-----|----:|\n"
    assert [c.prelude for c in chunks] == [""] + [head] * (len(chunks) - 1)
    (row,) = [c for c in chunks if "F-055" in c.text]
    assert row.text.startswith(head) and "| F-055 \\| old | 55 dollars and some words |" in row.text
    for chunk in chunks:  # rows are not cut
        assert all(r.startswith("|") and r.endswith("|") for r in chunk.text.split("\n\n")[-1].splitlines())


def test_a_row_too_long_for_a_chunk_is_cut_at_cells_but_not_at_an_escaped_pipe() -> None:
    row = "| " + " | ".join(f"cell {n} a\\|b" for n in range(40)) + " |"
    chunks = chunk_document(document(("table", "| A | B |\n|---|---|\n" + row)), size=200, overlap=0)
    assert len(chunks) > 2
    assert all(c.text.endswith("|") and not c.text.endswith("\\|") for c in chunks)


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("=====  =====\nCode   Fee\n=====  =====\n", "A{:03}   low\n       and more\n"),
        ("  Code   Fee\n  -----  -----\n", "  A{:03}   low and more\n"),
        (
            ".. list-table:: Fees\n   :header-rows: 1\n\n   * - Code\n     - Fee\n",
            "   * - A{:03}\n     - low\n",
        ),
        (
            ".. table:: Fees\n\n   =====  =====\n   Code   Fee\n   =====  =====\n",
            "   A{:03}   low\n          and more\n",
        ),
        ("+------+------+\n| Code | Fee  |\n+======+======+\n", "| A{:03} | low  |\n+------+------+\n"),
    ],
)
def test_tables_in_other_notations_repeat_their_header_too(head: str, row: str) -> None:
    table = head + "".join(row.format(n) for n in range(40)) + ("=====  =====" if head[0] == "=" else "")
    doc = document(("table", table.rstrip()))
    chunks = chunk_document(doc, size=300, overlap=0)
    slices_hold(doc, chunks)
    assert covered(doc, chunks)
    assert {c.prelude for c in chunks[1:]} == {head}
    body = [c.text.removeprefix(head).strip() for c in chunks]
    assert all(b.startswith(("A", "| A", "* - A")) for b in body)


# --- odd input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "overlap"), [(50, 50), (50, 80), (50, -1), (0, 0)])
def test_an_overlap_that_leaves_no_progress_is_refused(size: int, overlap: int) -> None:  # B66
    with pytest.raises(InvalidArgument):
        chunk_document(document(("paragraph", "abc")), size=size, overlap=overlap)


@pytest.mark.parametrize(
    ("text", "size", "overlap"),
    [("abc\n" * 50, 50, 49), ("x" * 5000, 800, 100), ("a. " * 300, 50, 49), ("Tail. " + "y" * 790, 800, 790)],
)
def test_every_chunk_brings_new_text(text: str, size: int, overlap: int) -> None:  # B66
    doc = document(("paragraph", text))
    chunks = chunk_document(doc, size=size, overlap=overlap)
    starts = [c.char_start for c in chunks]
    assert starts == sorted(set(starts)) and [c.char_end for c in chunks] == sorted({c.char_end for c in chunks})
    assert covered(doc, chunks) and len(chunks) < len(text)


def test_a_very_long_word_is_cut_and_leaves_no_empty_first_chunk() -> None:  # B67
    doc = document(("paragraph", "x" * 3000))
    chunks = chunk_document(doc)
    assert "".join(c.text for c in chunks) == doc.text
    assert all(0 < len(c.text) <= 800 for c in chunks)


@pytest.mark.parametrize("grapheme", ["e\u0323\u0302", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "क\u094dष"])
def test_a_hard_cut_leaves_graphemes_whole(grapheme: str) -> None:  # B67
    for before in ("", "x", "xy"):
        chunks = chunk_document(document(("paragraph", before + grapheme * 600)), size=100, overlap=0)
        assert len(chunks) > 5
        assert all(c.text.endswith(grapheme) and c.text.startswith(grapheme) for c in chunks[1:])


def test_nothing_but_blanks_makes_no_chunk() -> None:
    assert chunk_document(Document("t", "", ())) == []
    assert chunk_document(Document("t", " \n\n ", (Block("paragraph", 0, 4, ()),))) == []


def test_a_long_gap_of_blanks_is_not_carried_along() -> None:
    chunks = chunk_document(document(("paragraph", "One."), ("paragraph", "Two."), gap="\n" * 5000))
    assert [c.text for c in chunks] == ["One.", "Two."]
    inner = chunk_document(document(("paragraph", "One" + " " * 5000 + "two")))
    assert [c.text for c in inner] == ["One", "two"]


@pytest.mark.parametrize(
    "make",
    [
        lambda n: document(("paragraph", "." * n)),
        lambda n: document(("paragraph", " ".join("a" * (n // 2)))),
        lambda n: document(("paragraph", "\n" + " " * n + "x\n" + "\u0301" * n)),
        lambda n: document(("table", "| a |\n|---|\n" + "|" * n)),
        lambda n: document(("code", "```\n" + "`" * n)),
        lambda n: document(*(("list_item", "- x") for _ in range(n // 8)), gap="\n"),
        lambda n: document(*(("heading", "# x", 1) for _ in range(n // 8)), gap="\n"),
    ],
)
def test_hostile_text_takes_time_in_proportion(make: Callable[[int], Document]) -> None:
    def seconds(n: int) -> float:
        doc = make(n)
        begun = time.perf_counter()
        chunk_document(doc)
        return time.perf_counter() - begun

    assert seconds(400_000) < max(5.0, 12 * seconds(100_000))


# --- pages, labels, context ---------------------------------------------------------------------------------


def test_pages_of_a_chunk_are_those_of_its_first_and_last_letter() -> None:  # B74
    one, two, three = SENTENCE * 4, SENTENCE * 4, SENTENCE * 10
    doc = document(("paragraph", one), ("paragraph", two), ("paragraph", three), gap="")
    a, b = len(one), len(one + two)
    pages = (Page(1, 0, a, "i"), Page(2, a, b, "ii"), Page(3, b, b, "iii"), Page(4, b, len(doc.text), "1"))
    chunks = chunk_document(Document("t", doc.text, doc.blocks, pages), overlap=0)
    assert [(c.page_first, c.page_last) for c in chunks] == [(1, 2), (4, 4)]
    assert {(c.page_first, c.page_last) for c in chunk_document(doc)} == {(None, None)}


@pytest.mark.parametrize(
    ("heading", "number"),
    [
        ("4.2 Fees", "4.2"),
        ("4.2. Fees", "4.2"),
        ("§ 1002.9 Notifications", "§ 1002.9"),
        ("§1002.9(a) Notices", "§ 1002.9(a)"),
        ("Article 6", "Article 6"),
        ("ARTICLE 6 Lawfulness", "Article 6"),
        ("Art. 6 DSGVO", "Article 6"),
        ("Policy 5112: Attendance", "Policy 5112"),
        ("Appendix B", "Appendix B"),
        ("Appendix B to Part 1002", "Appendix B"),
        ("Part II — Rules", "Part II"),
        ("5112.4 Truancy", "5112.4"),
        ("A.1 Forms", "A.1"),
        ("12 CFR Part 1002 Equal Credit", "Part 1002"),
        ("2(f) Application.", "2(f)"),
        ("Paragraph 4(a)(8)(ii)", "Paragraph 4(a)(8)(ii)"),
        ("Form C-4—Sample Notice", "Form C-4"),
        ("B-10—Sample Form", "B-10"),
        ("REGULATION JX-310: NOTICES", "Regulation JX-310"),
        ("Circular 23-10: Longer grace", "Circular 23-10"),
        ("Section 1002.13—Information", "Section 1002.13"),
        ("5 reasons (a list)", "5"),
        ("Form letters", ""),
        ("Policy on fees", ""),
        ("PEP 8 – Style Guide", "PEP 8"),
        ("3. Scope", "3"),
        ("IV. Penalties", "IV"),
        ("Part of the whole", ""),
        ("Title in bold", ""),
        ("2024 Annual report", ""),
        ("2024-01-31", ""),
        ("Introduction", ""),
        ("1984", ""),
        ("Rule of law", ""),
        ("Section", ""),
    ],
)
def test_the_number_of_a_heading(heading: str, number: str) -> None:
    assert number_of(heading) == number


def test_the_label_is_that_of_the_innermost_numbered_heading() -> None:
    doc = document(("heading", "4 Fees", 1), ("heading", "4.2 Late", 2), ("heading", "Notes", 3), ("paragraph", "x"))
    assert chunk_document(doc)[0].label == "4.2"


def test_the_context_names_repeated_neighbours_once() -> None:
    assert context("Loans", ("LOANS", "Fees", "Fees")) == "Loans > Fees"
    assert context("Guide", ("Loans", "Fees")) == "Guide > Loans > Fees"


def test_a_long_context_drops_its_middle() -> None:
    assert context("Guide", ("m" * 100, "n" * 100, "Last")) == f"Guide > {'n' * 100} > Last"
    assert context("Guide", ("m" * 190, "Last")) == "Guide > Last"
    long = context("t" * 300, ("s" * 300,))
    assert len(long) <= 200 and " > s" in long


# --- paragraph hashes ---------------------------------------------------------------------------------------

SHARED = (
    "A member who borrows equipment must return it within thirty days of the notice. "
    "The board may extend this period once, for good cause shown in writing by the member. "
    "Whoever returns equipment late owes a fee of two dollars for every day of delay. "
    "The fee never exceeds the price for which the equipment could be bought new. "
    "No fee is due while the library is closed for the holidays."
)


def test_a_shared_paragraph_stands_whole_in_one_chunk_of_each_document() -> None:
    wanted = paragraph_hash(SHARED)
    repeats = 0
    for n in range(200):
        before: list[Piece] = [
            ("paragraph", f"Entry {n}-{i} is unlike the others. " * (1 + (n * 7 + i) % 9)) for i in range(n % 5)
        ]
        after: list[Piece] = [
            ("paragraph", f"Remark {n}-{i} follows from it. " * (1 + (n * 3 + i) % 23)) for i in range(1 + n % 4)
        ]
        doc = document(*before, ("paragraph", SHARED), *after)
        chunks = chunk_document(doc)
        slices_hold(doc, chunks)
        assert sum(SHARED in c.text for c in chunks) == 1
        for chunk in chunks:
            listed = [chunk.text[p.start : p.end] for p in chunk.paragraphs if p.hash == wanted]
            if SHARED in chunk.text:
                assert listed == [SHARED]
            elif SHARED[-59:] in chunk.text:
                assert listed == [SHARED[-59:]]
                repeats += 1
            else:
                assert listed == []
    assert repeats > 10


def test_a_quotation_and_a_list_item_have_the_hash_of_the_paragraph() -> None:
    quoted = "> " + SHARED.replace(". ", ".\n> ")
    doc = document(("paragraph", SHARED), ("paragraph", quoted), ("list_item", "- " + SHARED))
    hashes = [p.hash for c in chunk_document(doc, size=450, overlap=0) for p in c.paragraphs]
    assert hashes == [paragraph_hash(SHARED)] * 3


def test_a_hash_is_listed_once_in_a_chunk() -> None:
    doc = document(("paragraph", SHARED), ("paragraph", SHARED))
    (chunk,) = chunk_document(doc, size=900)
    assert [p.hash for p in chunk.paragraphs] == [paragraph_hash(SHARED)]


def test_a_cut_paragraph_is_hashed_stretch_by_stretch() -> None:
    doc = document(("paragraph", "".join(f"Sentence number {n} says little. " for n in range(60)).strip()))
    first, second, *_ = chunk_document(doc)
    (whole,) = first.paragraphs
    repeated, own = second.paragraphs
    assert whole.hash == paragraph_hash(first.text)
    assert repeated.hash == whole.hash and second.text[: repeated.end] in first.text
    assert own.hash == paragraph_hash(second.text[own.start : own.end])


def test_short_paragraphs_headings_and_code_have_no_hash_but_a_whole_table_has() -> None:
    doc = document(("heading", "# " + "long heading " * 9, 1), ("paragraph", "Short."), ("code", "x = 1\n" * 40))
    assert chunk_document(doc)[0].paragraphs == ()
    (chunk,) = chunk_document(document(("table", _table(4))))
    assert [(p.start, p.end) for p in chunk.paragraphs] == [(0, len(chunk.text))]
    assert all(c.paragraphs == () for c in chunk_document(document(("table", _table(60)))))


# --- properties ---------------------------------------------------------------------------------------------

_LETTERS = st.sampled_from([*"ab.!|\\# >-`~;,(1)\t", "\n", "\n\n", "e\u0301", "字", "。", "👩\u200d👧", "🇩🇪"])
_WORDS = st.sampled_from(["alpha ", "Beta. ", "(a) gamma; ", "x" * 90, "| c | d |\n", "```\n", "delta\n", "Art. 6 "])
_PROSE = st.one_of(st.lists(_LETTERS, max_size=120), st.lists(_WORDS, max_size=120)).map("".join)
_KINDS = st.sampled_from(["paragraph", "list_item", "code", "table", "definition"])
_BLOCKS = st.one_of(
    st.tuples(_KINDS, _PROSE),
    st.tuples(_KINDS, _PROSE),
    st.tuples(st.just("heading"), st.sampled_from(["# A", "## B b", "# " + "long " * 30]), st.integers(1, 4)),
)
_DOCUMENTS = st.builds(
    lambda pieces, gap: document(*pieces, gap=gap),
    st.lists(_BLOCKS, max_size=12),
    st.sampled_from(["\n\n", "\n", "\n    ", "\n \n\n"]),
)


@settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
@given(_DOCUMENTS, st.sampled_from([(20, 0), (50, 49), (80, 20), (200, 60), (800, 100)]))
def test_chunks_hold_everything_in_order_within_bounds(doc: Document, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    chunks = chunk_document(doc, size=size, overlap=overlap)
    slices_hold(doc, chunks)
    assert covered(doc, chunks)
    assert [c.index for c in chunks] == list(range(len(chunks)))
    assert all(a.char_start < b.char_start and a.char_end < b.char_end for a, b in pairwise(chunks))
    paths = {b.heading_path for b in doc.blocks}
    for chunk in chunks:
        repeated = len(chunk.text) - (chunk.char_end - chunk.char_start) - len(chunk.prelude)
        assert chunk.char_end - chunk.char_start <= size * 1.25
        assert repeated == 0 or chunk.text.endswith(("```", "~~~"))
        assert chunk.heading_path in paths
        hashes = [p.hash for p in chunk.paragraphs]
        assert len(hashes) == len(set(hashes))
    # A cut at a sentence may leave a chunk part empty, but two neighbours are more than one chunk together.
    assert len(chunks) <= 2 * len(doc.text) / (size - overlap) + len(doc.blocks) + 1


@settings(max_examples=40, derandomize=True, deadline=None, database=None)
@given(_DOCUMENTS)
def test_chunking_twice_gives_the_same(doc: Document) -> None:
    assert chunk_document(doc, size=100, overlap=30) == chunk_document(doc, size=100, overlap=30)
