"""Links that markup makes lead to headings, anchors and labels."""

import pytest

from nightly.references.edges import edges_of
from nightly.references.markup import plain_slug, slug
from tests.nightly.books import Shelf, book, led

GUIDE = """# Guide

See [fees](#late-fees--costs), [the *other* part](#extra), [by name][f], [elsewhere](https://example.org/x#y),
[gone](#none), `[code](#extra)` and ![a picture](pic.png).

[f]: #late-fees--costs

## Late fees & costs

Five.

## Again {#extra}

Six.

## Again

Seven, see [the second](#again-1).
"""


def test_markdown_links_lead_to_the_headings_that_their_fragments_name() -> None:
    found = led(GUIDE, "guide.md")
    assert found["[fees](#late-fees--costs)"].startswith("## Late fees & costs Five.")
    assert found["[by name][f]"].startswith("## Late fees & costs")
    assert found["[the *other* part](#extra)"].startswith("## Again {#extra}")
    assert found["[the second](#again-1)"].startswith("## Again Seven")
    assert found["[gone](#none)"] == "! nothing is called #none in guide.md"
    assert len(found) == 5


def test_fragments_are_made_as_programs_make_them() -> None:
    assert (slug("Late fees & costs"), plain_slug("Late fees & costs")) == ("late-fees--costs", "late-fees-costs")


@pytest.mark.parametrize(
    "target", ["../fees/late.md#amount", "/fees/late.md#amount", "../fees/late.html#amount", "../fees/late#amount"]
)
def test_a_link_to_another_file_is_followed_by_path(target: str) -> None:
    own = book(f"# Notes\n\nSee [the amount]({target}).", "notes/a.md")
    late = book("# Late\n\n## Amount\n\nFive.", "fees/late.md")
    [link] = edges_of(own, Shelf(own, late)).links
    assert late.manuscript.passages[link.target.passage].text[link.target.start :].startswith("## Amount")
    assert link.label == target.removeprefix("..").lstrip("/")


def test_a_link_to_a_whole_document_leads_to_its_beginning_and_one_to_a_missing_file_says_so() -> None:
    own = book("# Notes\n\nSee [late](late.md) and [early](early.md#x).", "a.md")
    found = edges_of(own, Shelf(own, book("# Late\n\nFive.", "late.md")))
    assert [link.target.start for link in found.links] == [0]
    assert [(d.label, d.reason) for d in found.dangling] == [
        ("early.md#x", "no document called early.md in the collection")
    ]
    assert {"file:early.md", "stem:early", "file:late.md"} <= found.wants


RST = """Title
=====

See `Late fees`_, `these words <Late fees_>`_, :ref:`amounts`, :ref:`words <amounts>`, above_, :pep:`8#names`,
`an address <https://example.org>`__, `a name`_, :pep:`999`, no_such_, and ``code_``.

.. _a name: https://example.org/a

.. _above:

This paragraph is labelled.

Late fees
---------

Five, as `Title`_ and _`here` say. PEP 8.

.. _amounts:
.. _sums:

Amounts
~~~~~~~

See here_ and :ref:`sums`.
"""


def test_roles_titles_and_labels_of_restructuredtext_are_followed() -> None:
    own = book(RST, "a.rst")
    pep = book("PEP: 8\nTitle: Style\n\nNames\n=====\n\nShort.\n", "pep-0008.rst")
    shelf = Shelf(own, pep)
    found = edges_of(own, shelf)
    texts = {("a.rst", p.id): p.text for p in own.manuscript.passages}
    led_to = {link.anchor: link for link in found.links}

    def words(anchor: str) -> str:
        link = led_to[anchor]
        return " ".join(texts["a.rst", link.target.passage][link.target.start : link.target.end].split())

    assert words("`Late fees`_").startswith("Late fees ---")
    assert words("`these words <Late fees_>`_").startswith("Late fees ---")
    assert words(":ref:`amounts`").startswith("Amounts ~~~")
    assert words(":ref:`sums`").startswith("Amounts ~~~")
    assert words("above_").startswith("This paragraph is labelled.")
    assert words("here_").startswith("Five, as")
    assert led_to[":pep:`8#names`"].label == "PEP 8#names"
    assert led_to["PEP 8"].label == "PEP 8"
    assert {d.anchor: d.reason for d in found.dangling} == {
        ":pep:`999`": "no document called PEP 999 in the collection"
    }


def test_a_label_of_another_document_is_found_for_ref() -> None:
    own = book("Title\n=====\n\nSee :ref:`far` and :ref:`farther`.\n", "a.rst")
    other = book("Other\n=====\n\n.. _far:\n\nFar\n---\n\nText.\n", "b.rst")
    found = edges_of(own, Shelf(own, other))
    assert [link.anchor for link in found.links] == [":ref:`far`"]
    assert [d.anchor for d in found.dangling] == [":ref:`farther`"]


PAGE = """<html><head><title>Page</title></head><body><main>
<h1 id="top">Barges</h1><p>See <a href="#fee">the <b>fee</b></a>, <a href="other.html#x">another page</a>,
<a href="https://example.org">outside</a> and <a href="#gone">nothing</a>.</p>
<ul><li id="fee">Five a day, back to <a href="#top">the top</a></li></ul></main></body></html>"""


def test_links_of_a_page_lead_to_the_elements_that_they_name() -> None:
    own, other = book(PAGE, "page.html"), book("<html><body><h1>O</h1><p id=x>Here.</p></body></html>", "other.html")
    found = edges_of(own, Shelf(own, other))
    texts = {link.anchor: (link.label, link.target.start) for link in found.links}
    assert set(texts) == {"the fee", "another page", "the top"}
    own_text = own.manuscript.text
    fee = next(link for link in found.links if link.anchor == "the fee")
    assert own_text[fee.target.start : fee.target.end] == "Five a day, back to the top"
    assert [d.reason for d in found.dangling] == ["nothing is called #gone in page.html"]
