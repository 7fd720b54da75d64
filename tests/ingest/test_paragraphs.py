"""Hashes of paragraphs and passages: equal words, equal hash."""

import hashlib
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_server.ingest.paragraphs import MIN_CHARS, paragraph_hash, passage_hash

TEXT = (
    "The member must repay the loan within thirty days of the notice, unless the board has agreed to an "
    "extension in writing."
)


def test_the_hash_is_a_signed_number_of_64_bits_that_does_not_change() -> None:
    digest = hashlib.blake2b(TEXT.casefold().encode(), digest_size=8).digest()
    assert paragraph_hash(TEXT) == int.from_bytes(digest, "big", signed=True)
    hashes = [paragraph_hash(f"{TEXT} {n}") or 0 for n in range(100)]
    assert len(set(hashes)) == 100
    assert all(-(2**63) <= h < 2**63 for h in hashes) and min(hashes) < 0 < max(hashes)


@pytest.mark.parametrize(
    "quoted",
    [
        "> " + TEXT,
        ">" + TEXT.replace(" unless", "\n>unless"),
        "> > " + TEXT.replace(" unless", "\n> > unless"),
        "- " + TEXT,
        "  * " + TEXT.replace(" unless", "\n    unless"),
        "12. " + TEXT,
        "3) " + TEXT,
        "- [x] " + TEXT,
        "> - " + TEXT,
        "• " + TEXT,
        TEXT.replace("thirty days", "**thirty days**").replace("the board", "_the board_"),
        TEXT.replace("loan", "`loan`").replace("notice", "***notice***").replace("extension", "~~extension~~"),
        TEXT.replace("the notice,", "__the notice__,").replace("writing.", "_writing_."),
        TEXT.upper(),
        TEXT.replace(" ", "\n  "),
        TEXT.replace(" ", "\u00a0"),
        TEXT.replace("fi", "\ufb01").replace("a", "\uff41"),
    ],
)
def test_a_quotation_hashes_like_the_paragraph(quoted: str) -> None:
    assert paragraph_hash(quoted) == paragraph_hash(TEXT)


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("thirty", "twenty"),
        TEXT + " 2.",
        TEXT.replace("the loan", "loan"),
        "a_" + TEXT,
        TEXT.replace("the board", "the 5 > 4 board"),
    ],
)
def test_other_words_hash_otherwise(other: str) -> None:
    assert paragraph_hash(other) != paragraph_hash(TEXT)


def test_a_name_with_underscores_is_not_emphasis() -> None:
    assert paragraph_hash(TEXT + " chunk_size") != paragraph_hash(TEXT + " chunksize")


def test_short_paragraphs_have_no_hash() -> None:
    assert paragraph_hash("") is None
    assert paragraph_hash("x" * (MIN_CHARS - 1)) is None
    assert paragraph_hash("x" * MIN_CHARS) is not None
    assert paragraph_hash("> - " + "x" * (MIN_CHARS - 1)) is None  # marks do not count
    assert paragraph_hash("x" + " " * 100 + "y") is None


def test_the_passage_hash_ignores_case_form_and_white_space_and_nothing_else() -> None:
    assert passage_hash("Café  au\n lait") == passage_hash(unicodedata.normalize("NFD", "CAFÉ au lait "))
    assert passage_hash("cafe au lait") == hashlib.sha256(b"cafe au lait").digest()
    assert passage_hash("- a") != passage_hash("a")


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(st.text(alphabet=st.characters(), max_size=200))
def test_no_text_raises_and_a_second_quotation_changes_nothing(text: str) -> None:
    assert len(passage_hash(text + "\ud800")) == 32
    quoted = "\n".join("> " + line for line in text.split("\n"))
    assert paragraph_hash(text) == paragraph_hash(quoted)


def test_hostile_text_is_hashed_in_no_time() -> None:
    for text in ("_" * 200_000, "> " * 100_000, "*" * 200_000, "\n" * 200_000, " " * 200_000, "_a" * 100_000):
        paragraph_hash(text)
        passage_hash(text)
