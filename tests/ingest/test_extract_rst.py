import io
from datetime import date

import docutils.core
import docutils.nodes
import pytest

from agent_server.ingest.extract.rst import plain_title, scan_titles
from tests.ingest.shape import block_with, kinds, outline, read

RST = "text/x-rst"

SECTIONS = [
    "Title\n=====\n\nText\n----\n\nMore.\n\nBack\n====\n",
    "=====\n Top\n=====\n\nSub\n===\n\nDeep\n~~~~\n\nSub two\n=======\n\n====\nEnd\n====\n",
    "Short mark\n====\n\ntext\n\n----\n\nA transition above.\n",
    "1. Numbered\n===========\n\n(a) Letter\n----------\n\n- item\n\n- other\n",
    (
        "With ``code`` and *stress*\n==========================\n\n"
        "`Some place <http://x.org>`_ and ``__init__``\n---------------------------------------------\n"
    ),
    "A\n=\n\ntext::\n\n    Not\n    ===\n\nB\n=\n\n.. code-block:: rst\n\n   Neither\n   -------\n\n   x\n",
    (
        "Table\n=====\n\n=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n\n"
        "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n"
    ),
    "Title\n=====\nText right below.\n\nTerm\n    Meaning\n\n.. note:: Look\n\n   Inside\n\nLast\n====\n",
    "Über Größe\n==========\n\ntext\n",
]


@pytest.mark.parametrize("text", SECTIONS)
def test_sections_are_those_that_docutils_finds(text: str) -> None:
    tree = docutils.core.publish_doctree(
        text, settings_overrides={"report_level": 5, "doctitle_xform": False, "warning_stream": io.StringIO()}
    )
    expected = []
    for section in tree.findall(docutils.nodes.section):
        level, node = 0, section
        while node is not None:
            level += isinstance(node, docutils.nodes.section)
            node = node.parent
        expected.append((level, " ".join(section[0].astext().split())))
    assert [(t.level, t.text) for t in scan_titles(text.split("\n"))] == expected


def test_source_is_verbatim_and_headings_nest() -> None:
    text = "Rule\n====\n\nText *here*.\n\nPart\n----\n\nMore.\n"
    doc = read(text, RST)
    assert doc.text == text
    assert doc.title == "Rule"
    assert outline(doc) == [(1, "Rule"), (2, "Part")]
    assert block_with(doc, "More.")[1] == ("Rule", "Part")
    assert kinds(doc)[0] == ("heading", "Rule\n====")


def test_a_proposal_header_gives_title_date_and_metadata() -> None:
    text = (
        "PEP: 9999\nTitle: Better socks\nAuthor: A One,\n        B Two\nStatus: Draft\nCreated: 03-Feb-2021\n\n"
        "Abstract\n========\n\nText.\n"
    )
    doc = read(text, RST)
    assert doc.title == "PEP 9999: Better socks"
    assert doc.dated == date(2021, 2, 3)
    assert doc.metadata == {
        "PEP": "9999",
        "Author": "A One, B Two",
        "Status": "Draft",
        "Created": "03-Feb-2021",
    }
    assert kinds(doc)[0][0] == "paragraph"
    assert outline(doc) == [(1, "Abstract")]


def test_a_field_list_below_the_title_becomes_metadata() -> None:
    doc = read(
        ".. _x:\n\nRule\n====\n\n:Owner: Office\n   of rules\n:date: 2024-01-02\n:retired: true\n\nText.\n",
        RST,
    )
    assert (doc.dated, doc.retired) == (date(2024, 1, 2), True)
    assert doc.metadata == {"Owner": "Office of rules", "date": "2024-01-02"}
    assert block_with(doc, ":Owner:")[0] == "definition"


def test_a_field_list_before_the_title_and_a_bad_date() -> None:
    doc = read(":date: soon\n\nRule\n====\n\nText.\n", RST)
    assert doc.notes == ("date: found 'soon', expected YYYY-MM-DD",)


def test_literal_blocks_and_code_directives_are_code() -> None:
    text = (
        "See::\n\n    one\n\n    two\n\nBack.\n\n.. code-block:: python\n   :linenos:\n\n"
        "   x = 1\n\n   y = 2\n\n>>> 1 + 1\n2\n"
    )
    assert kinds(read(text, RST)) == [
        ("paragraph", "See::"),
        ("code", "    one\n\n    two"),
        ("paragraph", "Back."),
        ("code", ".. code-block:: python\n   :linenos:\n\n   x = 1\n\n   y = 2"),
        ("code", ">>> 1 + 1\n2"),
    ]


def test_literal_text_of_an_item_does_not_swallow_its_next_paragraph() -> None:
    text = "- run::\n\n      make\n\n  and then wait.\n\n- next\n"
    assert kinds(read(text, RST)) == [
        ("list_item", "- run::"),
        ("code", "      make"),
        ("paragraph", "  and then wait."),
        ("list_item", "- next"),
    ]


def test_all_kinds_of_tables_are_tables() -> None:
    grid = "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+"
    simple = "===  ===\nA    B\n===  ===\n1    2\n\n3    4\n===  ==="
    listed = ".. list-table:: Fees\n   :header-rows: 1\n\n   * - A\n     - B\n   * - 1\n     - 2"
    assert kinds(read(f"{grid}\n\n{simple}\n\n{listed}\n\nEnd.\n", RST)) == [
        ("table", grid),
        ("table", simple),
        ("table", listed),
        ("paragraph", "End."),
    ]


def test_terms_items_and_directives_are_blocks_of_their_own() -> None:
    text = (
        "Hold\n    A stop.\nRelease\n    Its end.\n\n* one\n* two\n  more\n\n#. three\n\n"
        ".. note::\n\n   Mind this.\n\n.. [1] Source.\n"
    )
    assert kinds(read(text, RST)) == [
        ("definition", "Hold\n    A stop."),
        ("definition", "Release\n    Its end."),
        ("list_item", "* one"),
        ("list_item", "* two\n  more"),
        ("list_item", "#. three"),
        ("paragraph", ".. note::"),
        ("paragraph", "   Mind this."),
        ("paragraph", ".. [1] Source."),
    ]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("The ``__init__`` of *all* **things**", "The __init__ of all things"),
        (":pep:`484` and :ref:`this <that>`", "484 and this"),
        ("`Guide <https://x.org>`__ to ref_ and |name|", "Guide to ref and name"),
        (r"Stars \* and snake_case_ and a*b*c", "Stars * and snake_case and a*b*c"),
    ],
)
def test_titles_lose_their_markup(source: str, shown: str) -> None:
    assert plain_title(source) == shown


def test_a_paragraph_that_starts_like_a_header_is_not_one() -> None:
    doc = read("Note: this is text\nthat goes on.\n\nMore.\n", RST)
    assert doc.metadata == {}
    assert doc.title == "late fees 2024"
