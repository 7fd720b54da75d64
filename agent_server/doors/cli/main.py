"""The program `kb`: commands put together, errors turned into messages and exit codes.

Exit codes: 0 done, 1 error (nothing on standard output), 2 usage, 3 done but some files were not indexed,
130 interrupted.
"""

import contextlib
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated

import typer

from agent_server import __version__
from agent_server.doors.cli import (
    collection,
    database,
    evaluate,
    explain,
    health,
    ingest,
    output,
    rebuild,
    recall,
    search,
    serve,
    trace,
    tune,
)
from agent_server.doors.faults import as_known
from agent_server.errors import InvalidArgument

#: Other packages add commands here: the value is a typer app, or a function that takes the app.
PLUGINS = "kb.commands"
INTERRUPTED = 130


def build_app(plugins: Sequence[EntryPoint] | None = None) -> typer.Typer:
    """The app with its own commands and those of `plugins` (default: what is installed)."""
    app = typer.Typer(
        name="kb",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for module in (
        database,
        collection,
        ingest,
        rebuild,
        search,
        explain,
        recall,
        trace,
        evaluate,
        tune,
        health,
        serve,
    ):
        module.register(app)
    for plugin in entry_points(group=PLUGINS) if plugins is None else plugins:
        _join(app, plugin)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kb` with `argv` (default: the process's arguments); the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in options
    output.prepare_streams()
    try:
        code = _run(arguments, as_json=as_json)
    except KeyboardInterrupt:
        print("interrupted: what was finished stays; the same command goes on from there", file=sys.stderr)  # noqa: T201
        code = INTERRUPTED
    except BrokenPipeError:
        code = output.BROKEN_PIPE
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        output.silence_stdout()
    return code


def _run(arguments: Sequence[str], *, as_json: bool) -> int:
    try:
        result = build_app()(arguments, prog_name="kb", standalone_mode=False)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        output.note("")
        return INTERRUPTED
    except SystemExit as done:  # typer's own way out when a pipe is closed
        return done.code if isinstance(done.code, int) else 1
    except Exception as error:
        if hasattr(error, "exit_code") and hasattr(error, "format_message"):  # typer's usage errors
            return _usage(error, as_json=as_json)
        known = as_known(error)
        if known is None:
            raise
        output.show_error(known, as_json=as_json)
        return 1
    return result if isinstance(result, int) else 0


def _usage(error: Exception, *, as_json: bool) -> int:
    """A usage error's text (or JSON), and its exit code."""
    if as_json:
        message = str(getattr(error, "format_message")())  # noqa: B009  typer's class is private
        parameter = getattr(getattr(error, "param", None), "name", None) or "arguments"
        output.show_error(InvalidArgument(parameter, message, hint="See --help."), as_json=True)
    else:
        getattr(error, "show")()  # noqa: B009
    return int(getattr(error, "exit_code"))  # noqa: B009


def _join(app: typer.Typer, plugin: EntryPoint) -> None:
    """Add what an installed package brings; one that cannot be loaded must not take the other commands along."""
    try:
        value = plugin.load()
        if isinstance(value, typer.Typer):
            app.add_typer(value, name=plugin.name)
        else:
            value(app)
    except Exception as error:  # noqa: BLE001  somebody else's code
        output.note(f"warning: commands of {plugin.value} are missing: {type(error).__name__}: {error}")


def _version(wanted: bool) -> None:
    if wanted:
        output.write(f"kb {__version__}")
        raise typer.Exit


def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Knowledge Bank: retrieval with citations on nothing but Postgres.

    Start with `kb init`, then `kb collection create NAME`, `kb ingest NAME FOLDER`, `kb search NAME "a question"`.
    """


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
