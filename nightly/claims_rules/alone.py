"""Whether a sentence is understood without what stands around it. Everything here says no when in doubt."""

import re

from agent_server.terms import fold_term, term_words
from nightly.claims_rules.places import PLACES

MIN_WORDS = 5
MAX_CHARS = 420
MAX_DEFINITION_CHARS = 800

#: A sentence that begins so goes on with what was said before.
_CONTINUES = re.compile(
    r"(?:it|they|he|she|this|that|these|those|such|we|you|i|there|here|one|ones|both|either|neither|others?|another|none|who|"
    r"whoever|what|which|however|also|then|thereafter|otherwise|further(?:more)?|in\s+addition|in\s+particular|moreover|"
    r"additionally|similarly|likewise|instead|therefore|thus|hence|accordingly|consequently|nevertheless|nonetheless|still|"
    r"(?:all|any|every|each|no|some)\s+others?\b(?!\s+than)|again|finally|first|second|third|next|but|and|or|nor|so|yet|because|for\s+(?:example|instance)|e\.g\.|i\.e\.|"
    r"in\s+(?:that|this|such)\b|if\s+(?:so|not)\b|note|except\s+as|notwithstanding|alternatively|conversely|by\s+contrast|"
    r"as\s+(?:noted|described|discussed|stated|with)|under\s+(?:this|that|these)|assume|suppose|consider|let|say|see|only\s+then|"
    r"the\s+(?:same|other|others|rest|remainder|latter|former|terms?|word|expression|phrase|first|second|third|last|following|above|"
    r"two|three|four|five|reason|idea|point|result|intent|goal|problem|question|answer|fact|example|examples)|examples?|question|answer)\b",
    re.IGNORECASE,
)
_PLACES = (
    r"(?:sub)?(?:section|article|clause|paragraph|part|chapter|title|appendix|annex|schedule|item|point|case|step|table|"
    r"figure)s?"
)
#: Words that point out of the sentence.
_POINTS_AWAY = re.compile(
    r"\b(?:foregoing|aforementioned|aforesaid|herein\w*|hereof|hereunder|hereto|hereby|thereof|therein|thereto|thereunder|"
    r"therefrom|therefor|therefore|latter|formerly|said|as\s+follows|following|same\s+(?:applies|is\s+true|goes|rule|holds|\w+(?=[.,;]))|"
    r"also|too|however|thus|hence|accordingly|likewise|similarly|moreover|furthermore|otherwise|nevertheless|conversely|in\s+turn|"
    r"these|those|such(?!\s+as\b)|this(?!\s+(?:"
    + PLACES
    + r")\b)|the\s+(?:others?|rest|remainder|one|ones|two|three)|ones|in\s+question|here|"
    r"any\s+other(?!\s+than)|above-mentioned|earlier|new\s+one|instead(?!\s+of)|respectively|above\s+all)\b"
    r"|\binclud\w+\s+but\s+not\b"
    r"|\b(?:above|below)\b(?!\s+(?:\$|€|£|\d|zero|a\b|an\b|the\b|[\w-]+\s+percent))"
    r"|\bpreceding\b(?!\s+(?:calendar\s+|fiscal\s+)?(?:year|quarter|month)s?\b)"
    r"|\b(?:in|on|of|from|by|for|at|to|with|under|before|after|until|than|about|into|within)\s+that\b"
    r"|\bthat\s+(?:day|date|time|period|amount|case|section|paragraph|rule|limit|notice|reason|purpose|end|basis|person|party|"
    r"way|account|loan|fee|value|type|class|function|decision|request|information|information)\b"
    r"|\b(?:in|to|under|by|of|and|or)\s+\(\w{1,4}\)|\bthat[.,;)]|\bthere\b(?!\s+(?:is|are|may|must|shall|has|have|will|can|be)\b)"
    r"|\b(?:both|each|either|neither|all|none|any|some|most)\s+of\s+(?:them|which|whom)\b"
    r"|\bone\s+(?:is|was|may|must|shall|that|who|which)\b"
    rf"|\b{_PLACES}\s+(?:\([\w]+\)|[a-z]\))(?!\s*(?:\([\w]+\)\s*)*(?:,?\s*(?:and|or|to|through)\s*\([\w]+\)\s*)*of\s+(?:section|article|part|§|the\s+[A-Z]|\w+\s+[A-Z0-9]))"
    r"|\bparagraphs?\s+\d+(?!\s*(?:,|and|or|to)?\s*(?:\d+\s*)?of\s+(?:section|article|§))",
    re.IGNORECASE,
)
#: The same in a definition, which speaks of its own term and may name others.
_POINTS_AWAY_IN_DEFINITION = re.compile(
    r"\b(?:foregoing|aforementioned|aforesaid|hereunder|hereto|thereunder|said|as\s+follows|above-mentioned|herein|"
    r"the\s+(?:latter|former|others|rest)|this(?!\s+(?:"
    + PLACES
    + r"|definition|term|purpose)\b)|means\s+any\s+other)\b"
    r"|\bthe\s+following\b(?=\s*[:.,;]|\s+\w+:|\Z)|\bfollowing:"
    r"|\bthe\s+(?:first|second|third|last|previous|preceding|next)\s+(?:definition|meaning|term|entry|item|case|rule|sentence)\b"
    r"|\b(?:above|below)\b(?!\s+(?:\$|€|£|\d|zero|a\b|an\b|the\b|[\w-]+\s+percent))"
    rf"|\b{_PLACES}\s+(?:\([\w]+\)|[a-z]\))(?!\s*(?:\([\w]+\)\s*)*(?:,?\s*(?:and|or|to|through)\s*\([\w]+\)\s*)*of\s+(?:section|article|part|§|the\s+[A-Z]|\w+\s+[A-Z0-9]))"
    r"|\bparagraphs?\s+\d+(?!\s*(?:,|and|or|to)?\s*(?:\d+\s*)?of\s+(?:section|article|§))",
    re.IGNORECASE,
)
#: A pronoun as an object may be anything; behind "if", "that" and their like it is the subject of the sentence.
_PRONOUN = re.compile(
    r"(?<!if\s)(?<!when\s)(?<!because\s)(?<!that\s)(?<!unless\s)(?<!after\s)(?<!before\s)(?<!until\s)(?<!since\s)(?<!as\s)"
    r"(?<!where\s)(?<!which\s)(?<!once\s)(?<!whether\s)(?<!than\s)(?<!while\s)\b(?P<it>it|they|them|he|him)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"[{}\\]|#(?!\d)|\s=+\s|->|::|>>>|\*\*|`|\w\[\w")
_SPEAKERS = re.compile(r"\b(?:we|us|our|ours|you|your|yours|my|mine|i)\b(?!\.)", re.IGNORECASE)
_DANGLES = re.compile(
    r"\b(?:before|after|then|thereafter|beforehand|afterwards|too|well|either|so|first|e\.g|i\.e|etc"
    r"|(?:do|does|is|are|has|have|may|can|will|must|need)\s+not|cannot|(?:do|does)\s+so)\.\W*\Z",
    re.IGNORECASE,
)
#: "where 500 members are affected": something spoken of before affects them.
_BY_WHAT = re.compile(
    r"\b(?:is|are|be)\s+(?P<what>affected|involved|concerned|implicated)(?=\s*(?:[,.;]|and\b|or\b))", re.IGNORECASE
)
_HISTORY = re.compile(
    r"\b(?:was|were|had|did|became|used\s+to|no\s+longer|previously|until\s+\d+\s+\w+\s+\d{4}|now\s+reads|would|could\s+have|"
    r"proposed?|propos(?:es|al)|suggest\w*|recently|last\s+year|in\s+(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"\b(?:for\s+(?:example|instance)|e\.g\.|example|assume[sd]?|suppose|hypothetical|illustrat\w+)", re.IGNORECASE
)
#: "the notice": one of which was spoken before, unless it is a role that everybody in the collection knows.
_DEFINITE = re.compile(r"\bthe\s+(?P<noun>[a-z][\w’'-]*)(?P<after>\s+[\w’'-]+|[^\w\s]|\Z)", re.IGNORECASE)
_AFTER = frozenset(
    [
        "of",
        "in",
        "for",
        "to",
        "that",
        "which",
        "who",
        "whose",
        "on",
        "under",
        "between",
        "from",
        "with",
        "at",
        "by",
        "made",
        "set",
        "named",
        "stated",
        "listed",
        "described",
        "required",
        "used",
        "given",
        "prescribed",
        "referred",
        "issued",
        "kept",
        "due",
        "against",
        "over",
        "about",
        "during",
        "concerning",
        "relating",
    ]
)
_KNOWN = re.compile(
    r"(?:member|applicant|borrower|lender|creditor|debtor|guarantor|customer|consumer|controller|processor|employee|employer|"
    r"student|parent|child|teacher|principal|school|district|family|board|bureau|commission|council|union|state|bank|institution|"
    r"court|law|public|owner|holder|user|officer|director|president|secretary|government|department|agency|authority|"
    r"institution|company|world|internet|interpreter|compiler|language|day|week|month|year|time|committee|driver|bus|"
    r"superintendent|counselor|nurse|librarian|panel|fact|right|more|less|most|least|only|same)s?(?:['’]s?)?",
    re.IGNORECASE,
)
_NOT_RULES = re.compile(
    r"\b(?:reject\w*|alternativ\w*|rationale|motivation|examples?|samples?|illustrat\w*|open\s+(?:issues?|questions?)|discussion|"
    r"history|historical|background|references?|acknowledge?ments?|deferred|abandoned|withdrawn|why|questions?|faqs?|worked|"
    r"drafts?|future|possible|ideas?|objections?|concerns?|prior\s+art|comparison|survey|changelog|change\s+log|copyright|"
    r"footnotes?|recitals?|what\s+changes|transition|reasons|how\s+to\s+teach|appendix|frequently|case\s+stud\w+|proposals?|proposed|"
    r"abstract|introduction|unlikely|caveats?|overview|tutorial|use\s+cases?|specification\s+changes|until)\b|\?",
    re.IGNORECASE,
)

#: How a sentence begins that takes something back from the one before it.
EXCEPTS = re.compile(
    r"(?:however|alternatively|but|except|unless|this\s+does\s+not|this\s+rule|otherwise|notwithstanding|the\s+only\s+exception|exceptions?)\b",
    re.IGNORECASE,
)
#: Headings over what was thought of and is not, or is elsewhere.
_GIVEN_UP = re.compile(
    r"\b(?:reject\w*|alternativ\w*|deferred|postponed|abandoned|withdrawn|open\s+(?:issues?|questions?)|prior\s+art|"
    r"related\s+work|comparisons?|survey)\b",
    re.IGNORECASE,
)


def doubts_about(  # noqa: PLR0912  one doubt after the other
    words: str, *, subject_end: int = 0, definition: bool = False
) -> list[str]:
    """What keeps a sentence from being understood alone; empty when nothing does.

    `words` is plain text (`wording.plain`); pronouns behind `subject_end` refer to the subject. A definition may say
    "our", be longer, and be no whole sentence.
    """
    doubts = []
    if len(words.split()) < (1 if definition else MIN_WORDS):
        doubts.append("too short")
    if len(words) > (MAX_DEFINITION_CHARS if definition else MAX_CHARS):
        doubts.append("too long")
    if not definition:
        doubts += continues(words)
    if found := (_POINTS_AWAY_IN_DEFINITION if definition else _POINTS_AWAY).search(words):
        doubts.append(f"points away: {found.group().strip()}")
    if re.search(r"\b(?:it|its|they|their|theirs|them|he|him|his|she|her)\b", words[:subject_end], re.IGNORECASE):
        doubts.append("a pronoun for the subject")
    if not definition and (found := _SPEAKERS.search(words)):
        doubts.append(f"speaks as somebody: {found.group()}")
    if _EXAMPLE.search(words):
        doubts.append("an example")
    if not definition:
        if found := _PRONOUN.search(words, subject_end):
            doubts.append(f"who or what is {found['it'].lower()}?")
        if _CODE.search(words):
            doubts.append("holds code")
        if _HISTORY.search(words):
            doubts.append("tells of the past or of a plan")
        if _DANGLES.search(words):
            doubts.append("ends in the air")
        if found := _BY_WHAT.search(words):
            doubts.append(f"{found['what'].lower()} by what?")
        doubts += _definite(words)
    if not is_balanced(words):
        doubts.append("brackets or quotes are open")
    if re.search(r"[:;—–-]\W*\Z|\b(?<!\()(?:and|or|the|a|an|of)[^\w)]*\Z", words):
        doubts.append("breaks off")
    return doubts


def continues(words: str) -> list[str]:
    """A doubt when a sentence begins like one that goes on with what was said before."""
    return ["goes on with what stands before"] if _CONTINUES.match(words) else []


def _definite(words: str) -> list[str]:
    """ "the notice", without a word of which one, and not named before in the sentence."""
    for found in _DEFINITE.finditer(words):
        noun, after = found["noun"].lower(), found["after"].strip().lower()
        if after in _AFTER or _KNOWN.fullmatch(noun):
            continue
        if (
            after
            and after[0].isalpha()
            and not re.match(
                r"(?:is|are|may|must|shall|has|have|does|do|can|will|and|or|if|when|unless|as|not|be|but|only|before|after|until|within)\b",
                after,
            )
        ):
            continue  # two words at least name it
        if re.search(rf"\b{re.escape(noun.rstrip('s'))}", words[: found.start()], re.IGNORECASE):
            continue
        return [f"which {noun}?"]
    return []


def is_known(noun_phrase: str, around: str, terms: frozenset[str]) -> bool:
    """Whether "the …" says which one: a role that everybody knows, a defined term, a thing with its complement, or one
    that the heading names."""
    words = noun_phrase.split()
    if not words:
        return False
    head = re.split(r"\s+(?:of|for|in|to|from|with|on|under|between|against|by|that|which)\s", noun_phrase)
    if len(head) > 1 or _KNOWN.fullmatch(words[-1]) or words[-1][:1].isupper() or fold_term(noun_phrase) in terms:
        return True
    named = {word for word, _, _ in term_words(around)}
    return all(word in named for word, _, _ in term_words(noun_phrase))


def is_balanced(words: str) -> bool:
    """Whether brackets and double quotes are closed."""
    return (
        all(words.count(left) == words.count(right) for left, right in ("()", "[]", "“”", "{}"))
        and words.count('"') % 2 == 0
    )


def is_given_up(heading_path: tuple[str, ...]) -> bool:
    """Whether these headings stand over what was rejected, put off, or holds elsewhere."""
    return any(_GIVEN_UP.search(h) for h in heading_path)


def is_place_of_rules(heading_path: tuple[str, ...], title: str) -> bool:
    """Whether what stands under these headings is in force: no examples, no rejected ideas, no reasons."""
    return not any(_NOT_RULES.search(h) for h in (*heading_path, title))
