"""The patterns of the grammar: words that begin a reference, numbers, paths, and what stands between and after them."""

import re

from nightly.references.numbering import WORDS

#: Blanks within a reference: a line may end in it, a paragraph not.
B = r"(?:[ \t\u00a0\u2000-\u200a\u202f]|\n(?![ \t>]*\n)){0,24}"
B1 = r"(?:[ \t\u00a0\u2000-\u200a\u202f]|\n(?![ \t>]*\n)){1,24}"
_SIGN = r"\((?:[0-9]{1,3}|[a-z]|[A-Z]{1,2}|aa|bb|cc|dd|ee|ff|gg|hh|[ivxl]{2,6}|[IVXL]{2,6})\)"
PATH_TEXT = rf"{_SIGN}(?:[ \u00a0]?{_SIGN}){{0,8}}"
_ENDS = r"(?![\w%$€£/]|\.\d|,\d{3})"
_DIGITS = r"\d{1,5}(?:[A-Z]{1,2}|[a-z])?(?:\.\d{1,5}[a-z]?)*(?:\([a-z]\)-\d{1,4}[A-Z]?)?(?:-\d{1,4}[a-z]?)?"
_LETTERED = r"[A-Z]{1,6}-?\d{1,4}(?:[.-]\d{1,4})*|[A-Z](?:\.\d{1,4}){1,4}"
_ROMAN = r"[IVXL]{1,7}(?:\.[A-Z](?:\.\d{1,3})?)?"
_LETTER = r"[A-Z]{1,2}"
NUMBER_TEXT = rf"(?:{_DIGITS}|{_LETTERED}|{_ROMAN}|{_LETTER}){_ENDS}"
_WORDS_TEXT = "|".join(
    sorted(
        (re.escape(word) for word in WORDS if word[0] != "§" and word not in {"app", "step", "steps"}),
        key=len,
        reverse=True,
    )
)
#: Series of documents that are known by a number.
SERIES = {"pep": "PEP", "rfc": "RFC", "bcp": "BCP", "iso": "ISO", "iso/iec": "ISO", "nist sp": "NIST SP"}
_SERIES_TEXT = "PEP|RFC|BCP|ISO/IEC|ISO|NIST SP"

#: Where a reference may begin.
TRIGGER = re.compile(
    rf"(?P<sign>§{{1,2}}){B}"
    rf"|(?<![\w/.-])(?P<book>\d{{1,2}}){B1}(?P<code>C\.?F\.?R\.?|U\.?S\.?C\.?){B}(?P<bookword>[Pp]arts?\b|§{{1,2}}|[Ss]ections?\b)?{B}(?=\d)"
    rf"|(?<![\w`:/])(?P<series>{_SERIES_TEXT})s?(?:{B}|-)#?(?=\d)"
    rf"|(?<![\w-])(?P<nth>first|second|third|fourth|fifth|last){B1}(?:sub)?paragraph\b"
    rf"|(?<![\w-])(?:(?:sample|model){B1})?(?P<word>{_WORDS_TEXT})\b\.?(?P<gap>{B1})(?-i:(?=[(\dA-Z-]))"
    rf"|(?<![\w-])(?P<law>(?-i:(?:[A-Z][a-z]+{B1}){{0,2}}(?:Regulation|Directive|Decision){B1}(?:\((?:EU|EC|EEC|Euratom)(?:,{B}Euratom)?\){B1})?(?:No{B1})?\d{{2,4}}/\d{{1,4}}(?:/[A-Z]{{2,7}})?|(?:Regulation|Procedure|Circular|Bulletin){B1}[A-Z]{{1,5}}-?\d{{1,5}}(?:-\d{{1,5}})?(?![\w/])|Regulation{B1}[A-Z]{{1,2}}(?![\w'’-])))"
    rf"|(?<![\w-])(?P<near>[Tt]able|[Ff]igure){B1}(?P<side>above|below)\b",
    re.IGNORECASE,
)
NUMBER = re.compile(NUMBER_TEXT)
PATH = re.compile(PATH_TEXT)
SPACED_PATH = re.compile(rf"[ \u00a0]?{PATH_TEXT}")
COMMENT = re.compile(
    rf"(?:(?P<number>\d{{1,5}}|[A-Z](?:-\d{{1,3}})?)?(?P<path>(?:{_SIGN}){{0,8}}))(?P<entry>(?:-\d{{1,3}}|(?=\.[ivxl]))(?:\.[ivxl]{{1,6}}|\.[A-Z](?![a-z])|\.\d{{1,2}}){{0,4}})?{_ENDS}"
)
SEPARATOR = re.compile(rf"{B},?{B}(?P<word>and/or|and|or|&|through|thru|to|[–-])?{B}(?P<again>§{{1,2}}{B})?")
RANGE_WORDS = frozenset({"through", "thru", "to", "-", "–"})
CHAIN = re.compile(rf"{B}[,:]{B}|{B1}(?=[Pp]oints?\b|\()|{B}[,]?{B1}(?=§)")
#: "Policy 12 section 6": behind the name of a document the place needs no comma.
AFTER_DOCUMENT = re.compile(rf"{B}[,:]{B}|{B1}(?=[Pp]oints?\b|[Ss]ections?\b|[Aa]rticles?\b|[Aa]ppendix\b|\(|§)")
OF = re.compile(rf"{B},?{B}(?P<word>of|to|in|under|from|within){B1}(?P<the>the{B1}(?:present{B1})?)?")
THEREOF = re.compile(rf"{B}(?P<word>thereof|hereof)\b")
OWN = re.compile(rf"(?:this|these|present){B1}(?P<word>[A-Za-z]+)")
THAT = re.compile(rf"(?:that|those|such){B1}(?P<word>[A-Za-z]+)")
_LETTERS = r"[\w&'’/-]*(?:\.[\w&'’/-]+)*"
#: A document by name: words that begin with a capital, and small ones between them.
NAME = re.compile(
    rf"(?P<name>[A-Z]{_LETTERS}(?:{B1}(?:[A-Z0-9]{_LETTERS}|\((?:EU|EC|EEC|[A-Z]{{2,8}})\)|of|and|the|for|on|in|to|No)(?![\w])){{0,11}})"
)
SMALL_NAME = re.compile(
    r"(?:act|statute|code|treaty|charter|directive|law|constitution)\b"
    rf"|(?:[a-z-]{{3,20}}{B1}){{0,2}}(?:rulebook|handbook|manual|glossary)\b|(?:[a-z-]{{3,20}}{B1}){{1,2}}schedule\b"
)
ACRONYM = re.compile(rf"{B1}(?P<name>[A-Z]{{3,6}}|[A-Z][A-Za-z]+{B1}(?:Act|Code|Treaty|Law|Charter))\b")
#: "of the Boat Rules and in the Raft Rules": two names.
NEXT_NAME = re.compile(rf"{B1}(?:and|or){B1}(?:in|of|on|to|for)\b")
TAIL = re.compile(rf"(?:{B1}(?:of|and|the|for|on|in|to|No))+\Z")
_OWN_WORDS = """
    part regulation document agreement contract policy pep rfc act directive law standard specification guide
    guideline guidelines manual handbook notice plan code treaty procedure book report rulebook page article
"""
OWN_DOCUMENT = frozenset(_OWN_WORDS.split())
