import json

import pytest

from agent_server.ingest.hygiene import clean, clean_line, clean_value, decode


def test_nul_and_control_characters_are_removed_and_counted() -> None:
    text, notes = clean("He\x00llo\x00\x07 wor\x9dld\tok\n")
    assert text == "Hello world\tok\n"
    assert notes == ("removed 2 NUL characters", "removed 2 control characters")


def test_every_line_end_becomes_a_line_feed() -> None:
    assert clean("a\r\nb\rc\nd\x0ce\u2028f\x85g")[0] == "a\nb\nc\nd\ne\nf\ng"


def test_surrogate_pairs_are_joined_and_halves_replaced() -> None:
    text, notes = clean("\ud835\udc00 and \ud835 alone")
    assert text == "\U0001d400 and \ufffd alone"
    assert notes == ("replaced 1 half of surrogate pairs by U+FFFD",)
    text.encode("utf-8")


def test_two_spellings_of_a_word_come_out_the_same() -> None:
    assert clean("cafe\u0301 po\u00adlicy e\ufb03cient \ufeffzero\u200bwidth")[0] == "café policy efficient zerowidth"


def test_joiners_that_spell_words_and_emoji_stay() -> None:
    family = "\U0001f469\u200d\U0001f467"
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert clean(family + persian)[0] == family + persian


@pytest.mark.parametrize(
    "text",
    ["e\u00ad\u0301\ufb01\ud800", "a\r\n\x00\u0301", "\ufdf2 \ufefb", "\u1100\u200b\u1161", "plain", ""],
)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean(text)[0]
    assert clean(once) == (once, ())


def test_values_are_cleaned_all_the_way_down_keys_too() -> None:
    dirty = {"a\x00b": ["x\x00", {"k": ("y\ud800",)}], 7: float("nan"), "n": None, "b": True, "i": 3}
    value = clean_value(dirty)
    assert value == {"ab": ["x", {"k": ["y\ufffd"]}], "7": "nan", "n": None, "b": True, "i": 3}
    assert "\\u0000" not in json.dumps(value, allow_nan=False)


def test_a_line_has_no_line_ends_and_single_blanks() -> None:
    assert clean_line("  A\n title\x00  here ") == "A title here"


def test_byte_order_marks_decide_and_go() -> None:
    assert decode(b"\xef\xbb\xbf# Setup") == "# Setup"
    assert decode("Größe".encode("utf-16")) == "Größe"
    assert decode(b"\xfe\xff" + "Größe".encode("utf-16-be")) == "Größe"
    assert decode("Größe".encode("utf-32")) == "Größe"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("The fee is £5 – “no more” – at the café.", "cp1252"),
        ("Der Bürger erhält über die Größe seiner Fläche Auskunft.", "iso-8859-1"),
        ("Déjà vu: la requête naïve était à l’écart du marché.", "cp1252"),
        ("Заявка рассматривается в течение тридцати дней после получения всех документов.", "cp1251"),
        ("申請は三十日以内に処理されます。理由は書面で通知されます。", "shift_jis"),
    ],
)
def test_older_encodings_are_read(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_one_broken_byte_does_not_garble_the_rest() -> None:
    assert decode("Überraschung für Gäste".encode() + b"\xff.") == "Überraschung für Gäste\ufffd."


def test_any_bytes_can_be_decoded() -> None:
    for start in range(256):
        assert isinstance(decode(bytes((start + i * 37) % 256 for i in range(50))), str)
