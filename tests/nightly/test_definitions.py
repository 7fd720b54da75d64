"""Which definitions are found in texts of all kinds, what is refused, where they hold."""

import time

import pytest

from nightly.definitions.find import find_definitions
from nightly.definitions.model import Definition
from nightly.definitions.passages import Passage, definitions_of
from nightly.definitions.uses import uses_of


def found(text: str, *headings: str) -> list[tuple[str, str, str]]:
    """(form, term, definition) of each definition in `text`."""
    out = []
    for one in find_definitions(text, headings):
        assert " ".join(text[one.start : one.end].split()) == one.term
        out.append((one.form, one.term, " ".join(text[one.definition_start : one.definition_end].split())))
    return out


def terms(text: str, *headings: str) -> list[str]:
    return [term for _, term, _ in found(text, *headings)]


SENTENCES = [
    ("(b) Berth means a place where a boat is tied up.", "means", "Berth"),
    ("2.3 “Berth” means a place where a boat is tied up.", "means", "Berth"),
    ("(4). 'berth' means a place where a boat is tied up;", "means", "berth"),
    ("**Berth** means that a boat may be tied up there.", "means", "Berth"),
    ("*Berth* is defined as a place for one boat.", "means", "Berth"),
    ("For purposes of this section, berth means a place for one boat.", "means", "berth"),
    ("In this part, the term berth has the meaning given in section 4.", "elsewhere", "berth"),
    ("“Berth” has the meaning of a place for a boat.", "means", "Berth"),
    ("The term “berth” refers to a place for one boat.", "refers", "berth"),
    ("The word 'berth' stands for a place for one boat.", "refers", "berth"),
    ("The term berth includes a mooring buoy.", "includes", "berth"),
    ("The term berth does not include a slipway.", "excludes", "berth"),
    ("'Consent' of the owner means a signed letter.", "means", "Consent"),
    ('"Eligible", of a boat, means entitled to a berth.', "means", "Eligible"),
    ("Slack factor, in relation to a rope, means the share that is not taut.", "means", "Slack factor"),
    ("*Freeboard* is the height of the deck above the water.", "is", "Freeboard"),
    ("Hardship means a serious change in health.", "means", "Hardship"),
    ("The harbor master (the “Master”) decides.", "alias", "Master"),
    ("A boat that is left on a mooring for a year is known as a *sleeper*.", "alias", "sleeper"),
    ("The Regional Ferry Authority (RFA) sets the fares.", "abbreviation", "RFA"),
    ("The Bureau of Tidal Waters (Bureau) publishes the tables.", "abbreviation", "Bureau"),
    ("> (c) The phrase *spring tide* means a tide after full moon.", "means", "spring tide"),
]


@pytest.mark.parametrize(("text", "form", "term"), SENTENCES, ids=[text for text, _, _ in SENTENCES])
def test_a_sentence_that_defines_is_found_by_its_form(text: str, form: str, term: str) -> None:
    assert [(f, t) for f, t, _ in found(text)] == [(form, term)]


PLACES = [
    ("Berth: a place where a boat is tied up.", "entry"),
    ("- **Berth**: a place where a boat is tied up.", "entry"),
    ("- **Berth** – a place where a boat is tied up.", "entry"),
    ("**Berth.** A place where a boat is tied up.", "entry"),
    ("`Berth` - a place where a boat is tied up.", "entry"),
    ("Berth\n    A place where a boat is tied up.", "entry"),
    ("Berth\n: A place where a boat is tied up.", "entry"),
    ("**Berth**\n    1. A place for a boat. 2. A bed on it.", "entry"),
    ("(b) Berth refers to a place for one boat.", "refers"),
    ("A berth is a place where a boat is tied up.", "is"),
]


@pytest.mark.parametrize(("text", "form"), PLACES, ids=[text for text, _ in PLACES])
@pytest.mark.parametrize("heading", ["Glossary", "§ 2 Definitions", "Terms and abbreviations"])
def test_an_entry_under_a_heading_that_announces_definitions_is_one(text: str, form: str, heading: str) -> None:
    assert [(f, t.lower()) for f, t, _ in found(text, "Harbor rules", heading)] == [(form, "berth")]


@pytest.mark.parametrize(("text", "form"), PLACES, ids=[text for text, _ in PLACES])
def test_the_same_entry_elsewhere_is_not(text: str, form: str) -> None:
    assert found(text, "Harbor rules", "Opening hours") == []


@pytest.mark.parametrize(
    "text",
    [
        "| Term | Meaning |\n|---|---|\n| Berth | A place for a boat |\n| Buoy | A float |",
        "Term | Meaning\nBerth | A place for a boat\nBuoy | A float",
        "+-------+--------------------+\n| Word  | Definition         |\n+=======+====================+\n"
        "| Berth | A place for a boat |\n+-------+--------------------+\n| Buoy  | A float            |\n"
        "+-------+--------------------+",
    ],
)
def test_rows_of_a_table_of_terms_are_definitions(text: str) -> None:
    assert found(text, "Appendix") == [("table", "Berth", "A place for a boat"), ("table", "Buoy", "A float")]


