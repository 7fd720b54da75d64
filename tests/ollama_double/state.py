"""What is loaded, who waits, and which faults are on."""

import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.ollama_double.models import Model

#: How soon a wait notices that its client has left.
TICK_S = 0.005
_EMBED_SWITCHES = (
    "cold evict queue nan_text eof_over crash_once reset truncate_body stall dribble short_batch empty_vectors "
    "swap_order wrong_dim zero_vector null_vector error_object html_502 status raw old digest_change"
)
_CHAT_SWITCHES = (
    "mid_stream_error no_done tools_in_middle args_as_text unknown_tool string_numbers empty_after_thinking "
    "not_json_despite_format cuts_prompt"
)
CHAT_SWITCHES = frozenset(_CHAT_SWITCHES.split())
SWITCHES = CHAT_SWITCHES | frozenset(_EMBED_SWITCHES.split())


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class ClientGone(Exception):
    """The client closed its connection while it waited, or the double is closing."""


@dataclass(slots=True)
class Fault:
    value: Any
    left: int | None  #: uses that remain; None: until cleared
    path: str  #: `*` for every path


@dataclass(slots=True)
class Recorded:
    """One request as it came; `body` is None when it was no JSON object."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    at: float
    body: dict[str, Any] | None = None
    status: int | None = None  #: None while it waits, or when the client left first
    gone: bool = False  #: the client left before the answer
    gone_at: float | None = None  #: when that was noticed, on the clock of `at`


@dataclass(slots=True)
class Slot:
    """A loaded model."""

    num_ctx: int
    expires: float  #: inf: for ever
    busy: threading.Lock = field(default_factory=threading.Lock)


def client_left(connection: socket.socket) -> bool:
    try:
        readable, _, _ = select.select([connection], [], [], 0)
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


class State:
    """Shared by the handler threads; `changed` is notified whenever something a test may wait for has happened."""

    def __init__(self, models: dict[str, Model], clock: Callable[[], float] = time.monotonic) -> None:
        self.models = models
        self.clock = clock
        self.faults: dict[str, Fault] = {}
        self.requests: list[Recorded] = []
        self.changed = threading.Condition(threading.RLock())
        self.stopping = threading.Event()
        self.loading: str | None = None
        self.loads: list[str] = []  #: each load that began
        self.aborted: list[str] = []  #: each load given up because its client left
        self._loaded: dict[str, Slot] = {}
        self._release = threading.Event()
        self._load_turn = threading.Lock()
        self._pending = 0

    # Faults

    def set(self, name: str, value: Any, times: int | None, path: str) -> None:
        if name not in SWITCHES:
            raise ValueError(f"the double has no switch {name!r}; it has {', '.join(sorted(SWITCHES))}")
        with self.changed:
            if name == "evict":
                self._loaded.clear()
            elif name == "digest_change":
                for model in self.models.values():
                    model.generation += 1
                self._loaded.clear()
            else:
                if name == "cold":
                    self._release.clear()
                path = "/api/chat" if name in CHAT_SWITCHES else path
                self.faults[name] = Fault(value, 1 if name == "crash_once" else times, path)

    def peek(self, name: str) -> Any:
        """The value of a switch that stays on, or None."""
        fault = self.faults.get(name)
        return None if fault is None else fault.value

    def take(self, name: str, path: str) -> Any:
        """The value of a switch if it is on for `path`, used up by one; None otherwise."""
        with self.changed:
            fault = self.faults.get(name)
            if fault is None or fault.path not in ("*", path):
                return None
            if fault.left is not None:
                fault.left -= 1
                if fault.left <= 0:
                    del self.faults[name]
            return fault.value

    def clear(self) -> None:
        with self.changed:
            self.faults.clear()
            self._release.set()

    # Models

    def loaded(self) -> dict[str, Slot]:
        with self.changed:
            now = self.clock()
            self._loaded = {name: slot for name, slot in self._loaded.items() if slot.expires > now}
            return dict(self._loaded)

    def unload(self, name: str) -> None:
        with self.changed:
            self._loaded.pop(name, None)
            self.changed.notify_all()

    def keep(self, name: str, seconds: float) -> None:
        """Set the timer of a model that has become idle."""
        with self.changed:
            if seconds == 0:
                self._loaded.pop(name, None)
            elif name in self._loaded:
                self._loaded[name].expires = float("inf") if seconds < 0 else self.clock() + seconds

    def finish_loads(self) -> None:
        """End `cold` waits, those that run and those to come."""
        self.clear_one("cold")
        self._release.set()

    def clear_one(self, name: str) -> None:
        with self.changed:
            self.faults.pop(name, None)

    def runner(self, name: str, num_ctx: int, connection: socket.socket) -> tuple[Slot, bool]:
        """The loaded model and whether this request waited for its load. Raises Refused 503, ClientGone."""
        with self.changed:
            slot = self.loaded().get(name)
            if slot is not None and slot.num_ctx == num_ctx:
                return slot, False
            room = self.peek("queue")
            if self._pending >= (512 if room is None else room):
                raise Refused(503, "server busy, please try again.  maximum pending requests exceeded")
            self._pending += 1
            self.changed.notify_all()
        try:
            self._acquire(self._load_turn, connection)
            try:
                slot = self.loaded().get(name)
                if slot is not None and slot.num_ctx == num_ctx:  # loaded by the one before
                    return slot, True
                return self._load(name, num_ctx, connection), True
            finally:
                self._load_turn.release()
        finally:
            with self.changed:
                self._pending -= 1
                self.changed.notify_all()

    def _load(self, name: str, num_ctx: int, connection: socket.socket) -> Slot:
        with self.changed:
            self.loading = name
            self.loads.append(name)
            self.changed.notify_all()
        try:
            self.wait(self.peek("cold") or 0.0, connection, self._release)
        except ClientGone:
            self.aborted.append(name)
            raise
        finally:
            with self.changed:
                self.loading = None
                self.changed.notify_all()
        slot = Slot(num_ctx, self.clock() + 300)
        with self.changed:
            self._loaded[name] = slot
            self.changed.notify_all()
        return slot

    def use(self, slot: Slot, connection: socket.socket) -> threading.Lock:
        """The model's only place, acquired; waits without limit."""
        self._acquire(slot.busy, connection)
        return slot.busy

    def wait(self, seconds: float, connection: socket.socket, over: threading.Event | None = None) -> None:
        """Wait, unless `over` is set. Raises ClientGone when the client leaves or the double closes."""
        ends = time.monotonic() + seconds
        over = over or self.stopping
        while time.monotonic() < ends:
            if over.wait(TICK_S) and over is not self.stopping:
                return
            if self.stopping.is_set() or client_left(connection):
                raise ClientGone

    def _acquire(self, lock: threading.Lock, connection: socket.socket) -> None:
        while not lock.acquire(timeout=TICK_S):
            if self.stopping.is_set() or client_left(connection):
                raise ClientGone
