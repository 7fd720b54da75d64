import re
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.shape import block_with, kinds, outline, read, refused

HTML = "text/html"


def page(body: str, head: str = "") -> str:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


def texts(html: str) -> list[str]:
    return [text for _, text in kinds(read(html, HTML))]


def test_menus_scripts_and_welded_words_do_not_happen() -> None:
    html = "<nav>Home</nav><main>Text<br>more</main><script>var x=1</script><p>a</p><p>b</p>"
    assert texts(html) == ["Text\nmore"]
    assert texts(html.replace("main", "div")) == ["Text\nmore", "a", "b"]


def test_inline_elements_neither_weld_nor_split_words() -> None:
    assert texts(page("<p>bo<b>ld</b>er <i>and</i>\n<span>so</span> on<wbr>ly</p>")) == ["bolder and so only"]


def test_every_block_element_breaks_the_line() -> None:
    assert texts(page("in<div>block</div>out<section>s1<article>a1</article></section>end")) == ["a1"]
    assert texts(page("<div>x<p>y</p>z</div><span>in<div>deep</div>after</span>")) == [
        "x",
        "y",
        "z",
        "in",
        "deep",
        "after",
    ]


def test_main_is_read_and_nothing_beside_it() -> None:
    html = page(
        "<header>Site</header><main><header><h1>Rules</h1></header><p>Text.</p><aside>Ad</aside></main>"
        "<p>Beside</p><footer>Foot</footer>"
    )
    assert texts(html) == ["Rules", "Text."]


def test_all_outer_articles_are_read_when_there_is_no_main() -> None:
    html = page("<p>Beside</p><article>One<article>Reply</article></article><article>Two</article>")
    assert texts(html) == ["One", "Reply", "Two"]


def test_without_main_or_article_page_header_and_footer_are_left_out() -> None:
    html = page("<header>Top</header><p>Text.</p><footer>Bottom</footer><p>More.</p>")
    assert texts(html) == ["Text.", "More."]


def test_an_empty_main_does_not_hide_the_page() -> None:
    assert texts(page("<main><script>x()</script></main><p>Text.</p>")) == ["Text."]


def test_forms_hidden_parts_and_their_like_are_not_read() -> None:
    html = page(
        "<form><label>Name</label><input value=q><select><option>A</option></select><button>Go</button>"
        "<p>Read me.</p></form><p hidden>no</p><p style='display: none'>no</p><div aria-hidden=true>no</div>"
        "<div role=navigation>no</div><noscript>no</noscript><template><p>no</p></template><!-- no -->"
    )
    assert texts(html) == ["Read me."]


def test_entities_are_decoded_once() -> None:
    doc = read(page("<p>a &amp;lt; b &lt;p&gt; &eacute;&#8211;&nbsp;x</p>", "<title>A &amp;amp; B</title>"), HTML)
    assert doc.text == "a &lt; b <p> é– x"
    assert doc.title == "A &amp; B"


def test_headings_keep_their_levels_and_names() -> None:
    doc = read(page("<h1>A <a href=#a>¶b</a></h1><h3>C<br>D</h3><p>t</p><h2>E</h2>"), HTML)
    assert outline(doc) == [(1, "A ¶b"), (3, "C D"), (2, "E")]
    assert block_with(doc, "t")[1] == ("A ¶b", "C D")


def test_lists_with_numbers_nesting_and_paragraphs() -> None:
    html = page(
        "<ul><li>one<ul><li>in</li></ul>tail</li><li><p>two</p><p>more</p></li></ul><ol start=3><li>x<li>y</ol>"
    )
    assert kinds(read(html, HTML)) == [
        ("list_item", "- one"),
        ("list_item", "  - in"),
        ("list_item", "  tail"),
        ("list_item", "- two\n  more"),
        ("list_item", "3. x"),
        ("list_item", "4. y"),
    ]


def test_a_table_is_one_block_with_its_header_row_first() -> None:
    html = page(
        "<table><caption>Fees</caption><tbody><tr><td>Tea<br>pot</td><td>2 <b>€</b></td></tr></tbody>"
        "<thead><tr><th>Item</th><th>Price</th></tr></thead></table>"
    )
    assert kinds(read(html, HTML)) == [("paragraph", "Fees"), ("table", "Item | Price\nTea pot | 2 €")]


def test_tables_that_only_lay_out_the_page_are_read_as_text() -> None:
    html = page(
        "<table><tr><td><h2>H</h2><p>Text.</p></td></tr><tr><td><table><tr><td>1</td>"
        "<td>2</td></tr></table></td></tr></table>"
    )
    assert kinds(read(html, HTML)) == [("heading", "H"), ("paragraph", "Text."), ("table", "1 | 2")]


def test_terms_and_their_definitions_stand_together() -> None:
    html = page(
        "<dl><dt>Hold</dt><dd>A <em>stop</em>.</dd><dd>Or two.</dd>"
        "<div><dt>X</dt><dt>Y</dt><dd>z</dd></div><dt>Q</dt></dl>"
    )
    assert kinds(read(html, HTML)) == [
        ("definition", "Hold: A stop."),
        ("definition", "Or two."),
        ("definition", "X, Y: z"),
        ("definition", "Q"),
    ]


def test_preformatted_text_is_verbatim() -> None:
    assert kinds(read(page("<pre>  a\n\n    b <b>c</b>\n</pre>"), HTML)) == [("code", "  a\n\n    b c")]


