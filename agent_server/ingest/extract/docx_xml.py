"""Names in WordprocessingML, the same for both families of namespaces, and the elements that only wrap others."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from agent_server.ingest.package import Node

_TRANSITIONAL = "http://schemas.openxmlformats.org/"
_STRICT = "http://purl.oclc.org/ooxml/"
_PREFIXES = {
    f"{_TRANSITIONAL}wordprocessingml/2006/main": "w",
    f"{_STRICT}wordprocessingml/main": "w",
    f"{_TRANSITIONAL}officeDocument/2006/math": "m",
    f"{_STRICT}officeDocument/math": "m",
    f"{_TRANSITIONAL}officeDocument/2006/relationships": "r",
    f"{_STRICT}officeDocument/relationships": "r",
    f"{_TRANSITIONAL}markup-compatibility/2006": "mc",
    "http://purl.org/dc/elements/1.1/": "dc",
}
_ATTRIBUTES = {
    prefix: tuple(f"{{{uri}}}" for uri, known in _PREFIXES.items() if known == prefix) for prefix in ("w", "r")
}
#: Wrap blocks, rows or cells and say nothing themselves.
_WRAPPERS = frozenset({"w:sdt", "w:sdtContent", "w:customXml", "w:smartTag", "w:ins", "w:moveTo"})
_SAYS = frozenset({"w:t", "m:t", "w:sym", "w:txbxContent"})


@lru_cache(maxsize=4096)
def _short(tag: str) -> str:
    uri, _, local = tag.lstrip("{").rpartition("}")
    return f"{_PREFIXES.get(uri, '?' if uri else '')}:{local}"


def name(node: Node) -> str:
    """`w:p`, `mc:Choice`; `?:shape` for a namespace that says nothing here; "" for what is no element."""
    return _short(node.tag) if isinstance(node.tag, str) else ""


def attribute(node: Node | None, local: str, prefix: str = "w") -> str:
    """The value of `w:local`, "" without it."""
    if node is None:
        return ""
    for uri in _ATTRIBUTES[prefix]:
        value = node.get(uri + local)
        if value is not None:
            return str(value)
    return ""


def child(node: Node | None, *path: str) -> Node | None:
    """The first child with the name, then its first child with the next name."""
    for wanted in path:
        if node is None:
            return None
        node = next((part for part in node if name(part) == wanted), None)
    return node


def value(node: Node | None, *path: str) -> str:
    """`w:val` of the child, "" without one."""
    return attribute(child(node, *path), "val")


def number(node: Node | None, *path: str) -> int | None:
    try:
        return int(value(node, *path))
    except ValueError:
        return None


def switch(node: Node | None, *path: str) -> bool | None:
    """On, off, or None where nothing is said."""
    found = child(node, *path)
    return None if found is None else attribute(found, "val").lower() not in {"0", "false", "off"}


def chosen(alternatives: Node) -> Node | None:
    """The one branch of mc:AlternateContent to be read: the first that says anything."""
    branches = [part for part in alternatives if name(part) in {"mc:Choice", "mc:Fallback"}]
    return next((b for b in branches if any(name(n) in _SAYS for n in b.iter())), None)


def parts(node: Iterable[Node]) -> Iterator[Node]:
    """The children, with wrappers replaced by what they wrap."""
    for part in node:
        what = name(part)
        if what in _WRAPPERS:
            yield from parts(part)
        elif what == "mc:AlternateContent":
            branch = chosen(part)
            if branch is not None:
                yield from parts(branch)
        else:
            yield part
