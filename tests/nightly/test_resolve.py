"""References lead to the place that they name: in their own document first, then in the collection."""

import time

import pytest

from nightly.references.edges import edges_of
from tests.nightly.books import Shelf, book, edges, led
from tests.nightly.timing import assert_linear

RULES = """# 9 CFR Part 31 Barges

## § 31.1 Scope.

This part, known as Regulation Q, applies to barges as § 31.2(a) defines them, and not to rafts under paragraph (b) of
this section.

(a) Barges in use. See Appendix A to this part, and Part II of that appendix.

(b) Rafts.

(1) A raft under paragraph (b)(2) of this section is no barge, but one under paragraph (a) of § 31.2 is.

(2) Small rafts, whatever paragraph (a) says, and those of § 31.2(b)(3) or § 31.9.

## § 31.2 Definitions.

(a) Barge means a flat boat.

(b) Crew means: (1) a master; (2) a mate, as paragraph (1) has one; or (3) others.

## Appendix A to Part 31

### Part I. Forms

1. Use item 2 of part II of this appendix.

### Part II. Tables

1. The first table.

2. The second table.

## Supplement I to Part 31—Interpretations

### Section 31.2—Definitions

#### 2(a) Barge

1. General. A barge floats. See § 31.2(a), paragraph (b)(3) and comment 2(b)-1.

2. Exceptions. A raft does not.

#### 2(b) Crew

1. Masters. See comments 2(a)-1 and -2, and comment 2(c)-1.
"""


def test_references_lead_to_the_numbered_place_in_their_own_document() -> None:
    found = led(RULES)
    assert found["§ 31.2(a)"].startswith("(a) Barge means")
    assert found["paragraph (b)"].startswith("(b) Rafts")
    assert found["Appendix A"].startswith("## Appendix A")
    assert found["paragraph (b)(2)"].startswith("(2) Small rafts")
    assert found["paragraph (a) of § 31.2"].startswith("(a) Barge means")
    assert found["paragraph (a)"].startswith("(a) Barges in use")
    assert found["§ 31.2(b)(3)"].startswith("(3) others")
    assert found["paragraph (1)"].startswith("(1) a master")
    assert found["Part II"].startswith("### Part II")
    assert found["item 2 of part II of this appendix"].startswith("2. The second")


def test_words_in_a_commentary_speak_about_the_section_that_it_comments_on() -> None:
    found = led(RULES)
    assert found["paragraph (b)(3)"].startswith("(3) others")
    assert found["comment 2(b)-1"].startswith("1. Masters")
    assert found["comments 2(a)-1"].startswith("1. General")
    assert found["-2"].startswith("2. Exceptions")


def test_what_is_not_there_is_kept_with_the_reason() -> None:
    found = led(RULES)
    assert found["§ 31.9"] == "! no § 31.9"
    assert found["comment 2(c)-1"] == "! no comments on 2(c) here"


def test_comments_that_lost_their_numbers_are_counted() -> None:
    text = RULES.replace("1. General. A", "##### General.\n\nA").replace("2. Exceptions. A", "##### Exceptions.\n\nA")
    found = led(text)
    assert found["comments 2(a)-1"].startswith("##### General")
    assert found["-2"].startswith("##### Exceptions")
    run_in = RULES.replace("1. General. A", "General.A").replace("2. Exceptions. A", "Exceptions.A")
    assert led(run_in)["-2"].startswith("Exceptions.A")


def test_a_place_without_visible_paragraphs_stands_for_them_and_one_with_others_does_not() -> None:
    text = (
        "# § 5.1 Fees\n\nSee § 5.2(c) and § 5.3(c).\n\n# § 5.2 Plain\n\nWords.\n\n# § 5.3 Listed\n\n(a) One\n\n(b) Two"
    )
    assert led(text) == {"§ 5.2(c)": "# § 5.2 Plain Words.", "§ 5.3(c)": "! no paragraph (c) in § 5.3"}


ARTICLES = """Article 1 - Scope

(1). This law applies to boats. Article 3(2) and point (b) of Article 2(1) say how; Article 101 TFEU does not.

(2). Paragraph 1 binds owners, and paragraph 2 of Article 3 binds masters. Article 2 of Directive 99/12/EC stands.

Article 2 - Meaning

(1). A boat is: (a) a barge; (b) a raft; or (c) a ship.

Article 3 - Duties

(1). Owners pay.

(2). Masters steer, as the first subparagraph of paragraph 1 allows.
"""


