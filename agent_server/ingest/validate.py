"""Which files are taken in, and as what: the bytes decide, the name has to agree.

The table `_READ_AS` says which extension may hold which kind of content. Everything else is rejected with the type
that was found, so that an error page saved as `report.pdf` never becomes a page of knowledge.
"""

import errno
import hashlib
import os
import re
import stat
import sys
from functools import cache
from importlib import import_module, reload
from pathlib import Path
from typing import Any, BinaryIO, Literal

from agent_server.ingest.hygiene import decode
from agent_server.ingest.large import survey
from agent_server.ingest.package import holds_word
from agent_server.models import FileStatus, LargeText, Rejected, SourceFile

Content = Literal["text", "html", "pdf", "docx", "other"]

_MARKDOWN, _RST, _PLAIN, _HTML, _PDF, _DOCX = (
    "text/markdown",
    "text/x-rst",
    "text/plain",
    "text/html",
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
)

#: (extension, content found) -> media type. Text content says nothing about its markup, so there the name decides;
#: a fragment of HTML without `<html>` counts as text for libmagic.
_READ_AS: dict[tuple[str, Content], str] = {
    (".md", "text"): _MARKDOWN,
    (".markdown", "text"): _MARKDOWN,
    (".rst", "text"): _RST,
    (".txt", "text"): _PLAIN,
    (".text", "text"): _PLAIN,
    ("", "text"): _PLAIN,
    (".html", "text"): _HTML,
    (".htm", "text"): _HTML,
    (".xhtml", "text"): _HTML,
    (".html", "html"): _HTML,
    (".htm", "html"): _HTML,
    (".xhtml", "html"): _HTML,
    ("", "html"): _HTML,
    (".pdf", "pdf"): _PDF,
    ("", "pdf"): _PDF,
    (".docx", "docx"): _DOCX,
    ("", "docx"): _DOCX,
}
_EXTENSIONS = sorted({extension for extension, _ in _READ_AS if extension})

