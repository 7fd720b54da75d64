"""The filters of a search as flags: commands that search take them alike."""

from typing import Annotated

import typer

from agent_server.retrieval.filters import Filters, parse_day, parse_field

Source = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB",
        help="Only sources like this, as `rules/*.md` or `guides/**`; again for others too.",
    ),
]
Heading = Annotated[
    str,
    typer.Option(metavar="TEXT", help="Only below headings with this text; case and accents do not matter."),
]
MinAuthority = Annotated[float | None, typer.Option(min=0, max=1, help="Only sources of at least this authority.")]
MediaType = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TYPE",
        help="Only files of this type, as application/pdf or `text/*`; again for others too.",
    ),
]
Since = Annotated[
    str,
    typer.Option(metavar="YYYY-MM-DD", help="Only documents dated on this day or later."),
]
Until = Annotated[
    str,
    typer.Option(metavar="YYYY-MM-DD", help="Only documents dated on this day or earlier."),
]
Field = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Only documents whose front matter says so; again for more fields."),
]
Phrase = Annotated[
    list[str] | None,
    typer.Option(metavar="WORDS", help="Only passages with these words side by side; again for more."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="WORDS", help="No passages with this word, or these side by side; again for more."),
]


def filters(
    source: list[str] | None = None,
    heading: str = "",
    min_authority: float | None = None,
    media_type: list[str] | None = None,
    since: str = "",
    until: str = "",
    field: list[str] | None = None,
    phrase: list[str] | None = None,
    exclude: list[str] | None = None,
) -> Filters:
    """What the flags ask for; raises InvalidArgument that names the flag."""
    return Filters(
        sources=tuple(source or ()),
        heading=heading,
        min_authority=min_authority,
        media_types=tuple(media_type or ()),
        since=parse_day("since", since) if since else None,
        until=parse_day("until", until) if until else None,
        fields=tuple(map(parse_field, field or ())),
        phrases=tuple(phrase or ()),
        exclude=tuple(exclude or ()),
    )
