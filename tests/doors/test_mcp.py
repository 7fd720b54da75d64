"""`kb mcp` with the official client, over the standard streams of a real process (faults B79)."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from agent_server.settings import Settings
from tests.doors.conftest import Kb, environment

ROOT = Path(__file__).parents[2]
NOISY = [sys.executable, "-m", "tests.doors.noisy_server"]
_TIMEOUT_S = 60


def _session(command: list[str], env: dict[str, str], work: Callable[[Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        server = StdioServerParameters(command=command[0], args=command[1:], env=env, cwd=ROOT)
        with anyio.fail_after(_TIMEOUT_S):
            async with Client(server) as client:
                return await work(client)

    return anyio.run(run)


def _read(result: Any) -> Any:
    (content,) = result.content
    return json.loads(content.text)


def test_a_noisy_tool_does_not_disturb_the_session() -> None:
    async def work(client: Client) -> list[Any]:
        return [_read(await client.call_tool("noisy", {"stdin": "1"})) for _ in range(3)]

    answers = _session(NOISY, {}, work)
    assert answers == [{"tool": "noisy", "text": "grüße \u2028 漢字\nline", "stdin": ""}] * 3


def test_every_line_on_standard_output_is_a_message_of_the_protocol() -> None:
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "noisy", "arguments": {}}},
    ]
    with subprocess.Popen(
        NOISY,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        lines = []
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            if "id" in message:
                lines.append(process.stdout.readline())
        process.stdin.close()
        lines += process.stdout.readlines()
        noise = process.stderr.read()
    assert [json.loads(text)["id"] for text in lines] == [1, 2]
    for said in ("hi before the session", "hi from print", "hi from the descriptor", "hi from a child"):
        assert said in noise
    assert process.returncode == 0


def test_an_error_is_a_tool_error_with_the_error_json_and_the_session_goes_on() -> None:
    async def work(client: Client) -> tuple[Any, Any, Any]:
        typed = await client.call_tool("noisy", {"fail": "typed"})
        bug = await client.call_tool("noisy", {"fail": "bug"})
        return typed, bug, await client.call_tool("noisy", {})

    typed, bug, good = _session(NOISY, {}, work)
    assert typed.is_error
    assert _read(typed)["error"]["code"] == "invalid_argument"
    assert bug.is_error
    assert _read(bug)["error"]["code"] == "internal"
    assert "secret of the house" not in json.dumps(_read(bug))
    assert not good.is_error


def test_kb_mcp_lists_the_tools_and_answers_calls(bank: Kb, settings: Settings) -> None:
    async def work(client: Client) -> tuple[Any, ...]:
        tools = await client.list_tools()
        found = await client.call_tool(
            "search_knowledge_base", {"collection": "finance", "query": "NW-4021", "top_k": "2"}
        )
        chunk_id = _read(found)["passages"][0]["chunk_id"]
        more = await client.call_tool("get_passage", {"collection": "FINANCE", "chunk_id": chunk_id, "before": 1})
        unknown = await client.call_tool("search_knowledge_base", {"collection": "nope", "query": "x"})
        absent = await client.call_tool("drop_table", {})
        return tools, found, more, unknown, absent

    program = (
        "import sys; from contextlib import contextmanager; from agent_server.doors.cli import context;"
        "from tests.hash_embedder import HashEmbedder;"
        "context.opened_embedder = contextmanager(lambda _: iter([HashEmbedder()]));"
        "from agent_server.doors.cli.main import main; sys.exit(main(['mcp']))"
    )
    env = {
        **environment(settings),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    tools, found, more, unknown, absent = _session([sys.executable, "-c", program], env, work)
    assert [t.name for t in tools.tools] == ["search_knowledge_base", "get_passage", "recall_claims"]
    assert tools.tools[0].input_schema["properties"]["collection"]["enum"] == ["FINANCE"]
    assert _read(found)["passages"][0]["source"] == "rules.md"
    assert _read(found)["degraded"] == []
    assert _read(found)["passages"][0]["chunk_id"] in [p["chunk_id"] for p in _read(more)["passages"]]
    assert unknown.is_error
    assert _read(unknown)["error"]["code"] == "unknown_collection"
    assert absent.is_error
    assert _read(absent)["error"]["code"] == "unknown_tool"
