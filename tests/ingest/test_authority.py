"""Authority comes from the operator's path rules alone."""

from pathlib import Path

import pytest

from agent_server.errors import SettingsError
from agent_server.ingest.authority import AuthorityRules, load_rules


@pytest.mark.parametrize(
    ("pattern", "source", "fits"),
    [
        ("rules/**", "rules/a.md", True),
        ("rules/**", "rules/x/y/a.md", True),
        ("rules/**", "old/rules/a.md", False),
        ("**/rules/*.md", "rules/a.md", True),
        ("**/rules/*.md", "x/rules/a.md", True),
        ("*.md", "a.md", True),
        ("*.md", "x/a.md", False),
        ("a?.md", "ab.md", True),
        ("a.md", "axmd", False),
        ("**", "x/y", True),
    ],
)
def test_a_pattern_fits_like_a_path(pattern: str, source: str, *, fits: bool) -> None:
    assert (AuthorityRules((("*", pattern, 1.0),)).authority("ANY", source) == 1.0) is fits


def test_the_first_rule_decides_and_no_rule_means_none(tmp_path: Path) -> None:
    (tmp_path / "source_authority.json").write_text(
        '{"tiers": {"a": 1.0, "b": 0.5}, "rules": [{"collection": "X", "source": "r/*", "tier": "a"},'
        ' {"source": "r/*", "tier": "b"}]}'
    )
    rules = load_rules(tmp_path / "documents" / "X", tmp_path / "nowhere")
    assert rules is not None
    assert [rules.authority(c, s) for c, s in (("x", "r/1"), ("Y", "r/1"), ("X", "q/1"))] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "source_authority.json"),
        ('{"tiers": {"a": 2}}', "expected 0 to 1"),
        ('{"rules": [{"source": "x", "tier": "gold"}]}', "names tier 'gold'"),
        ('{"rule": []}', "rule"),
    ],
)
def test_rules_that_cannot_be_used_are_refused_with_the_file(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "source_authority.json").write_text(text)
    with pytest.raises(SettingsError, match=word):
        load_rules(tmp_path, tmp_path)


def test_without_any_rules_nothing_is_known(tmp_path: Path) -> None:
    assert load_rules(tmp_path, tmp_path / "nowhere") is None
