"""Where links lead: to a file and a fragment, to a document of a series, to a title or label."""

from nightly.references.books import Book, Library
from nightly.references.markup import Pointer, fold_name, plain_slug
from nightly.references.names import file_keys, outside_keys, ref_key
from nightly.references.resolve import Found, Missing, Target, whole


def pointer_label(pointer: Pointer) -> str:
    """What a link names, in short."""
    named = pointer.path or pointer.series or pointer.name
    return f"{named}#{pointer.fragment}" if pointer.fragment else named


def follow(pointer: Pointer, book: Book, library: Library, wants: set[str]) -> Found:
    """What a link leads to. Keys that were looked for in other documents are added to `wants`."""
    if pointer.name:
        return _to_name(pointer.name, book, library, wants, sure=pointer.sure)
    keys = outside_keys(pointer.series) if pointer.series else file_keys(pointer.path)
    if not keys or any(key in book.names for key in keys):
        return _fragment(pointer.fragment, book, own=True)
    wants |= set(keys)
    for key in keys:
        sources = library.called(key)
        if len(sources) == 1:
            other = library.book(sources[0])
            return (
                Missing(f"{sources[0]} cannot be read")
                if other is None
                else _fragment(pointer.fragment, other, own=False)
            )
        if sources:
            return Missing(f"{len(sources)} documents are called {pointer_label(pointer)}")
    what = pointer.series or pointer.path
    return Missing(f"no document called {what} in the collection")


def _fragment(fragment: str, book: Book, *, own: bool) -> Found:
    if not fragment:
        return None if own else whole(book)
    found = _spot(fragment, book)
    if found is None:
        return Missing(f"nothing is called #{fragment} in {book.source}")
    return Target(book.source, *found)


def _spot(name: str, book: Book) -> tuple[int, int] | None:
    spots = book.spots
    for key in (name, name.casefold(), plain_slug(name)):
        if key and key in spots:
            return spots[key]
    return None


def _to_name(name: str, book: Book, library: Library, wants: set[str], *, sure: bool) -> Found:
    own = book.spots.get(f"title:{fold_name(name)}") or (book.spots.get(plain_slug(name)) if sure else None)
    if own is not None:
        return Target(book.source, *own)
    key = ref_key(name)
    if sure:
        wants.add(key)
        sources = [s for s in library.called(key) if s != book.source]
        other = library.book(sources[0]) if len(sources) == 1 else None
        found = other.spots.get(f"title:{fold_name(name)}") if other is not None else None
        if other is not None and found is not None:
            return Target(other.source, *found)
    return Missing(f"nothing is called {name!r} here or in the collection")
