"""Where Ollama answers, from the forms that `OLLAMA_HOST` takes.

The variable is the server's bind address and the client's target at once, so it holds values that nobody can
connect to (`0.0.0.0`), values without a scheme and values without anything.
"""

import ipaddress
import re

import httpx

from agent_server.errors import SettingsError

DEFAULT_PORT = 11434
#: A scheme without a port means the scheme's own port, as it does for the server.
_SCHEME_PORTS = {"http": 80, "https": 443}
_FORMS = "Accepted forms: host, host:port, http://host:port, https://host/path."


def parse_host(value: str) -> str:
    """The base URL without a trailing slash, e.g. `http://127.0.0.1:11434`; the port is always written.

    Blank means Ollama's default. A host that only a server can use becomes loopback, a port that is no port
    becomes the default (both as Ollama's own client does), and `/api` at the end is dropped, since every path
    asked starts with it. Raises SettingsError for another scheme, a login in the URL, or what is no host.
    """
    text = value.strip().strip("\"'").strip()
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest, default_port = "http", text, DEFAULT_PORT
        if rest.rstrip("/").lower() == "ollama.com":
            scheme, default_port = "https", 443
    else:
        scheme = scheme.lower()
        if scheme not in _SCHEME_PORTS:
            raise SettingsError(f"Ollama's address has scheme {scheme!r}; expected http or https.", hint=_FORMS)
        default_port = _SCHEME_PORTS[scheme]
    place, _, path = rest.partition("/")
    if "@" in place:  # not shown: it may hold a password, and the address stands in error messages
        raise SettingsError("Ollama's address holds a login; logins in the address are not supported.", hint=_FORMS)
    host, port = _split_port(place, default_port)
    segments = [part for part in re.split(r"[?#]", path)[0].split("/") if part]
    if segments and segments[-1].lower() == "api":
        segments.pop()
    url = f"{scheme}://{_connectable(host)}:{port}" + "".join(f"/{part}" for part in segments)
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SettingsError(f"Ollama's address {value!r} is not an address: {error}.", hint=_FORMS) from None
    if not parsed.host or re.search(r"[\s%<>\"]", parsed.host):
        raise SettingsError(f"Ollama's address {value!r} holds no usable host.", hint=_FORMS)
    return url


def is_loopback(url: str) -> bool:
    """Whether the host of `url` is this machine, which no proxy can reach in our place."""
    host = httpx.URL(url).host
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split_port(place: str, default_port: int) -> tuple[str, int]:
    bare = place.strip("[]")
    if bare.count(":") > 1 and "]:" not in bare:
        return bare, default_port  # IPv6 without a port, in brackets or not
    host, colon, digits = place.rpartition(":")
    if not colon:
        return place, default_port
    usable = digits.isascii() and digits.isdigit() and int(digits[:6]) in range(1, 65536)
    return host.strip("[]"), int(digits) if usable else default_port


def _connectable(host: str) -> str:
    if not host:
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{address}]" if address.version == 6 else str(address)
