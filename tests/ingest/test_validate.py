import io
import os
import pickle
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from agent_server.ingest.validate import read_source
from agent_server.models import FileStatus, Rejected, SourceFile

PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\nstartxref\n0\n%%EOF\n"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PAGE = b"<!DOCTYPE html>\n<html><head><title>404</title></head><body>Not here</body></html>"


def write(root: Path, name: str, data: bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(root: Path, name: str, data: bytes, limit: int = 10**6) -> SourceFile | Rejected:
    return read_source(write(root, name, data), root, max_bytes=limit)


def office(kind: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("_rels/.rels", "<Relationships/>")
        archive.writestr(f"{kind}/document.xml", "<w:document/>")
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.md", b"# Title\n\ntext", "text/markdown"),
        ("a.markdown", b"---\ntitle: x\n---\n\ntext", "text/markdown"),
        (
            "code.md",
            b"import os\n\ndef f():\n    return 1\n\n```c\n#include <stdio.h>\nint main() {}\n```\n",
            "text/markdown",
        ),
        ("html.md", b"<h1 align='center'>Tool</h1>\n\nSome text.", "text/markdown"),
        ("a.rst", b"Title\n=====\n\ntext", "text/x-rst"),
        ("pep.rst", b"PEP: 1\nTitle: X\nAuthor: me <me@example.org>\n\ntext", "text/x-rst"),
        ("a.txt", b"words", "text/plain"),
        ("README", b"words", "text/plain"),
        ("Policy 4.2", b"words", "text/plain"),
        ("LOUD.TXT", b"words", "text/plain"),
        ("data.txt", b'{"a": 1, "b": [2, 3]}', "text/plain"),
        ("about-pdf.txt", b"A PDF begins with %PDF-1.7 and a comment.", "text/plain"),
        ("a.html", PAGE, "text/html"),
        ("fragment.htm", b"<p>One</p><p>Two</p>", "text/html"),
        ("a.pdf", PDF, "application/pdf"),
        ("a.docx", office("word"), DOCX),
        ("Contract", office("word"), DOCX),
        ("late.pdf", b"\r\n\r\n" + PDF, "application/pdf"),
        ("later.pdf", b"mail header\n" * 60 + PDF, "application/pdf"),
        ("utf16.txt", "Zwölf Größen".encode("utf-16"), "text/plain"),
        ("bom.md", b"\xef\xbb\xbf# Setup\r\n", "text/markdown"),
        ("latin.txt", "Der Bürger und die Größe".encode("latin-1"), "text/plain"),
        ("nul.txt", b"good line\nba\x00d line\n", "text/plain"),
        ("nul-latin.txt", "Die Grö\0ße der Körbe und der Säcke".encode("latin-1"), "text/plain"),
        ("half.txt", b"a \xed\xa0\xbd half and a \0 in it, among more than a hundred of letters" * 3, "text/plain"),
    ],
)
def test_content_and_name_that_agree_are_taken(tmp_path: Path, name: str, data: bytes, media_type: str) -> None:
    found = read(tmp_path, name, data)
    assert isinstance(found, SourceFile), found
    assert (found.media_type, found.source, found.data, found.size_bytes) == (
        media_type,
        name,
        data,
        len(data),
    )
    assert found.sha256 == sha256(data).hexdigest()
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("name", "data", "found_type"),
    [
        ("report.pdf", PAGE, "text/html"),
        ("report.md", PAGE, "text/html"),
        ("report.txt", b"\n\n  <!-- x -->\n<html lang=en>", "text/html"),
        ("report.pdf", b"just words", "text/plain"),
        ("report.md", PDF, "application/pdf"),
        (
            "image.txt",
            b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00",
            "image/png",
        ),
        (
            "image.png",
            b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00",
            "image/png",
        ),
        ("renamed.md", office("word"), "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.docx", office("xl"), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.docx", office("other"), "application/"),
        ("a.docx", b"words", "text/plain"),
        ("a.xlsx", OLE + "EncryptedPackage".encode("utf-16-le"), "application/"),
        ("a.xlsx", office("xl"), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("renamed.txt", office("other"), "application/"),
        ("a.txt", b"{\\rtf1\\ansi hello}", "text/rtf"),
        ("noise.txt", bytes(range(256)) * 8, ""),
        ("a.csv", b"a,b\n1,2\n", "text/"),
    ],
)
def test_what_does_not_agree_is_rejected_with_the_type_found(
    tmp_path: Path, name: str, data: bytes, found_type: str
) -> None:
    found = read(tmp_path, name, data)
    assert isinstance(found, Rejected), found
    assert found.status is FileStatus.REJECTED
    assert found.media_type.startswith(found_type)
    assert found.media_type in found.reason
    assert found.sha256 == sha256(data).hexdigest()


def test_a_word_document_behind_a_password_is_encrypted(tmp_path: Path) -> None:
    found = read(tmp_path, "a.docx", OLE + "EncryptedPackage".encode("utf-16-le"))
    assert isinstance(found, Rejected)
    assert found.status is FileStatus.ENCRYPTED


def test_a_word_document_is_known_by_its_content_types_whatever_its_parts_are_called(tmp_path: Path) -> None:
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("docProps/app.xml", "<Properties/>")
        archive.writestr("[Content_Types].xml", f'<Types><Override PartName="/d/x.xml" ContentType="{main}"/></Types>')
    assert isinstance(read(tmp_path, "a.docx", out.getvalue()), SourceFile)
    assert isinstance(read(tmp_path, "cut.docx", out.getvalue()[:60]), SourceFile)  # its reader says: damaged


@pytest.mark.parametrize(
    "data", [b"", b" \r\n\t \n", b"\xef\xbb\xbf \n", "\ufeff \n".encode("utf-16-le"), b"\x00\x00\n"]
)
def test_nothing_but_blanks_is_empty(tmp_path: Path, data: bytes) -> None:
    found = read(tmp_path, "a.md", data)
    assert isinstance(found, Rejected)
    assert found.status is FileStatus.EMPTY


def test_an_empty_file_is_empty_whatever_its_name(tmp_path: Path) -> None:
    found = read(tmp_path, "a.pdf", b"")
    assert isinstance(found, Rejected)
    assert found.status is FileStatus.EMPTY


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    found = read(tmp_path, "a.txt", b"x" * 11, limit=10)
    assert found == Rejected("a.txt", FileStatus.TOO_LARGE, "has 11 bytes, at most 10 are read", size_bytes=11)
    assert isinstance(read(tmp_path, "b.txt", b"x" * 10, limit=10), SourceFile)


def test_links_are_refused_wherever_they_stand_in_the_path(tmp_path: Path) -> None:
    root = tmp_path / "root"
    inside = write(root, "real/a.txt", b"words")
    outside = write(tmp_path, "secret.txt", b"words")
    (root / "link.txt").symlink_to(inside)
    (root / "leak.txt").symlink_to(outside)
    (root / "folder").symlink_to(root / "real")
    for name in ("link.txt", "leak.txt", "folder/a.txt"):
        found = read_source(root / name, root, max_bytes=100)
        assert isinstance(found, Rejected)
        assert (found.status, found.source) == (FileStatus.REJECTED, name)


def test_what_lies_outside_of_the_root_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    write(tmp_path, "secret.txt", b"words")
    found = read_source(root / ".." / "secret.txt", root, max_bytes=100)
    assert isinstance(found, Rejected)
    assert found.status is FileStatus.REJECTED


def test_a_root_that_is_itself_a_link_is_fine(tmp_path: Path) -> None:
    write(tmp_path, "real/sub/a.txt", b"words")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    found = read_source(tmp_path / "alias" / "sub" / "a.txt", tmp_path / "alias", max_bytes=100)
    assert isinstance(found, SourceFile)
    assert found.source == "sub/a.txt"


def test_a_pipe_does_not_block_and_a_folder_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.txt").mkdir()
    for name in ("pipe.txt", "folder.txt"):
        found = read_source(tmp_path / name, tmp_path, max_bytes=100)
        assert isinstance(found, Rejected)
        assert found.status is FileStatus.REJECTED


def test_a_file_that_is_gone_is_failed_so_that_it_is_tried_again(tmp_path: Path) -> None:
    found = read_source(tmp_path / "gone.txt", tmp_path, max_bytes=100)
    assert isinstance(found, Rejected)
    assert found.status is FileStatus.FAILED


def test_a_name_that_is_not_utf8_gets_a_readable_form(tmp_path: Path) -> None:
    name = b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    try:
        found = read(tmp_path, name, b"words")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    assert isinstance(found, SourceFile)
    assert found.source == "caf\\xe9.txt"
    assert found.path.read_bytes() == b"words"


def test_control_characters_in_a_name_are_written_out(tmp_path: Path) -> None:
    found = read(tmp_path, "two\nlines.txt", b"words")
    assert found.source == "two\\x0alines.txt"


def test_the_carried_libmagic_wins_over_one_that_was_loaded_before() -> None:
    code = (
        "import magic\n"
        "from agent_server.ingest.validate import _libmagic\n"
        "print(_libmagic()[0].from_buffer(b'%PDF-1.4'))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "failed to find libmagic" in run.stderr:
        pytest.skip("no system libmagic that could be loaded before")
    assert run.stdout.strip() == "application/pdf", run.stderr
    assert run.stderr == ""
