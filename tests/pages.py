"""Tables of settings on the pages of the documentation, for tests."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def section(page, title):
    """Return the text under a heading, up to the next one of its level."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows_of(text):
    """Return the (setting, default) of each row."""
    return re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", text, re.MULTILINE)


def assert_settings_are_listed(text, fields):
    """The rows of a method and those of every run are its settings, each once, with its default."""
    rows = [*rows_of(text), *rows_of(section("training.md", "Settings of every run"))]
    expected = {name: "none" if field.default is None else str(field.default) for name, field in fields.items()}
    assert sorted(rows) == sorted(expected.items())
