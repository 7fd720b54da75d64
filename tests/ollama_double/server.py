"""The HTTP side of the double: real sockets, Go's way with JSON, and faults below the level of an answer."""

import contextlib
import http.server
import socket
import struct
import sys
import threading
import time
from typing import Any

from tests.ollama_double import chat, embed
from tests.ollama_double.go import decode, go_json, host_allowed, origin_allowed
from tests.ollama_double.models import full_name
from tests.ollama_double.state import ClientGone, Recorded, Refused, State

GET_PATHS = frozenset({"/", "/api/version", "/api/tags", "/api/ps"})
POST_PATHS = frozenset({"/api/show", "/api/embed", "/api/embeddings", "/api/chat", "/v1/embeddings"})
VERSIONS = {"0.2": "0.2.8", "0.3": "0.3.14", "0.5": "0.5.7", "0.11": "0.11.10"}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, state: State, embed_with: embed.EmbedWith | None, prefix: str) -> None:
        self.state = state
        self.embed_with = embed_with
        self.prefix = prefix
        self.faulted: list[BaseException] = []
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError):
            self.faulted.append(error)  # the double's own fault; raised when it closes

    def drop_connections(self) -> None:
        with self._guard:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        ends = time.monotonic() + 2
        while self._open and time.monotonic() < ends:
            time.sleep(0.001)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes; the second would wait for the first's receipt
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_HEAD(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def _handle(self) -> None:
        state = self.server.state
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        record = Recorded(self.command, path, {k.lower(): v for k, v in self.headers.items()}, raw, time.monotonic())
        if path == "/__double/faults":
            self._control(raw)
            return
        with state.changed:
            state.requests.append(record)
            state.changed.notify_all()
        try:
            inner = path.removeprefix(self.server.prefix)
            self._answer(record, inner if path.startswith(f"{self.server.prefix}/") else "/nowhere")
        except (ClientGone, ConnectionError):
            record.gone, record.gone_at = True, time.monotonic()
            self.close_connection = True
        finally:
            with state.changed:
                state.changed.notify_all()

    def _answer(self, record: Recorded, path: str) -> None:
        if not host_allowed(self.headers.get("Host", "")):
            self._send(record, 403, b"", "text/plain")
            return
        if not origin_allowed(self.headers.get("Origin", "")):
            self._send(record, 403, b"", "text/plain")
            return
        method = "GET" if self.command == "HEAD" else self.command
        known = path in POST_PATHS | GET_PATHS and not (path == "/api/embed" and self._old() == "0.2")
        if not known:
            self._send(record, 404, b"404 page not found", "text/plain")
            return
        if method != ("POST" if path in POST_PATHS else "GET"):
            self._send(record, 405, b"405 method not allowed", "text/plain")
            return
        if self._transport_fault(record, path):
            return
        try:
            if method == "GET":
                self._read_only(record, path)
            else:
                record.body = decode(record.raw)
                self._post(record, path, record.body)
        except Refused as refused:
            self._send_json(record, refused.status, self._error(path, refused))

    def _read_only(self, record: Recorded, path: str) -> None:
        state, old = self.server.state, self._old()
        if path == "/":
            self._send(record, 200, b"Ollama is running", "text/plain; charset=utf-8")
        elif path == "/api/version":
            self._send_json(record, 200, {"version": VERSIONS.get(old, "0.32.1")})
        elif path == "/api/tags":
            models = [model.tag(capabilities=not old) for model in state.models.values()]
            self._send_json(record, 200, {"models": models})
        else:
            self._send_json(record, 200, {"models": [self._running(name) for name in state.loaded()]})

    def _running(self, name: str) -> dict[str, Any]:
        state = self.server.state
        model, slot = state.models[name], state.loaded()[name]
        left = min(slot.expires - state.clock(), 9e9)
        at = time.strftime("%Y-%m-%dT%H:%M:%S.123456789Z", time.gmtime(time.time() + left))
        return {
            "name": name,
            "model": name,
            "size": model.size,
            "digest": model.digest,
            "details": model.details(),
            "expires_at": at,
            "size_vram": model.size,
            "context_length": slot.num_ctx,
        }

    def _post(self, record: Recorded, path: str, body: dict[str, Any]) -> None:
        state, with_ = self.server.state, self.server.embed_with
        if path == "/api/show":
            self._show(record, body)
            return
        if path == "/api/chat":
            chat.chat(state, body, self.connection, lambda answer: self._send_chat(record, answer))
            return
        make = {"/api/embed": embed.embed, "/api/embeddings": embed.legacy, "/v1/embeddings": embed.openai}[path]
        self._send_json(record, 200, make(state, body, self.connection, with_))

    def _show(self, record: Recorded, body: dict[str, Any]) -> None:
        name, old = body.get("model") or body.get("name") or "", self._old()
        if not name:
            raise Refused(400, "model is required")
        model = embed.find(self.server.state, name, f"model '{full_name(str(name))}' not found")
        self._send_json(
            record,
            200,
            model.show(capabilities=old not in ("0.2", "0.3", "0.5"), info=old not in ("0.2", "0.3")),
        )

    def _error(self, path: str, refused: Refused) -> dict[str, Any]:
        if path.startswith("/v1/"):
            kinds = {400: "invalid_request_error", 404: "not_found_error"}
            kind = kinds.get(refused.status, "api_error")
            return {"error": {"message": refused.text, "type": kind, "param": None, "code": None}}
        return {"error": refused.text or {}}

    def _transport_fault(self, record: Recorded, path: str) -> bool:
        """Act out a fault that replaces the answer; True when one was on."""
        state = self.server.state
        if (seconds := state.take("stall", path)) is not None:
            state.wait(seconds, self.connection)
        if (seconds := state.take("dribble", path)) is not None:
            # Each byte comes before a read time-out would fire; the answer as a whole never ends.
            for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"z" * 10_000:
                self.connection.sendall(bytes([byte]))
                state.wait(seconds, self.connection)
        if state.take("reset", path):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise ConnectionResetError
        if state.take("html_502", path):
            page = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
            self._send(record, 502, page, "text/html")
            return True
        if state.take("error_object", path):
            self._send_json(record, 500, {"error": {}})
            return True
        if (text := state.take("raw", path)) is not None:  # any body under 200: what no Ollama would send
            self._send(record, 200, str(text).encode(), "application/json; charset=utf-8")
            return True
        if (status := state.take("status", path)) is not None:
            self._send_json(record, int(status), {"error": f"made to answer {status}"})
            return True
        return False

    def _control(self, raw: bytes) -> None:
        """POST {"switch": value, ..., "times": n, "path": "/api/embed"} sets switches; DELETE clears all."""
        record = Recorded(self.command, self.path, {}, raw, time.monotonic())
        if self.command == "DELETE":
            self.server.state.clear()
        else:
            try:
                wanted = decode(raw)
                times, path = wanted.pop("times", None), wanted.pop("path", "/api/embed")
                for name, value in wanted.items():
                    self.server.state.set(name, value, times, path)
            except (Refused, ValueError) as error:
                self._send_json(record, 400, {"error": str(error)})
                return
        self._send_json(record, 200, {"faults": sorted(self.server.state.faults)})

    def _send_json(self, record: Recorded, status: int, data: dict[str, Any]) -> None:
        self._send(record, status, go_json(data).encode("utf-8", "replace"), "application/json; charset=utf-8")

    def _send(self, record: Recorded, status: int, body: bytes, kind: str) -> None:
        record.status = status
        cut = self.server.state.take("truncate_body", record.path.removeprefix(self.server.prefix)) if body else None
        self.send_response(status)
        self.send_header("Content-Type", kind)
        # "json": a whole HTTP message whose JSON is cut; else the connection ends before the message does.
        self.send_header("Content-Length", str(len(body) // 2 if cut == "json" else len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut and cut != "json":
            self.close_connection = True

    def _send_chat(self, record: Recorded, answer: chat.Answer) -> None:
        if not answer.streamed:
            self._send_json(record, 200, answer.lines[0])
            return
        record.status = 200
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        raw = "".join(go_json(line) + "\n" for line in answer.lines).encode("utf-8", "replace")
        for n in range(0, len(raw), 37):  # chunks end where lines don't
            piece = raw[n : n + 37]
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _old(self) -> str:
        return str(self.server.state.peek("old") or "")
