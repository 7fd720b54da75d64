"""How a server written in Go reads and writes JSON, and whom it answers."""

import ipaddress
import json
import re
import socket
from typing import Any, cast
from urllib.parse import urlsplit

from tests.ollama_double.state import Refused


def go_json(data: dict[str, Any]) -> str:
    """As Go writes it: no blanks, and what HTML would read as markup escaped."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def decode(raw: bytes) -> dict[str, Any]:
    """A JSON object as Go reads it: names in any case, what follows the first value ignored, bad Unicode replaced."""
    if not raw:
        raise Refused(400, "missing request body")
    text = raw.decode("utf-8", "replace").lstrip()
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except ValueError as error:
        at = getattr(error, "pos", 0)
        found = "unexpected EOF" if at >= len(text.rstrip()) or "Unterminated" in str(error) else ""
        raise Refused(400, found or f"invalid character '{text[at : at + 1]}' looking for beginning of value") from None
    if not isinstance(value, dict):
        raise Refused(400, "json: cannot unmarshal into Go value of type api.Request")
    return cast("dict[str, Any]", _whole({str(k).lower(): v for k, v in value.items()}))


def _whole(value: Any) -> Any:
    """Lone surrogates become U+FFFD."""
    if isinstance(value, str):
        return re.sub(r"[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(k): _whole(v) for k, v in value.items()}
    return value


def origin_allowed(origin: str) -> bool:
    """A browser says where its page comes from; programs say nothing."""
    parts = urlsplit(origin)
    local = ("app", "file", "tauri", "vscode-webview", "vscode-file")
    return not origin or parts.scheme in local or parts.hostname in ("localhost", "127.0.0.1", "0.0.0.0", "::1")


def host_allowed(host: str) -> bool:
    """Whether a server bound to loopback answers a request for this host."""
    name = re.sub(r":\d+$", "", host).strip("[]").lower()
    if name in ("", "localhost", socket.gethostname().lower()):
        return True
    if name.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_private