def test_metadata_and_date_come_from_the_head() -> None:
    head = '<meta name=Author content="Ann"><meta name=date content="2024-02-03T10:00"><meta property=og:x content=y>'
    doc = read(page("<p>t</p>", head), HTML)
    assert (doc.dated, dict(doc.metadata)) == (date(2024, 2, 3), {"author": "Ann"})
    assert read(page("<p>t</p>", '<meta name=date content="May">'), HTML).notes == (
        "date: found 'May', expected YYYY-MM-DD",
    )


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("<meta charset=windows-1251>", "cp1251"),
        ('<meta http-equiv=x content="text/html; charset=iso-8859-1">', "cp1252"),
    ],
)
def test_a_declared_encoding_is_believed_unless_the_bytes_are_utf8(declared: str, encoding: str) -> None:
    word = "Правила" if encoding == "cp1251" else "“Größe”"
    html = page(f"<p>{word}</p>", declared)
    assert read(html.encode(encoding), HTML).text == word
    assert read(html.encode("utf-8"), HTML).text == word


def test_an_xml_declaration_and_xhtml_are_read() -> None:
    html = '<?xml version="1.0" encoding="utf-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><body><p>é</p><br/>x</body></html>'
    assert texts(html) == ["é", "x"]


def test_pages_without_text_are_empty() -> None:
    for html in ("<!-- only -->", page("<script>1</script>"), "<html></html>", page("<nav>Home</nav>")):
        assert refused(html, HTML).status == "empty"


def test_very_deep_pages_and_broken_ones_are_read() -> None:
    assert "deep" in read("<div>" * 1500 + "deep" + "<p>x", HTML).text
    assert refused("<div>" * 3000 + "deep", HTML).status == "damaged"
    assert read("<p>Top</p>" + "<div>" * 3000 + "deep", HTML).notes
    assert "".join(texts("<p>a<b>b</p><p>c</i></div><td>d")) == "abcd"


def test_bad_letters_behind_entities_never_reach_the_text() -> None:
    doc = read(page("<p>a&#0;b&#xD835;c&shy;d&#7;</p>"), HTML)
    assert doc.text.startswith("a")
    doc.text.encode("utf-8")


LINKED = """<html><body><h1 id=top>Barges</h1><p>See <a href="fees.html#late"> the  <b>late</b> fee </a>, or <a href="x"><img></a>.
<ul id=list><li id=one>One <a href="#top">up</a><li>Two</ul><table id=t><tr id=r><th>A<th>B<tr><td><a href=k>c</a><td>d</table>
<dl><dt id=raft>Raft<dd>means <a href='#one'>a boat</a></dl><pre>a <a href=p>b </a></pre><a href=far><div>Block</div></a>
<div id=last></div></body></html>"""


def _marks(html: str) -> list[tuple[str, str, str]]:
    document = read(html, "text/html")
    return [(m.kind, document.text[m.start : m.end], m.value) for m in document.marks]


def test_links_and_anchors_of_a_page_are_kept_beside_its_text() -> None:
    assert _marks(LINKED) == [
        ("anchor", "Barges", "top"),
        ("link", "the late fee", "fees.html#late"),
        ("anchor", "One up", "list"),
        ("anchor", "One up", "one"),
        ("link", "up", "#top"),
        ("anchor", "A | B\nc | d", "t"),
        ("anchor", "A | B\nc | d", "r"),
        ("link", "c", "k"),
        ("anchor", "Raft: means a boat", "raft"),
        ("link", "a boat", "#one"),
        ("link", "b", "p"),
    ]


def test_links_and_anchors_change_no_letter_of_the_text() -> None:
    plain = re.sub(r"<a [^>]*>", "<span>", LINKED).replace("</a>", "</span>")
    plain = re.sub(r" id=\w+", "", plain)
    assert read(LINKED, "text/html").text == read(plain, "text/html").text
    assert _marks(plain) == []


def test_letters_that_stand_for_marks_are_taken_out_of_a_page_that_holds_them() -> None:
    document = read("<p>a\ufdd0\ufde0b &#xFDD1; <a href=x>c\ufdd2</a></p>", "text/html")
    assert document.text == "ab c"
    assert [(m.kind, m.value) for m in document.marks] == [("link", "x")]


def test_a_letter_composed_across_the_edge_of_a_link_stays_composed() -> None:
    document = read("<p>e<a href=x>&#769;tude</a></p>", "text/html")
    assert document.text == "étude"


def test_an_anchor_at_the_blank_end_of_a_block_stands_for_the_block() -> None:
    document = read("<pre>word<p id=y><p id=z>", "text/html")
    assert [(m.value, document.text[m.start : m.end].strip()) for m in document.marks] == [("y", "word"), ("z", "word")]


PIECES = ["<a href=x>", "</a>", "<p id=y>", "</p>", " ", "word", "<b>", "</b>", "<br>", "<ul><li>", "</ul>", "<td>", "<table>", "</table>",
          "\u00a0", "<h2 id=z>", "</h2>", "<pre>", "</pre>", "<dl><dt>", "<dd>", "</dl>", "&#769;"]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_marks_of_any_page_lie_within_its_text_and_leave_it_alone(html: str) -> None:
    plain = html.replace("<a href=x>", "<span>").replace("</a>", "</span>").replace(" id=y", "").replace(" id=z", "")
    page = f"<body><p>start {html}</body>"
    document = read(page, "text/html")
    for mark in document.marks:
        assert 0 <= mark.start < mark.end <= len(document.text)
        assert document.text[mark.start : mark.end].strip()
    if "<p" not in html:  # a link is closed by other elements than a span is
        assert document.text.split() == read(f"<body><p>start {plain}</body>", "text/html").text.split()


def test_an_inline_element_around_a_block_breaks_no_word() -> None:
    document = read("<p>under<span>stand<div>A block</div>after</span>wards</p>", "text/html")
    assert document.text.split() == ["understand", "A", "block", "afterwards"]
