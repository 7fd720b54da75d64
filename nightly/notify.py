"""Tells somebody that a night failed or died: a POST of its report, a command with the report on its input, or both."""

import json
import shlex
import subprocess
from collections.abc import Mapping
from typing import Any

import httpx

from agent_server.settings import Settings

WEBHOOK_TIMEOUT_S = 10.0
COMMAND_TIMEOUT_S = 60.0


def notify(
    settings: Settings,
    report: Mapping[str, Any],
    *,
    webhook_timeout_s: float = WEBHOOK_TIMEOUT_S,
    command_timeout_s: float = COMMAND_TIMEOUT_S,
) -> list[str]:
    """Tell whom the settings name; what went wrong with that, a line each. Never raises: the night is over anyway."""
    text = json.dumps(report, ensure_ascii=False, default=str)
    faults: list[str] = []
    if settings.nightly_webhook is not None:
        faults += _post(settings.nightly_webhook.get_secret_value(), text, webhook_timeout_s)
    if settings.nightly_command:
        faults += _run(settings.nightly_command, text, command_timeout_s)
    return faults


def _post(address: str, text: str, timeout_s: float) -> list[str]:
    try:
        headers = {"Content-Type": "application/json"}
        answer = httpx.post(address, content=text.encode(), headers=headers, timeout=timeout_s)
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        return [f"KB_NIGHTLY_WEBHOOK answered {error.response.status_code}"]  # its address may hold a secret
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return [f"KB_NIGHTLY_WEBHOOK was not reached: {type(error).__name__}"]
    return []


def _run(command: str, text: str, timeout_s: float) -> list[str]:
    try:
        done = subprocess.run(
            shlex.split(command), input=text, text=True, encoding="utf-8", capture_output=True, timeout=timeout_s,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [f"KB_NIGHTLY_COMMAND took longer than {timeout_s:g} s"]
    except OSError as error:
        return [f"KB_NIGHTLY_COMMAND cannot be run: {error.strerror or error}"]
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-200:]
        return [f"KB_NIGHTLY_COMMAND ended with {done.returncode}: {said}"]
    return []