def test_articles_and_their_points_are_found_in_running_text() -> None:
    found = led(ARTICLES, "law.txt")
    assert found["Article 3(2)"].startswith("(2). Masters")
    assert found["point (b) of Article 2(1)"].startswith("(b) a raft")
    assert found["Paragraph 1"].startswith("(1). This law")
    assert found["paragraph 2 of Article 3"].startswith("(2). Masters")
    assert found["first subparagraph of paragraph 1"].startswith("(1). Owners")
    assert found["Article 101 TFEU"] == "! no document called TFEU in the collection"
    assert found["Article 2 of Directive 99/12/EC"] == "! no document called Directive 99/12/EC in the collection"


CONTRACT = """# Loan agreement

## 2 The loan

2.1 The Lender lends as clause 3.2 says.

2.2 The Borrower pays under clause 2.1, Section 3 and section 3.2(b).

## 3 Fees

3.1 There are fees in the table above and in Table 2.

| Fee | Amount |
|---|---|
| Late | 5 |

3.2 They fall due: (a) monthly; or (b) at the end, as the table above shows.

Table 2. Other fees
"""


def test_clauses_sections_and_tables_of_a_contract() -> None:
    found = led(CONTRACT)
    assert found["clause 3.2"].startswith("3.2 They fall")
    assert found["clause 2.1"].startswith("2.1 The Lender")
    assert found["Section 3"].startswith("## 3 Fees")
    assert found["section 3.2(b)"].startswith("(b) at the end")
    assert found["Table 2"].startswith("Table 2.")
    assert found["table above"].startswith("| Fee | Amount")


# -- other documents --------------------------------------------------------------------------------------------

LATE = "# FIN-3 Late Fee Policy\n\n## 4.1 Grace\n\n(a) Ten days.\n\n## 4.2 Amount\n\nFive dollars."


def test_a_document_is_found_by_title_alias_series_and_number() -> None:
    own = book(
        "# Notes\n\nSee section 4.2 of the Late Fee Policy, § 31.2(b) of Regulation Q, 9 CFR 31.1(a), PEP 7, section 2 of"
        " RFC 77 and § 31.1.",
        "notes.md",
    )
    late, rules = book(LATE, "fees/late.md"), book(RULES, "cfr/31.md")
    pep, rfc = book("# Style\n\nText.", "pep-0007.md"), book("# RFC 77\n\n## 2 Words\n\nMust.", "r.md")
    found = edges_of(own, Shelf(own, late, rules, pep, rfc))
    assert found.dangling == []
    places = {b.source: {p.id: p.text for p in b.manuscript.passages} for b in (late, rules, pep, rfc)}
    texts = [
        text[link.target.start : link.target.end][:14]
        for link, source in zip(found.links, [late, rules, rules, pep, rfc, rules], strict=True)
        for text in [places[source.source][link.target.passage]]
    ]
    assert texts == [
        "## 4.2 Amount\n",
        "(b) Crew means",
        "(a) Barges in ",
        "# Style",
        "## 2 Words\n\nMu",
        "## § 31.1 Scop",
    ]


BOATS = book(
    """# Policy 4410 Boats

## 4410.1 Definitions

**Boat** means anything that floats. See section 2 of this policy and Appendix A.

## 4410.2 Mooring

(a) Boats moor at the quay.

(b) Rafts moor nowhere.

## Appendix A. Quays

The long quay.
""",
    "4410-boats.md",
)
TIMES = book("# Harbor District Regulation HB-220: Times\n\n## 1. Days\n\nDays.\n\n## 2. Hours\n\nHours.\n", "times.md")
FEES = book("# Fee Schedule 2031-32\n\n## Part 6. Rafts\n\nRafts are free.\n", "fees.md")


@pytest.mark.parametrize(
    ("said", "there"),
    [
        ("section 2 of Policy 4410", "## 4410.2 Mooring"),
        ("section 2(b) of Policy 4410", "(b) Rafts moor"),
        ("Policy 4410 section 2", "## 4410.2 Mooring"),
        ("Appendix A of Policy 4410", "## Appendix A. Quays"),
        ("section 2 of Regulation HB-220", "## 2. Hours"),
        ("part 6 of the fee schedule", "## Part 6. Rafts"),
    ],
)
def test_parts_of_a_numbered_document_are_found_by_its_number_or_its_name(said: str, there: str) -> None:
    own = book(f"# Guide\n\nRead {said}.\n", "guide.md")
    found = edges_of(own, Shelf(own, BOATS, TIMES, FEES))
    assert [d.reason for d in found.dangling] == []
    (link,) = found.links
    texts = [p.text for b in (BOATS, TIMES, FEES) for p in b.manuscript.passages if p.id == link.target.passage]
    assert any(text[link.target.start :].startswith(there) for text in texts)


