"""Names of other documents in running text."""

from nightly.references import signs

#: A capital begins them too, but they are no documents.
_CAPITAL_WORDS = """
    Member Members State States Union Board Bureau Commission Council Parliament Committee Court Company Bank Borrower
    Lender Customer Supplier Client Party Parties Figure Table Note Notes Monday Tuesday Wednesday Thursday Friday
    January February March April May June July August September October November December
"""
_NO_DOCUMENTS = frozenset(_CAPITAL_WORDS.split())


def document_named(text: str, at: int) -> str | None:
    """The name of a document that begins here, as it is written; None without one."""
    found = signs.NAME.match(text, at)
    if found is None:
        return None
    name = signs.TAIL.sub("", signs.NEXT_NAME.split(found["name"], maxsplit=1)[0]).rstrip(".,'’")
    words = name.split()
    if not words or words[0] in _NO_DOCUMENTS or len(name) < 3:
        return None
    return name
