"""One place that says which exceptions a door shows as a message instead of a traceback."""

import psycopg
from psycopg_pool import PoolTimeout

from agent_server.db import translated
from agent_server.errors import DatabaseUnavailable, InvalidArgument, KnowledgeBankError, ServiceError


class StatementTimeout(ServiceError):
    code = "statement_timeout"


class DatabaseRefused(ServiceError):
    code = "database_refused"
    http_status = 500


def as_known(error: Exception) -> KnowledgeBankError | None:
    """The error to show for `error`; None when it is a fault of this program, which needs its traceback."""
    if isinstance(error, KnowledgeBankError):
        return error
    if isinstance(error, UnicodeEncodeError):
        return InvalidArgument("arguments", "hold bytes that are not UTF-8 text", hint="Pass text in UTF-8.")
    if isinstance(error, psycopg.errors.QueryCanceled):
        return StatementTimeout(
            f"Postgres stopped a statement: {_first_line(error)}",
            hint="Try again, ask with fewer words, or raise KB_STATEMENT_TIMEOUT_S.",
        )
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return DatabaseRefused(
            f"Postgres refused: {_first_line(error)}",
            hint="`kb doctor` shows what the roles may do, `kb db roles` grants it again.",
        )
    if isinstance(error, psycopg.Error | PoolTimeout):
        try:
            with translated():
                raise error
        except DatabaseUnavailable as unavailable:
            return unavailable
        except psycopg.Error:
            return DatabaseRefused(f"Postgres refused: {_first_line(error)}", hint="See `kb doctor`.")
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