def test_a_document_numbered_by_its_title_finds_its_own_sections() -> None:
    found = led(BOATS.manuscript.text, "4410-boats.md")
    assert found["section 2"].startswith("## 4410.2 Mooring")
    assert found["Appendix A"].startswith("## Appendix A")


def test_that_regulation_is_the_other_document_that_was_named_before() -> None:
    own = book(
        "# Guide\n\nTimes: section 1 of Regulation HB-220. Section 2 of that regulation has hours.\n", "guide.md"
    )
    assert [(x.anchor, x.label) for x in edges_of(own, Shelf(own, TIMES)).links] == [
        ("section 1 of Regulation HB-220", "Regulation HB-220 § 1"),
        ("Section 2", "§ 2"),
    ]
    lonely = edges("# Guide\n\nSection 2 of that regulation has hours.\n")
    assert [d.reason for d in lonely.dangling] == ["nothing was named before"]


def test_a_section_that_several_numbered_documents_have_is_not_guessed() -> None:
    own = book("# Guide\n\nSee section 2.\n", "guide.md")
    cars = book("# Policy 4420 Cars\n\n## 4420.1 Scope\n\nCars.\n\n## 4420.2 Parking\n\nNone.\n", "cars.md")
    assert edges_of(own, Shelf(own, BOATS, cars)).links == []


def test_a_name_that_two_documents_have_leads_nowhere() -> None:
    found = edges("# Notes\n\nSee section 4.2 of the Late Fee Policy.", "n.md", book(LATE, "a.md"), book(LATE, "b.md"))
    assert [d.reason for d in found.dangling] == ["2 documents are called Late Fee Policy"]
    assert found.links == []


def test_an_article_that_stands_in_another_file_of_a_split_law_is_found_there() -> None:
    six, seven = "# Article 6 Lawfulness\n\n(1) One.", "# Article 7 Consent\n\nSee Article 6(1) and Article 8."
    found = edges(seven, "7.md", book(six, "6.md"))
    assert [link.label for link in found.links] == ["Article 6(1)"]
    assert [d.reason for d in found.dangling] == ["no Article 8"]
    assert {"label:article 6", "label:article 8"} <= found.wants


def test_a_document_with_articles_of_its_own_does_not_borrow_those_of_another() -> None:
    found = edges(ARTICLES + "\n\nArticle 4 - End\n\nSee Article 6.", "law.txt", book("# Article 6 X\n\nY.", "6.md"))
    assert "no Article 6" in [d.reason for d in found.dangling]


def test_a_document_that_names_itself_makes_no_edge() -> None:
    found = edges("# PEP 8 Style\n\nPEP 8 says so. So does Regulation Q.", "pep-0008.md")
    assert [d.label for d in found.dangling] == ["Regulation Q"]
    assert found.links == []


def test_a_reference_in_the_overlap_of_two_passages_is_an_edge_of_both() -> None:
    filler = " ".join(f"Sentence {n} says nothing much about barges." for n in range(5))
    own = book(f"# § 5.1 One\n\n{filler} See § 5.2 now. {filler}\n\n# § 5.2 Two\n\nWords.", size=280)
    found = edges_of(own, Shelf(own))
    assert {link.anchor for link in found.links} == {"§ 5.2"}
    for link in found.links:
        text = {p.id: p.text for p in own.manuscript.passages}
        assert text[link.origin.passage][link.origin.start : link.origin.end] == "§ 5.2"
        assert text[link.target.passage][link.target.start :].startswith("# § 5.2 Two")


@pytest.mark.parametrize(
    "piece",
    ["(a) See paragraph (b) of this section.\n\n", "## § 1.1 x\n\nSee § 1.1(a), § 9.9 and comment 1(a)-1.\n\n", "PEP 1. ",
     "## Supplement I\n\n### Section 1.1\n\n#### 1(a) X\n\nSee comment 1(a)-2.\n\n", "See the table above. | a | b |\n"],
)  # fmt: skip
def test_time_grows_with_the_text_and_not_with_its_square(piece: str) -> None:
    def seconds(size: int) -> float:
        made = book("# § 1.1 A\n\n" + piece * (size // len(piece)) + "end")
        started = time.process_time()
        edges_of(made, Shelf(made))
        return time.process_time() - started

    assert_linear(seconds, 6_000)
