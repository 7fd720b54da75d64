"""`kb graph`: the edges around a passage or a term, as a tree for the terminal or as a drawing."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_server.catalog import Collection
from agent_server.db import Conn
from agent_server.doors.cli import context, output
from agent_server.doors.cli.collection import Name
from agent_server.doors.cli.output import Json
from agent_server.errors import CallerError, InvalidArgument, UnknownPassage
from agent_server.terms import fold_term
from nightly.definitions.model import PARTIAL
from nightly.graph_view import Branch, Node, draw, tree
from nightly.statements import fetch_all

LIMIT = 20
HUBS = 10


class UnknownTerm(CallerError):
    """Nothing in the collection defines the term."""

    code = "unknown_term"
    http_status = 404


def register(app: typer.Typer) -> None:
    app.command()(graph)


def graph(
    name: Name,
    chunk: Annotated[str, typer.Option(metavar="ID", help="The passage to look at, as `rules/lending.md::12`.")] = "",
    term: Annotated[str, typer.Option(metavar="TERM", help="The term to look at.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most edges of each kind.")] = LIMIT,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it into this file instead.")] = None,
    as_json: Json = False,
) -> None:
    """What a passage cites, defines and uses, and what leads to it; without one: totals and hubs."""
    if chunk and term:
        raise typer.BadParameter("name a passage or a term, not both", param_hint="--term")
    if svg is not None and not (chunk or term):
        raise typer.BadParameter("needs --chunk or --term: a whole graph is not drawn", param_hint="--svg")
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        with database.owner(found.schema_name) as connection:
            if not (chunk or term):
                _show_totals(connection, found, as_json=as_json)
                return
            root = (
                around_passage(connection, found, chunk, limit)
                if chunk
                else around_term(connection, found, term, limit)
            )
    if svg is not None:
        svg.write_text(draw(root), encoding="utf-8")
        output.note(f"drawn into {svg}")
    if as_json:
        output.emit(root.to_json())
    elif svg is None:
        output.write(tree(root))


def around_passage(connection: Conn, collection: Collection, chunk_id: str, limit: int) -> Node:
    """A passage with its edges both ways, what it defines, and its references that lead nowhere."""
    rows = fetch_all(connection, "graph_passage", {"chunk_id": chunk_id})
    if not rows:
        raise UnknownPassage(
            f"{collection.name} has no passage {chunk_id!r}", hint="`kb search` shows the names of passages."
        )
    here = {"chunk": rows[0]["id"], "limit": limit}
    edges = fetch_all(connection, "graph_edges", here)

    def branch(label: str, relation: str, *, outgoing: bool) -> Branch:
        wanted = [e for e in edges if e["relation"] == relation and e["outgoing"] is outgoing]
        return Branch(label, relation, outgoing, tuple(_passage(e, e["anchor"]) for e in wanted))

    defined = fetch_all(connection, "graph_defined", here)
    dangling = fetch_all(connection, "graph_dangling", here)
    return _passage(
        rows[0],
        branches=(
            branch("cites", "cites", outgoing=True),
            branch("uses terms that are defined in", "defines", outgoing=True),
            Branch(
                "defines",
                "term",
                True,
                tuple(Node(d["term"], f"{d['form']}, {d['scope']}", text=d["words"]) for d in defined),
            ),
            Branch(
                "refers to what was not found",
                "dangling",
                True,
                tuple(Node(d["target_label"], d["reason"], d["anchor"]) for d in dangling),
            ),
            branch("is cited by", "cites", outgoing=False),
            branch("defines terms that are used in", "defines", outgoing=False),
        ),
    )


def around_term(connection: Conn, collection: Collection, term: str, limit: int) -> Node:
    """A term with the passages that define it, and under each those that use it in that sense."""
    key = fold_term(term)
    if not key:
        raise InvalidArgument("term", f"{term!r} holds no word")
    rows = fetch_all(connection, "graph_term", {"folded": key, "partial": sorted(PARTIAL), "limit": limit})
    if not rows:
        raise UnknownTerm(
            f"nothing in {collection.name} defines {term!r}",
            hint="`kb search` finds passages that use it; terms are read from forms such as 'X means'.",
        )
    senses = []
    for row in rows:
        uses = fetch_all(connection, "graph_uses", {"chunk": row["id"], "folded": key, "limit": limit})
        used = Branch("used in this sense in", "defines", False, tuple(_passage(use, use["anchor"]) for use in uses))
        senses.append(_passage({**row, "text": row["words"]}, f"{row['form']}, {row['scope']}", branches=(used,)))
    return Node(rows[0]["term"], key, branches=(Branch("defined in", "term", True, tuple(senses)),))


def _passage(row: dict[str, Any], anchor: str = "", branches: tuple[Branch, ...] = ()) -> Node:
    place = row["heading_path"][-1] if row["heading_path"] else row["context"]
    return Node(row["chunk_id"], place, anchor, row["text"], branches)


def _show_totals(connection: Conn, collection: Collection, *, as_json: bool) -> None:
    totals = fetch_all(connection, "graph_totals")[0]
    hubs = fetch_all(connection, "graph_hubs", {"limit": HUBS})
    if as_json:
        output.emit({"collection": collection.name, **totals, "hubs": hubs})
        return
    output.write(
        f"{collection.name}: {totals['passages']} passages, {totals['cites']} citations ({totals['dangling']} lead "
        f"nowhere), {totals['terms']} terms, {totals['defines']} uses of them"
    )
    if hubs:
        cells = [[h["edges"], h["relation"], h["chunk_id"], h["context"]] for h in hubs]
        output.write("\n" + output.table(cells, ("edges", "relation", "to", "where")))
