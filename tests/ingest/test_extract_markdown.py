import json
from datetime import date

from tests.ingest.shape import block_with, kinds, outline, read, refused

MD = "text/markdown"


def test_front_matter_is_cut_off_and_understood() -> None:
    doc = read("---\ntitle: Late *fees*\ndate: 2024-03-01\nretired: true\ntags: [a, b]\n---\n# H\n\nText.\n", MD)
    assert doc.title == "Late *fees*"
    assert (doc.dated, doc.retired, dict(doc.metadata)) == (date(2024, 3, 1), True, {"tags": ["a", "b"]})
    assert doc.text == "# H\n\nText.\n"


def test_a_date_that_cannot_be_read_is_noted() -> None:
    doc = read("---\ndate: next spring\nsince: 2020-02-03\n---\nText.", MD)
    assert doc.dated is None
    assert doc.notes == ("date: found 'next spring', expected YYYY-MM-DD",)
    assert doc.metadata == {"since": "2020-02-03"}


def test_front_matter_that_is_not_yaml_still_gives_its_plain_lines() -> None:
    doc = read("---\ntitle: Circular 7: limits: new\ndate: 2024-01-02\n---\n\nText.", MD)
    assert doc.title == "Circular 7: limits: new"
    assert doc.dated == date(2024, 1, 2)
    assert doc.text.strip() == "Text."


def test_a_text_between_two_rules_is_not_front_matter() -> None:
    doc = read("---\n\nJust a thought.\n\n---\n\nMore.", MD)
    assert "Just a thought." in doc.text


def test_byte_order_mark_and_crlf_do_not_hide_the_first_heading() -> None:
    doc = read(b"\xef\xbb\xbf# Setup\r\ntext\r\n", MD)
    assert kinds(doc) == [("heading", "# Setup"), ("paragraph", "text")]
    assert doc.blocks[1].heading_path == ("Setup",)


def test_headings_of_both_kinds_without_their_markup() -> None:
    doc = read("Top `x`\n===\n\nSub\n---\n\n### A **b** [c](http://d.e) ###\n\n#hash\n", MD)
    assert outline(doc) == [(1, "Top x"), (2, "Sub"), (3, "A b c")]
    assert block_with(doc, "#hash")[0] == "paragraph"


def test_a_hash_in_code_is_no_heading_even_when_the_fence_is_never_closed() -> None:
    doc = read("# H\n\n```sh\n# one\n```\n\n    # two\n\n~~~\n# three\n\n# four\n", MD)
    assert outline(doc) == [(1, "H")]
    assert [kind for kind, _ in kinds(doc)] == ["heading", "code", "code", "code"]


def test_headings_inside_of_quotes_and_items_do_not_open_sections() -> None:
    doc = read("# H\n\n> # Quoted\n> text\n\n- # Item\n\nAfter.\n", MD)
    assert outline(doc) == [(1, "H")]
    assert block_with(doc, "After.")[1] == ("H",)


def test_tables_lists_quotes_and_html_are_verbatim_blocks() -> None:
    text = "| a | b |\n|---|---|\n| 1 | `x|y` |\n\n- one\n  more\n- two\n  1. in\n\n> said\n\n<div>\nraw\n</div>\n"
    doc = read(text, MD)
    assert doc.text == text
    assert kinds(doc) == [
        ("table", "| a | b |\n|---|---|\n| 1 | `x|y` |"),
        ("list_item", "- one\n  more"),
        ("list_item", "- two"),
        ("list_item", "  1. in"),
        ("paragraph", "> said"),
        ("paragraph", "<div>\nraw\n</div>"),
    ]


def test_pictures_embedded_as_data_are_cut_out_and_noted() -> None:
    doc = read("See ![plan](data:image/png;base64," + "QUJD" * 500 + ") here.\n\nshort data:a/b,c", MD)
    assert doc.text == "See ![plan](data:removed) here.\n\nshort data:a/b,c"
    assert doc.notes == ("removed 1 embedded data address",)


def test_a_long_paragraph_above_a_rule_is_not_a_heading() -> None:
    doc = read("word " * 80 + "end.\n---\n\nNext.", MD)
    assert outline(doc) == []


def test_without_title_and_heading_the_file_name_is_made_readable() -> None:
    assert read("Text.", MD, "policies/5112-late_fees.md").title == "5112 late fees"
    assert read("## **First** one\n\nText.", MD).title == "First one"


def test_metadata_is_clean_before_it_becomes_json() -> None:
    doc = read('---\n"k\\0": "a\\0b"\nwhen: 2024-05-06 10:00:00\nn: .nan\n---\nText.', MD)
    assert doc.metadata == {"k": "ab", "when": "2024-05-06 10:00:00", "n": "nan"}


def test_front_matter_alone_is_empty() -> None:
    assert refused("---\ntitle: X\n---\n\n", MD).status == "empty"


def test_one_bad_letter_never_costs_the_file() -> None:
    doc = read("# A\ud835\n\nHe\x00llo", MD)
    assert doc.text == "# A\ufffd\n\nHello"
    assert "removed 1 NUL character" in doc.notes


def test_front_matter_that_unfolds_without_end_is_not_unfolded() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9)
    )
    doc = read(f"---\ntitle: Laughs\n{bomb}---\nText.", MD)
    assert doc.title == "Laughs"
    assert len(str(doc.metadata)) < 2000
    assert read("---\na: &a [*a]\n---\nText.", MD).text == "Text."


def test_metadata_is_bounded_and_what_is_cut_is_told() -> None:
    many = "".join(f"key{n}: {'v' * 400}\n" for n in range(60))
    long = f"note: {'word ' * 2000}\ntags: [{', '.join(['tag'] * 2000)}]\nauthor: Ann\n{'k' * 500}: x\n"
    doc = read(f"---\n{long}{many}---\nText.", MD)
    assert len(json.dumps(dict(doc.metadata))) < 20_000
    assert doc.metadata["author"] == "Ann"
    assert doc.metadata["note"].startswith("word word") and doc.metadata["note"].endswith("…")
    assert "tags" not in doc.metadata
    assert "key0" in doc.metadata and "key59" not in doc.metadata
    assert doc.notes[0].startswith("metadata too long, cut or left out: note, tags, kkk")
    assert doc.notes[0].endswith(" more")
    assert len(doc.notes[0]) < 1000


def test_front_matter_of_megabytes_is_taken_line_by_line_and_bounded() -> None:
    many = "".join(f"key{n}: [{', '.join(['v'] * 100)}]\n" for n in range(10_000))
    doc = read(f"---\ntitle: Long\n{many}---\nText.", MD)
    assert (doc.title, doc.text) == ("Long", "Text.")
    assert len(json.dumps(dict(doc.metadata))) < 20_000
    assert "characters, at most 65536 are read" in doc.notes[0]


def test_numbers_of_any_size_in_front_matter_become_json() -> None:
    digits = "f" * 6000
    doc = read(f"---\nsmall: 7\nlarge: 0x{digits}\nodd: .inf\n---\nText.", MD)
    assert doc.metadata["small"] == 7
    assert doc.metadata["odd"] == "inf"
    json.dumps(dict(doc.metadata))
