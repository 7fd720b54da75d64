"""The error tree. A message says what was found, what was expected and what to do.

KnowledgeBankError
├── CallerError                the caller can mend it (HTTP 4xx)
│   ├── InvalidArgument        a field has a value that cannot be used
│   ├── UnknownCollection      no such collection among those the caller may see
│   ├── CollectionExists       the name is taken (names are unique ignoring case)
│   ├── UnknownPassage         no such chunk_id in this collection
│   ├── ContractMismatch       embedder and collection do not belong together
│   ├── BadQuestions           questions or judgements that cannot be measured with
│   └── RunRefused             an evaluation that would report something other than what was asked for
├── SettingsError              the settings cannot be used; nothing was started
├── ServiceError               ours to mend, may pass (HTTP 503)
│   ├── DatabaseUnavailable    no connection, or it broke
│   ├── MigrationNeeded        the database is older or newer than this program
│   ├── CollectionBusy         another run is at work on the collection's vectors or indexes, or replaced them
│   ├── ReaderLoginFailed      a collection's reader role could not log in
│   └── EmbedderUnavailable    unreachable, loading, busy: worth another try later
└── EmbeddingRefused           the embedder answers and says no: another try changes nothing
    └── PoisonText             one text cannot be embedded; the others can
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class KnowledgeBankError(Exception):
    """Base of everything this package raises on purpose.

    `code` names the kind for programs, `hint` says what to do, `details` carries data.
    """

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, *, hint: str = "", details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})

    def to_json(self) -> dict[str, Any]:
        """The one error shape of command line, HTTP and tools."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint,
                "details": self.details,
            }
        }


class CallerError(KnowledgeBankError):
    code = "bad_request"
    http_status = 400


class InvalidArgument(CallerError):
    code = "invalid_argument"

    def __init__(self, field: str, message: str, *, hint: str = "", details: Mapping[str, Any] | None = None):
        super().__init__(f"{field}: {message}", hint=hint, details={"field": field, **(details or {})})
        self.field = field


class UnknownCollection(CallerError):
    code = "unknown_collection"
    http_status = 404


class CollectionExists(CallerError):
    code = "collection_exists"
    http_status = 409


class UnknownPassage(CallerError):
    code = "unknown_passage"
    http_status = 404


class ContractMismatch(CallerError):
    code = "contract_mismatch"
    http_status = 409


class BadQuestions(CallerError):
    code = "bad_questions"


class RunRefused(CallerError):
    code = "run_refused"
    http_status = 409


class SettingsError(KnowledgeBankError):
    code = "settings"


class ServiceError(KnowledgeBankError):
    code = "unavailable"
    http_status = 503


class DatabaseUnavailable(ServiceError):
    code = "database_unavailable"


class MigrationNeeded(ServiceError):
    code = "migration_needed"


class CollectionBusy(ServiceError):
    code = "collection_busy"


class ReaderLoginFailed(ServiceError):
    code = "reader_login_failed"


class SandboxNotStarted(ServiceError):
    code = "sandbox_not_started"


class EmbedderUnavailable(ServiceError):
    code = "embedder_unavailable"


class EmbeddingRefused(KnowledgeBankError):
    code = "embedding_refused"
    http_status = 502


class PoisonText(EmbeddingRefused):
    code = "poison_text"