def test_rows_of_other_tables_are_not() -> None:
    assert found("| Berth | Length |\n|---|---|\n| A1 | 9 metres |\n| A2 | 11 metres |", "Glossary") == []


JUNK = [
    "This means that the boat is late.",
    "It means a longer wait.",
    "That also means the sorting of berths is now slower.",
    "The lack of a standard means they are not portable.",
    "Using two ropes means a longer wait.",
    "The new order means the boats wait.",
    "What this means is that the boat waits.",
    "If the flag is red, the sign means a storm.",
    "Note: the harbor closes at six.",
    "Warning: deep water.",
    "Example: a boat of nine metres.",
    "Section 4.2 and “§ 4.2” mean the same thing.",
    "They refer to the tables in Appendix B.",
    "The figure refers to a boat of nine metres.",
    "*This* is the place.",
    'print("berth")',
    "See the tide table (“https://example.org/tides”).",
    "This is called *waiting*.",
    "On Monday (January 10) the harbor is closed.",
    "He is the so-called “admiral”.",
    "```\nberth means a place\n```",
    "as in::\n\n    Berth means a place for a boat.",
    ">>> Berth means a place",
    "The harbor is a place.",
    "Boats, in general, are a means of transport.",
    "Payment is made by means of a card.",
]


@pytest.mark.parametrize("text", JUNK)
def test_what_only_looks_like_a_definition_is_refused(text: str) -> None:
    assert found(text, "Harbor rules") == []


@pytest.mark.parametrize(
    "text",
    [
        "Note: the harbor closes at six.",
        "See also: the tide table.",
        "It: a thing.",
        "Berth: see section 4.",
        "The boats that lie at the quay in winter are tied up twice: once at each end.",
    ],
)
def test_what_stands_in_a_glossary_and_names_nothing_is_refused(text: str) -> None:
    assert found(text, "Glossary") == []


def test_a_definition_of_two_terms_gives_both() -> None:
    assert terms("(j) Ferry company and company mean a firm that runs ferries.", "Definitions") == [
        "Ferry company",
        "company",
    ]
    assert terms("(1) Regional Ferry Line or RFL means a line between two towns.", "Definitions") == [
        "Regional Ferry Line",
        "RFL",
    ]
    assert terms("(2) Harbor District (HD) means a part of a harbor.", "Definitions") == ["Harbor District", "HD"]


def test_one_term_with_or_in_its_name_stays_one() -> None:
    assert terms("(v) Rope or chain means what a boat is tied up with.", "Definitions") == ["Rope or chain"]


def test_a_title_is_defined_by_the_line_below_that_says_the_term() -> None:
    text = (
        "(c) Late arrival\n\n(1) The term means:\n\n(i) a boat after sunset; or\n\n(ii) a boat after its booking.\n\n"
        "(2) The term does not include a boat in distress."
    )
    got = found(text, "Definitions")
    assert got == [("means", "Late arrival", "a boat after sunset; or (ii) a boat after its booking.")]


def test_a_definition_takes_the_sentences_of_its_entry_along_but_not_those_of_a_paragraph() -> None:
    entry = "(b) Berth means a place for a boat. The term includes a mooring buoy."
    assert found(entry, "Definitions")[0][2] == "a place for a boat. The term includes a mooring buoy."
    running = "The quay is old. The term berth means a place for a boat. It was built by hand."
    assert found(running)[0][2] == "a place for a boat."


SCOPES = [
    ("For purposes of this section, berth means a place for one boat.", "section"),
    ("For the purposes of this Article, 'berth' means a place for one boat.", "section"),
    ("As used in this paragraph, the term berth means a place for one boat.", "paragraph"),
    ("In this part, berth means a place for one boat.", "part"),
    ("In this chapter, berth means a place for one boat.", "part"),
    ("For the purposes of these rules, berth means a place for one boat.", "document"),
    ("For purposes of § 12.7(d), berth means a place for one boat.", "§ 12.7(d)"),
    ("Berth means a place for one boat.", "document"),
    ("**Berth** means, in this section only, a place for one boat.", "section"),
]


@pytest.mark.parametrize(("text", "scope"), SCOPES, ids=[text for text, _ in SCOPES])
def test_a_definition_holds_where_it_says(text: str, scope: str) -> None:
    assert [d.scope for d in find_definitions(text, ())] == [scope]


def test_a_sentence_before_a_list_announces_definitions_and_their_scope() -> None:
    announced = "For the purposes of this part, the following definitions apply."
    text = announced + "\n\n(a) Berth refers to a place.\n\nBuoy: a float."
    assert [(d.term, d.scope) for d in find_definitions(text, ("Part 2",))] == [("Berth", "part"), ("Buoy", "part")]


def test_every_kind_of_text_gives_the_same_terms() -> None:
    markdown = "## Terms\n\n**Berth** means a place.\n\n**Buoy**: a float.\n"
    rst = "Terms\n=====\n\n**Berth** means a place.\n\nBuoy\n    A float.\n"
    plain = 'TERMS\n\n"Berth" means a\nplace.\n\nBuoy: a float.\n'
    html = "Terms\n\nBerth means a place.\n\nBuoy: a float."
    assert {tuple(terms(text, "Terms")) for text in (markdown, rst, plain, html)} == {("Berth", "Buoy")}


