"""A reranker over real HTTP: scores by shared words, in any of the shapes of an answer, with any of its faults."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Answer = Callable[[list[dict[str, Any]]], Any]


class RerankDouble:
    """`answer` turns results (best first) into a body, bytes as they are; `status` is sent with it. `seen` are the
    requests. `hold` keeps answers back until it is set."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.seen: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.status = 200
        self.answer: Answer = lambda results: {"results": results}
        #: Documents with this in them come first.
        self.favours = ""
        self.hold: threading.Event | None = None
        self.drops = False  #: the body comes byte by byte, until `hold` is set

    def results(self, documents: list[str]) -> list[dict[str, Any]]:
        scores = [float(self.favours in text) if self.favours else 1 / (n + 1) for n, text in enumerate(documents)]
        found = [{"index": n, "relevance_score": score} for n, score in enumerate(scores)]
        return sorted(found, key=lambda r: -r["relevance_score"])


@contextmanager
def rerank_double() -> Iterator[RerankDouble]:
    """A reranker that answers until the end of the block."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            double.paths.append(self.path)
            double.seen.append(asked)
            body = double.answer(double.results(asked["documents"]))
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            if double.hold is not None and not double.drops:
                double.hold.wait(30)
            self.send_response(double.status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            try:
                if double.drops and double.hold is not None:
                    while not double.hold.wait(0.02):
                        self.wfile.write(b" ")
                        self.wfile.flush()
                self.wfile.write(data)
            except OSError:
                pass  # the client had enough

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    double = RerankDouble(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        if double.hold is not None:
            double.hold.set()
        server.shutdown()
        server.server_close()
