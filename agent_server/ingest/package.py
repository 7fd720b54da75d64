"""Zip packages of XML (Office files), read with limits: member names are keys and never paths, no DTD, no bomb.

Only the parts that are asked for are unpacked, piece by piece; pictures and embedded files stay packed and count for
nothing.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, TypeAlias

from lxml import etree

Node: TypeAlias = etree._Element

MAX_UNPACKED = 200 * 1024**2  #: bytes of all parts read from one package, as declared and as really read
MAX_RATIO = 200  #: unpacked to packed; Word's own XML reaches 60, a bomb 1000
_RATIO_FROM = 8 * 1024**2  #: bytes below which the ratio says nothing
_CHUNK = 64 * 1024
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the two that the standard allows
_TYPES = "[Content_Types].xml"
_WORD_MAIN = re.compile(rb"(?:wordprocessingml\.\w+|ms-word\.\w+\.macroEnabled\w*)\.main\+xml")


class Damaged(Exception):
    """The package cannot be read; the message says why."""


class Oversized(Exception):
    """It would unpack to more than the limits."""


class Locked(Exception):
    """A password is needed."""


class Package:
    """A zip file in memory. Opening one raises Damaged; reading also Oversized and Locked."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError) as error:
            raise Damaged(f"cannot be unpacked: {error}") from None
        # Names of parts know no difference of case; some programs write backslashes.
        self._members = {i.filename.replace("\\", "/").lstrip("/").lower(): i for i in self._zip.infolist()}
        self._left = MAX_UNPACKED

    def __enter__(self) -> "Package":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._zip.close()

    def __contains__(self, part: str) -> bool:
        return part.lower() in self._members

    def pieces(self, part: str) -> Iterator[bytes]:
        """The bytes of a part, bounded before and while they are unpacked."""
        info = self._members.get(part.lower())
        if info is None:
            raise Damaged(f"{part} is missing")
        if info.flag_bits & 1:
            raise Locked("a password is needed to read it")
        if info.compress_type not in _METHODS:
            raise Damaged(f"{part} is packed by method {info.compress_type}, which Office files never use")
        self._fits(part, info.file_size, info.compress_size)
        read = 0
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(_CHUNK):
                    read += len(piece)
                    self._fits(part, read, info.compress_size)
                    yield piece
        except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, NotImplementedError) as error:
            raise Damaged(f"{part} cannot be unpacked: {error}") from None
        finally:
            self._left -= read

    def _fits(self, part: str, size: int, packed: int) -> None:
        if size > self._left:
            raise Oversized(f"unpacks to more than {MAX_UNPACKED} bytes")
        if size > _RATIO_FROM and size > MAX_RATIO * packed:
            raise Oversized(f"{part} unpacks to more than {MAX_RATIO} times its size")

    def children(self, part: str, parent: str) -> Iterator[Node]:
        """The children of the elements with the local name `parent`, each whole, one after another, then forgotten."""
        parser = etree.XMLPullParser(
            events=("end",),
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            checked = False
            for piece in self.pieces(part):
                parser.feed(piece)
                for event in parser.read_events():
                    node: Any = event[1]
                    if not checked:
                        _without_dtd(part, node)
                        checked = True
                    above = node.getparent()
                    if above is not None and _local(above) == parent:
                        yield node
                        node.clear()
                        while node.getprevious() is not None:
                            del above[0]
            root = parser.close()
        except etree.XMLSyntaxError as error:
            message = str(error.msg)
            if "depth" in message.lower() or "huge" in message.lower():
                raise Oversized(f"{part} has elements nested deeper, or texts longer, than the parser reads") from None
            raise Damaged(f"{part} is broken XML: {message[:150]}") from None
        _without_dtd(part, root)

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """What a part ("" is the package) refers to inside of the package: id -> (kind, part)."""
        folder, name = posixpath.split(part)
        found: dict[str, tuple[str, str]] = {}
        source = posixpath.join(folder, "_rels", f"{name}.rels")
        if source not in self:
            return found
        for node in self.children(source, "Relationships"):
            target = (node.get("Target") or "").replace("\\", "/")
            if target and (node.get("TargetMode") or "").lower() != "external":
                kind = (node.get("Type") or "").rpartition("/")[2]
                inside = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                found[node.get("Id") or f"#{len(found)}"] = (kind, inside)
        return found


def _local(node: Node) -> str:
    return str(node.tag).rpartition("}")[2]


def _without_dtd(part: str, node: Node) -> None:
    about: Any = node.getroottree().docinfo
    if about.doctype or about.internalDTD is not None:
        raise Damaged(f"{part} declares a DTD, which Office files never do")


def holds_word(data: bytes) -> bool | None:
    """Whether a zip file is a Word document; None when it cannot be opened."""
    try:
        with Package(data) as package:
            if "word/document.xml" in package:
                return True
            return _TYPES in package and _WORD_MAIN.search(b"".join(package.pieces(_TYPES))) is not None
    except (Damaged, Oversized, Locked):
        return None