_PDF_WITHIN = 1024  #: bytes that may stand before `%PDF-` (readers of PDF allow as many)
_MAGIC_BYTES = 256 * 1024  #: as much as libmagic looks at
#: Text by its letters, but a program reads it, not a person.
_NOT_FOR_READERS = ("text/rtf", "application/rtf", "application/postscript", "image/", "text/x-dvi")
_HTML_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*(?:<!doctype\s+html|<html[\s>]|<head[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  #: old Office files, and new ones behind a password
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_BLANK_BYTES = b"\x00 \t\r\n\v\f"
_TEXT_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_CONTROL = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_MAX_CONTROL_SHARE = 0.02
_MAX_NUL_SHARE = 0.3
_READ_SHARE = 0.85  #: letters, digits and blanks of a Western text; noise has about half


@cache
def _libmagic() -> tuple[Any, Any]:
    """libmagic for media types and for encodings, with the library and the table that `pylibmagic` carries.

    A library of one version with the table of another one fails, so both have to come from there. Importing
    `pylibmagic` makes `ctypes` find its copy before any copy of the system; a `magic` that somebody imported earlier
    is loaded again. Built at first use: the objects cannot travel to another process.
    """
    # By name: sorting the imports must never put `magic` first.
    carried = import_module("pylibmagic").data
    magic = import_module("magic")
    if not str(getattr(magic.libmagic, "_name", "")).startswith(str(carried)):
        magic = reload(magic)
    table = str(carried.joinpath("magic.mgc"))
    return magic.Magic(mime=True, magic_file=table), magic.Magic(mime_encoding=True, magic_file=table)


def source_name(path: Path, root: Path) -> str:
    """The name of a file in citations and in the ledger: relative to `root`, forward slashes, printable.

    Bytes that are not UTF-8 and control characters are written as `\\xe9`, and a backslash as two, so that two files
    never share a name.
    """
    try:
        relative = path.relative_to(root)
    except ValueError:
        relative = path
    plain = relative.as_posix().replace("\\", "\\\\")
    name = plain.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return re.sub("[\x00-\x1f\x7f-\x9f]", lambda m: f"\\x{ord(m[0]):02x}", name)


def _extension(path: Path) -> str:
    """The extension in small letters, "" where the name has none ("README", "Policy 4.2")."""
    suffix = path.suffix.lower()
    return suffix if re.fullmatch(r"\.[a-z][a-z0-9+_-]*", suffix) else ""


def _reads_as_text(data: bytes) -> bool:
    """Whether bytes that libmagic calls binary are text with a few stray control characters in it."""
    if data.startswith(_TEXT_MARKS):
        return True
    if data.count(0) > _MAX_NUL_SHARE * len(data):
        return False
    text = data.decode("utf-8", "replace")
    if len(_CONTROL.findall(text)) <= _MAX_CONTROL_SHARE * len(text):
        return True
    western = data.decode("cp1252", "replace").replace("\0", "")
    read = sum(letter.isalnum() or letter.isspace() for letter in western)
    return len(_CONTROL.findall(western)) <= _MAX_CONTROL_SHARE * len(western) and read >= _READ_SHARE * len(western)


def _content(data: bytes, extension: str) -> tuple[Content, str]:
    """The kind of content and the media type that libmagic found."""
    head = data[:_MAGIC_BYTES]
    kinds, encodings = _libmagic()
    found = str(kinds.from_buffer(head))
    at = data.find(b"%PDF-", 0, _PDF_WITHIN + 5)
    # A text may speak of `%PDF-` in its first lines: before the mark only blanks count, unless the name says PDF.
    if _HTML_PAGE.match(head):
        return "html", _HTML
    if at >= 0 and (extension == ".pdf" or not data[:at].strip()):
        return "pdf", _PDF
    if head.startswith(_ZIP) and extension in {".docx", ""}:
        word = holds_word(data)
        # Cut off, it is still a document, and its reader says that it is damaged.
        if word or (word is None and (extension == ".docx" or found == _DOCX)):
            return "docx", _DOCX
        return "other", found if found != _DOCX else "application/zip"
    if found.startswith(_NOT_FOR_READERS):
        return "other", found
    if str(encodings.from_buffer(head)) != "binary" or _reads_as_text(head):
        return "text", found if found.startswith("text/") or "octet-stream" not in found else _PLAIN
    return "other", found


def open_regular(path: Path) -> BinaryIO | tuple[FileStatus, str]:
    """A regular file for reading, or status and reason why not."""
    # Non-blocking: opening a pipe would wait for a writer for ever. No-follow: the link may be new since the check.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        status = FileStatus.REJECTED if error.errno == errno.ELOOP else FileStatus.FAILED
        return status, f"cannot be opened: {error.strerror or error}"
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return FileStatus.REJECTED, "is not a regular file"
    return os.fdopen(handle, "rb")


def _has_link(path: Path, root: Path) -> bool:
    """Whether the file, or a folder between the root and it, is a symbolic link. The root itself may be one."""
    try:
        parts = path.relative_to(root).parts
    except ValueError:
        return path.is_symlink()
    at = root
    for part in parts:
        at = at / part
        if at.is_symlink():
            return True
    return False


def _over(size: int, limit: int) -> str:
    return f"has {size} bytes, at most {limit} are read"


def read_source(
    path: Path, root: Path, *, max_bytes: int, hold_bytes: int = sys.maxsize
) -> SourceFile | LargeText | Rejected:
    """Read `path`, a file below `root`, once, and say what it is, or why it is not taken. Sizes in bytes.

    Plain text and Markdown of more than `hold_bytes` come back as LargeText, without the bytes. Never raises for what
    a file is or says: what cannot be opened now is `failed`, links and what lies outside of `root` are `rejected`,
    nothing but blanks is `empty`, more than `max_bytes` is `too_large`. Raises OSError when reading breaks off.
    """
    source = source_name(path, root)
    try:
        real_root = root.resolve(strict=True)
        real = path.resolve(strict=True)
        link = _has_link(path, root)
    except (OSError, RuntimeError) as error:
        return Rejected(source, FileStatus.FAILED, f"cannot be found: {error}")
    if link:
        return Rejected(source, FileStatus.REJECTED, "is or lies behind a symbolic link; links are not followed")
    if not real.is_relative_to(real_root):
        return Rejected(source, FileStatus.REJECTED, "lies outside of its root folder")
    source = source_name(real, real_root)
    opened = open_regular(real)
    if isinstance(opened, tuple):
        return Rejected(source, *opened)
    with opened as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > max_bytes:
            return Rejected(source, FileStatus.TOO_LARGE, _over(size, max_bytes), size_bytes=size)
        if size > hold_bytes:
            media_type = _large_text_type(real, stream.read(_MAGIC_BYTES))
            stream.seek(0)
            if media_type is not None:
                digest, encoding = survey(stream)
                return LargeText(real, source, digest, size, media_type, encoding)
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:  # it grew after the look at its size
        return Rejected(source, FileStatus.TOO_LARGE, _over(len(data), max_bytes), size_bytes=len(data))
    return _judge(real, source, data)


def _large_text_type(path: Path, head: bytes) -> str | None:
    """What a file that begins with `head` is, if that can be read in windows."""
    extension = _extension(path)
    media_type = _READ_AS.get((extension, "text"))
    if media_type not in (_PLAIN, _MARKDOWN) or _content(head, extension)[0] != "text":
        return None
    return media_type


def _judge(path: Path, source: str, data: bytes) -> SourceFile | Rejected:
    """What bytes with this name are to be read as."""
    digest = hashlib.sha256(data).hexdigest()
    size = len(data)
    if not data.strip(_BLANK_BYTES):
        reason = "holds nothing but blanks" if data else "has no bytes"
        return Rejected(source, FileStatus.EMPTY, reason, digest, size)
    extension = _extension(path)
    if extension == ".docx" and data.startswith(_OLE) and _ENCRYPTED_PACKAGE in data:
        reason = "a password is needed to read it"
        return Rejected(source, FileStatus.ENCRYPTED, reason, digest, size, "application/encrypted")
    content, found = _content(data, extension)
    media_type = _READ_AS.get((extension, content))
    if media_type is None:
        if any(extension == known for known, _ in _READ_AS if known):
            reason = f"is named {extension} but its content is {found}"
        elif content == "other":
            reason = f"content is {found}, which is not read"
        else:
            reason = f"{extension} files are not read (content {found}); read are {', '.join(_EXTENSIONS)}"
        return Rejected(source, FileStatus.REJECTED, reason, digest, size, found)
    if content == "text" and not decode(data).replace("\0", "").strip():
        return Rejected(source, FileStatus.EMPTY, "holds nothing but blanks", digest, size, media_type)
    return SourceFile(path, source, data, digest, size, media_type)
