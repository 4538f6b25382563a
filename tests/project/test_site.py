"""Files that the site and GitHub read: llms.txt names every page, and settings are valid YAML."""

import json
import re
import runpy
from pathlib import Path

import pytest

yaml = pytest.importorskip("ruamel.yaml", reason="comes with check-jsonschema")

ROOT = Path(__file__).parents[2]
SETTINGS = sorted(
    path
    for suffix in ("yml", "yaml", "cff")
    for path in [*ROOT.glob(f"*.{suffix}"), *(ROOT / ".github").rglob(f"*.{suffix}")]
)


def parsed(path):
    return yaml.YAML().load(path)  # takes tags that only mkdocs knows, and no key twice


def pages(entries):
    """Yield the title, or None, and the path of every page of a navigation."""
    for entry in entries:
        for title, below in entry.items() if isinstance(entry, dict) else [(None, entry)]:
            yield from pages(below) if isinstance(below, list) else [(title, below)]


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_of_settings_are_yaml(path):
    assert isinstance(parsed(path), dict)


def test_settings_are_where_they_are_looked_for():
    paths = {path.relative_to(ROOT).as_posix() for path in SETTINGS}
    assert {"mkdocs.yml", "CITATION.cff", ".github/dependabot.yml", ".github/workflows/tests.yml"} <= paths


def test_llms_txt_has_every_page_with_its_title():
    site = parsed(ROOT / "mkdocs.yml")
    text = runpy.run_path(str(ROOT / "docs" / "site_hooks.py"))["llms"](site["site_description"], site["nav"])
    assert text.startswith(f"# samesense\n\n> {site['site_description']}.\n\n## Start\n\n- [")
    lines = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\)(?:: (.+))?$", text, re.MULTILINE)
    assert len(lines) == text.count("\n- ")
    titles = {address: title for title, address, _ in lines}
    nav_pages = list(pages(site["nav"]))
    assert len(nav_pages) == len(titles) == len(lines) > 40
    for title, page in nav_pages:
        address = re.sub(r"(README|index)?\.md$", "", page) or "./"
        assert titles[address] == (title or titles[address]) and not titles[address].startswith("#"), page
    uses = {address: use for _, address, use in lines}
    assert "train on labelled pairs" in uses["methods/cosent"]
    assert sum(map(bool, uses.values())) > 30
    assert titles["notebooks/first-model"] and titles["training"] == "Training"


@pytest.fixture(scope="module")
def hooks():
    return runpy.run_path(str(ROOT / "docs" / "site_hooks.py"))


def table(heads, *rows):
    head = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def test_a_row_with_a_sentence_has_its_heads_at_its_cells(hooks):
    sentence = "what this flag means in so many words"
    shown = hooks["on_page_content"](table(["flag", 'a "b"', "meaning"], ["--x", "1", sentence], ["--y", "2", "z"]))
    assert shown.startswith("<table data-turned>")
    assert f'<td>--x</td><td data-head="a &quot;b&quot;">1</td><td data-head="meaning">{sentence}</td>' in shown
    assert '<td>--y</td><td data-head="a &quot;b&quot;">2</td>' in shown
    for other in (table(["flag", "meaning"], ["--x", sentence]), table(["a", "b", "c"], ["1", "2", "3"])):
        assert hooks["on_page_content"](other) == other


def test_an_image_leads_to_itself(hooks):
    image = '<img alt="words" src="images/one.svg" />'
    assert hooks["on_page_content"](f"<p>{image}</p>") == f'<p><a class="picture" href="images/one.svg">{image}</a></p>'


def test_a_notebook_is_a_page_with_its_outputs(hooks, tmp_path):
    path = tmp_path / "one.ipynb"
    printed = {"output_type": "stream", "text": ["0.5\n", "0.6\n"]}
    value = {"output_type": "execute_result", "data": {"text/plain": ["7"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# One\n", "\n", "Words."]},
        {"cell_type": "code", "source": ["3 + 4"], "outputs": [printed, value]},
    ]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    page = hooks["_notebook"](path)
    assert page.startswith("# One\n")
    assert page.endswith("```python\n3 + 4\n```\n\n```text\n0.5\n0.6\n```\n\n```text\n7\n```")
