"""`.env.example` lists every setting as it is."""

import re
import textwrap
from pathlib import Path

from dotenv import dotenv_values

from agent_server.settings import Settings, load_settings

FILE = Path(__file__).parents[2] / ".env.example"


def test_the_example_lists_every_setting_with_its_description_and_default() -> None:
    expected: list[str] = []
    for name, field in Settings.model_fields.items():
        default = field.default if field.default_factory is None and field.default is not None else ""
        described = textwrap.wrap(field.description or "", 116, initial_indent="# ", subsequent_indent="# ")
        expected += ["", *described, f"#KB_{name.upper()}={default}"]
    assert FILE.read_text().splitlines()[2:] == expected


def test_the_example_taken_as_it_stands_changes_nothing(tmp_path: Path) -> None:
    plain = tmp_path / ".env"
    plain.write_text(re.sub(r"^#(?=KB_)", "", FILE.read_text(), flags=re.MULTILINE))
    assert len(dotenv_values(plain)) == len(Settings.model_fields)
    assert load_settings({}, plain) == load_settings({}, tmp_path / "none")
