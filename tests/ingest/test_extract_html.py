from datetime import date

import pytest

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
