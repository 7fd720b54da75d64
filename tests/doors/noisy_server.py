"""An MCP server whose tool prints and whose child process prints: run by test_mcp.py as a program."""

import os
import subprocess
import sys
from typing import Any

from agent_server.doors import mcp_app
from agent_server.errors import InvalidArgument

SCHEMA = {
    "type": "function",
    "function": {
        "name": "noisy",
        "description": "Prints.",
        "parameters": {"type": "object", "properties": {"fail": {"type": "string"}}},
    },
}


def _noisy(name: str, given: Any) -> dict[str, Any]:
    print("hi from print")
    sys.stdout.flush()
    os.write(1, b"hi from the descriptor\n")
    subprocess.run(["echo", "hi from a child"], check=True)
    stdin = sys.stdin.read() if "stdin" in given else ""
    if given.get("fail") == "typed":
        raise InvalidArgument("fail", "is typed")
    if given.get("fail") == "bug":
        raise ZeroDivisionError("secret of the house")
    return {"tool": name, "text": "grüße \u2028 漢字\nline", "stdin": stdin}


if __name__ == "__main__":
    wire = mcp_app.claim_stdout()
    print("hi before the session")
    mcp_app.serve(lambda: [SCHEMA], _noisy, wire)