@pytest.mark.parametrize(
    "text",
    [
        "the term " * 30_000,
        "means " * 50_000,
        '("the ' * 60_000,
        "'" * 300_000,
        "( " * 150_000,
        "Aa Bb (AB) " * 25_000,
        "For purposes of " * 20_000,
        "X means:\n\n(1) y\n\n" * 15_000,
        "| a | b\n" * 40_000,
        "\n" * 300_000,
    ],
    ids=lambda text: text[:16],
)
def test_time_is_linear_in_the_text(text: str) -> None:
    started = time.process_time()
    find_definitions(text[: len(text) // 8], ("Definitions",))
    eighth = time.process_time() - started
    find_definitions(text, ("Definitions",))
    assert time.process_time() - started - eighth < 30 * eighth + 0.2


# -- passages ---------------------------------------------------------------------------------------------------


def passage(n: int, text: str, start: int, heading: str = "Definitions", lead: int = 0) -> Passage:
    return Passage(n, text, (heading,), heading, start, start + len(text) - lead, lead)


def cut(text: str, size: int, overlap: int) -> list[Passage]:
    """`text` cut at blanks into passages that repeat `overlap` characters."""
    out, at = [], 0
    while at < len(text):
        end = text.rfind(" ", at, at + size) if at + size < len(text) else len(text)
        begin = max(at - overlap, 0)
        out.append(passage(len(out), text[begin:end].strip(), begin))
        at = end + 1
    return out


def test_a_definition_that_two_passages_hold_is_stored_once_where_it_begins() -> None:
    text = "(a) Berth means a place where one boat is tied up for the night.\n\n(b) Buoy means a float with a ring."
    whole = find_definitions(text, ("Definitions",))
    for size in (30, 60):
        located = list(definitions_of(cut(text, size, 12)))
        assert [one.definition.term for one in located] == [d.term for d in whole]
        for one in located:
            assert one.passage.text[one.start : one.end].startswith(one.definition.term)


def test_a_stored_span_holds_the_marks_of_its_term() -> None:
    text = "**Berth** means a place. The harbor master (the “Master”) decides."
    spans = [one.passage.text[one.start : one.end] for one in definitions_of([passage(1, text, 0)])]
    assert spans == [
        "**Berth** means a place. The harbor master (the “Master”) decides.",
        "The harbor master (the “Master”",
    ]


def test_a_term_whose_definition_follows_in_the_next_passage_is_found_there() -> None:
    first, second = "(c) Late arrival", "(1) The term means a boat after sunset."
    (one,) = definitions_of([passage(7, first, 0), passage(8, second, len(first) + 2)])
    assert (one.definition.term, one.passage.id) == ("Late arrival", 8)
    assert second[one.start : one.end] == second


def test_a_repeated_table_head_is_no_row() -> None:
    head = "Term | Meaning\n"
    first, second = head + "Berth | A place for a boat", head + "Buoy | A float"
    located = list(definitions_of([passage(1, first, 0), passage(2, second, len(first) + 1, lead=len(head))]))
    assert [(one.definition.term, one.passage.id) for one in located] == [("Berth", 1), ("Buoy", 2)]
    assert second[located[1].start : located[1].end] == "Buoy | A float"


# -- uses -------------------------------------------------------------------------------------------------------


def test_a_use_leads_to_the_definition_that_holds_where_it_stands() -> None:
    passages = [
        passage(1, "Berth means a place. Guest berth means a place for a guest.", 0),
        passage(2, "For purposes of this section, berth means a bed. Each berth has a lamp.", 100, "§ 2 Cabins"),
        passage(3, "A berth is cleaned every day.", 200, "§ 2 Cabins"),
        passage(4, "Guest Berths are booked; a berth costs more in summer.", 300, "§ 3 Fees"),
    ]
    uses = uses_of(passages, list(definitions_of(passages)))
    got = {(u.passage.id, u.key, u.passage.text[u.start : u.end], u.defined.passage.id) for u in uses}
    assert got == {(3, "berth", "berth", 2), (4, "guest berth", "Guest Berths", 1), (4, "berth", "berth", 1)}


def test_a_term_that_is_used_all_over_leads_nowhere() -> None:
    passages = [passage(0, "Boat means a vessel. Buoy means a float.", 0)]
    passages += [passage(n, "The boat lies at the quay.", n * 100, "§ 3") for n in range(1, 12)]
    passages.append(passage(12, "The buoy is red.", 1200, "§ 3"))
    defined = list(definitions_of(passages))
    assert {u.key for u in uses_of(passages, defined, hub=10)} == {"buoy"}
    assert {u.key for u in uses_of(passages, defined, hub=11)} == {"buoy", "boat"}


def test_a_definition_spans_its_term_and_its_words() -> None:
    text = "The harbor master (the “Master”) decides."
    (one,) = find_definitions(text, ())
    assert isinstance(one, Definition)
    assert text[slice(*one.span)] == "The harbor master (the “Master"
