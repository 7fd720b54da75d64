"""`kb graph`: what is shown around a passage or a term, and that documents cannot break out of a drawing."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from agent_server.db import Database
from agent_server.doors.cli import main as cli
from agent_server.settings import Settings
from nightly import defines
from nightly.graph_view import Branch, Node, draw, tree
from tests.corpus import File, fill
from tests.retrieval.edges import cite

PLUGIN = EntryPoint("graph", "nightly.graph:register", "kb.commands")
FILES = [
    File("rules.md", ["**Berth** means a place for one boat.", "See the fees for each berth."], heading="Definitions"),
    File("fees.md", ["Eleven crowns for each metre."]),
]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def kb(database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collection HARBOR with edges, and an environment in which `kb` finds it."""
    collection = fill(database, "HARBOR", FILES)
    defines.refresh(database, collection)
    cite(database, collection, ("rules.md::1", "fees.md::0"))
    with database.owner("kb_harbor") as connection:
        connection.execute(
            "INSERT INTO dangling_links (from_chunk, anchor, from_start, from_end, target_label, reason)"
            " SELECT id, 'annex Z', 0, 7, 'Annex Z', 'no such heading' FROM chunks WHERE chunk_id = 'rules.md::1'"
        )
    assert settings.database_url is not None
    monkeypatch.setenv("KB_DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setenv("KB_HOME", str(settings.home))
    monkeypatch.setenv("KB_READER_SECRET", "tests")
    monkeypatch.setattr(cli, "entry_points", lambda group: [PLUGIN])


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["graph", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("kb")
def test_a_passage_is_shown_with_its_edges_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "HARBOR", "--chunk", "rules.md::1")
    assert code == 0
    assert out.splitlines() == [
        "rules.md::1 · Definitions",
        "├─ cites (1)",
        "│  └─ “see fees.md::0” → fees.md::0",
        "├─ uses terms that are defined in (1)",
        "│  └─ “berth” → rules.md::0 · Definitions",
        "└─ refers to what was not found (1)",
        "   └─ “annex Z” → Annex Z · no such heading",
    ]
    _, out, _ = run(capsys, "HARBOR", "--chunk", "rules.md::0")
    assert "└─ defines terms that are used in (1)\n   └─ “berth” → rules.md::1" in out
    assert "Berth · means, document · **Berth** means a place for one boat." in out
    _, out, _ = run(capsys, "HARBOR", "--chunk", "fees.md::0")
    assert "is cited by (1)" in out


@pytest.mark.usefixtures("kb")
def test_a_term_is_shown_with_its_definition_and_its_uses(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "HARBOR", "--term", "the Berths")
    assert code == 0
    assert out.splitlines()[:2] == ["Berth · berth", "└─ defined in (1)"]
    assert "“means, document” → rules.md::0" in out
    assert "“berth” → rules.md::1" in out


@pytest.mark.usefixtures("kb")
def test_json_holds_what_the_tree_shows(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "HARBOR", "--chunk", "rules.md::1", "--json")
    got = json.loads(out)
    assert got["name"] == "rules.md::1"
    cites = next(b for b in got["branches"] if b["relation"] == "cites")
    assert [(n["name"], n["anchor"]) for n in cites["nodes"]] == [("fees.md::0", "see fees.md::0")]


@pytest.mark.usefixtures("kb")
def test_without_a_passage_totals_and_hubs_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "HARBOR")
    assert "3 passages, 1 citations (1 lead nowhere), 1 terms, 1 uses of them" in out
    assert "rules.md::0" in out
    _, out, _ = run(capsys, "HARBOR", "--json")
    assert json.loads(out)["hubs"][0]["edges"] == 1


@pytest.mark.usefixtures("kb")
def test_a_drawing_is_one_svg_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "a.svg"
    code, out, err = run(capsys, "HARBOR", "--chunk", "rules.md::1", "--svg", str(file))
    assert (code, out) == (0, "")
    assert "a.svg" in err
    root = ET.fromstring(file.read_text(encoding="utf-8"))
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert {"rules.md::1", "fees.md::0", "rules.md::0", "Annex Z", "citation", "use of a term", "not found"} <= set(
        words
    )


@pytest.mark.usefixtures("kb")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--chunk", "rules.md::9"), 1, "no passage"),
        (("--term", "buoy"), 1, "defines 'buoy'"),
        (("--term", "…"), 1, "holds no word"),
        (("--term", "berth", "--chunk", "rules.md::1"), 2, "not both"),
        (("--svg", "a.svg"), 2, "needs --chunk or --term"),
    ],
)
def test_what_cannot_be_shown_is_an_error_in_words(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    got, out, err = run(capsys, "HARBOR", *arguments)
    assert (got, out) == (code, "")
    assert said in err


HOSTILE = '</text><script>alert(1)</script> & "quoted" \x1b[31m\x00 \ud800 end'


def test_documents_cannot_break_out_of_a_drawing() -> None:
    leaf = Node(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    drawing = draw(Node(HOSTILE, HOSTILE, "", HOSTILE, (Branch("cites", "cites", True, (leaf, leaf)),)))
    root = ET.fromstring(drawing)
    assert not list(root.iter(f"{SVG}script"))
    drawing.encode("utf-8")
    assert "href" not in drawing


def test_a_tree_is_one_line_a_node_and_holds_no_control_characters() -> None:
    leaf = Node("a\nb", HOSTILE, HOSTILE, HOSTILE)
    lines = tree(Node("root", branches=(Branch("cites", "cites", True, (leaf,)),)))
    assert len(lines.splitlines()) == 3
    assert not any(ord(c) < 32 and c != "\n" for c in lines)
    lines.encode("utf-8")


def test_a_node_without_edges_says_so() -> None:
    assert tree(Node("root")) == "root\n└─ no edges"
    ET.fromstring(draw(Node("root")))


def test_boxes_of_a_drawing_do_not_overlap_and_lie_on_the_page() -> None:
    incoming = Branch("is cited by", "cites", False, tuple(Node(f"in::{n}") for n in range(7)))
    outgoing = Branch("cites", "cites", True, tuple(Node(f"out::{n}") for n in range(3)))
    root = ET.fromstring(draw(Node("root", branches=(incoming, outgoing))))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    drawn = [box.attrib for box in root.iter(f"{SVG}rect") if "rx" in box.attrib]
    boxes = [tuple(float(box[k]) for k in ("x", "y", "width", "height")) for box in drawn]
    assert len(boxes) == 11
    for n, (x, y, w, h) in enumerate(boxes):
        assert 0 <= x <= width - w
        assert 0 <= y <= height - h
        for other_x, other_y, other_w, other_h in boxes[n + 1 :]:
            apart = x + w <= other_x or other_x + other_w <= x or y + h <= other_y or other_y + other_h <= y
            assert apart
