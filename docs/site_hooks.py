"""Hooks of mkdocs: pages from outside docs/ and of notebooks, links to them, an API reference, and llms.txt."""

from __future__ import annotations

import ast
import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # tests read llms.txt without mkdocs
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s#]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r":\w+:<code>~?([\w.]+)</code>")
ROW = re.compile(r"^\| ([^|]+) \| (\[.+) \|$", re.MULTILINE)
OUTSIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE")
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
CELL = re.compile(r"<td([^>]*)>(.*?)</td>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
IMAGE = re.compile(r'<img [^>]*src="([^"]*)"[^>]*>')
SENTENCE = 30
"""Characters from which on a cell of a table is read as a sentence."""

ABOUT = "about.md"
"""README.md on the site, where that name would be another index."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/ that others link to, what they link to, the notebooks as pages, and the reference."""
    from mkdocs.structure.files import File

    pages = [ROOT / name for name in OUTSIDE]
    pages += [*(ROOT / "benchmarks").glob("*.md"), *(ROOT / "reproduce").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
    linked = {path for page in [*pages, *DOCS.rglob("*.md")] for path in _targets(page)}
    for path in sorted({*pages, *linked}):
        if path.is_file() and not path.is_relative_to(DOCS):
            files.append(File.generated(config, _uri(path), abs_src_path=str(path)))
    for path in sorted(DOCS.rglob("*.ipynb")):
        files.append(File.generated(config, _uri(path), content=_notebook(path)))
    reference = {
        "api.md": ("Python", "samesense"),
        "api-losses.md": ("Losses", "samesense.losses"),
        "api-metrics.md": ("Metrics", "samesense.metrics"),
    }
    for uri, (title, package) in reference.items():
        content = f"# {title}\n\n" + "\n\n".join(f"::: {package}.{name}" for name in _public(package))
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page whose links to files outside docs/ lead to their pages on the site."""
    home = Path(page.file.abs_src_path or DOCS / page.file.src_uri).parent
    text = markdown.replace("```python no-run", "```python")
    blocks = []
    last = 0
    for fence in FENCE.finditer(text):
        blocks += [_relinked(text[last : fence.start()], home, page.file.src_uri), fence[0]]
        last = fence.end()
    return "".join([*blocks, _relinked(text[last:], home, page.file.src_uri)])


def on_page_content(html: str, **_: Any) -> str:
    """Return HTML whose tables fit a phone and whose images lead to themselves.

    Roles of docstrings, such as ``:func:``, become the bare name.
    """
    html = ROLE.sub(lambda match: f"<code>{match[1].rpartition('.')[2]}</code>", html)
    html = TABLE.sub(lambda match: _turned(match[0]), html)
    return IMAGE.sub(r'<a class="picture" href="\1">\g<0></a>', html)


def on_post_build(config: Any, **_: Any) -> None:
    """Write llms.txt."""
    (Path(config.site_dir) / "llms.txt").write_text(llms(config.site_description, config.nav), encoding="utf-8")


def llms(description: str, nav: list[dict[str, Any]]) -> str:
    """Return llms.txt: every page that ``nav`` of mkdocs.yml names, with its purpose from docs/index.md."""
    uses = defaultdict(list)
    for what, links in ROW.findall((DOCS / "index.md").read_text(encoding="utf-8")):
        for _, target, _ in LINK.findall(what + links):
            uses[_uri((DOCS / target).resolve())].append(LINK.sub(lambda match: match[1][1:-1], what))
    lines = ["# samesense", "", f"> {description}."]
    for section in nav:
        for name, entries in section.items():
            lines += ["", f"## {name}", ""]
            for title, uri in _pages(entries):
                address = uri.removesuffix(".md").removesuffix("README").removesuffix("index") or "./"
                lines.append(f"- [{title}]({address})" + (f": {'; '.join(uses[uri])}" if uses[uri] else ""))
    return "\n".join(lines) + "\n"


def _turned(table: str) -> str:
    """Return a table of sentences with its heads at its cells, so that site.css can show each row as a list on a phone.

    Tables of figures, and those of two columns, stay as they are.
    """
    heads = [TAG.sub("", head).strip() for head in re.findall(r"<th\b[^>]*>(.*?)</th>", table, re.DOTALL)]
    rows = [CELL.findall(row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)]
    sentences = any(len(TAG.sub("", cell)) > SENTENCE for row in rows for _, cell in row[1:])
    if len(heads) < 3 or not sentences:
        return table
    column = -1

    def marked(match: re.Match[str]) -> str:
        nonlocal column
        column = (column + 1) % len(heads)
        name = heads[column].replace('"', "&quot;")
        head = f' data-head="{name}"' if column and name else ""
        return f"<td{match[1]}{head}>{match[2]}</td>"

    return CELL.sub(marked, table).replace("<table>", "<table data-turned>", 1)


def _pages(entries: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield title and path of each page below a section; the heading is the title if ``nav`` has none."""
    for entry in entries:
        for title, below in entry.items() if isinstance(entry, dict) else [(None, entry)]:
            if isinstance(below, list):
                yield from _pages(below)
            else:
                yield title or _heading(DOCS / below), below


def _heading(page: Path) -> str:
    text = page.read_text(encoding="utf-8") if page.is_file() else _notebook(page.with_suffix(".ipynb"))
    return text.partition("\n")[0].removeprefix("# ")


def _notebook(path: Path) -> str:
    """Return the cells of a notebook and their outputs as a page, with a link to the file."""
    cells = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cells.append(text)
            continue
        cells.append(f"```python\n{text}\n```")
        outputs = ["".join(output.get("text") or output["data"]["text/plain"]) for output in cell["outputs"]]
        cells += [f"```text\n{output.rstrip()}\n```" for output in outputs]
    title, _, remainder = cells[0].partition("\n")
    return "\n\n".join([title, f'<a href="../{path.name}" download>Download the notebook</a>', remainder, *cells[1:]])


def _public(package: str) -> list[str]:
    """Return the public names of a package, which is not imported."""
    init = ROOT.joinpath("src", *package.split("."), "__init__.py")
    assigned = [node for node in ast.parse(init.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    names = next(node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__")
    return [name for name in ast.literal_eval(names) if not name.startswith("_")]


def _targets(page: Path) -> set[Path]:
    """Return the files that a page links to."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for _, target, _ in LINK.findall(prose) if _is_path(target)}


def _relinked(prose: str, home: Path, uri: str) -> str:
    def changed(match: re.Match[str]) -> str:
        label = match[1]
        target = match[2]
        anchor = match[3] or ""
        if not _is_path(target):
            return match[0]
        path = (home / target).resolve()
        if path.is_dir():
            if not (path / "README.md").is_file():
                return label[1:-1]
            path /= "README.md"
        return f"{label}({posixpath.relpath(_uri(path), posixpath.dirname(uri) or '.')}{anchor})"

    return LINK.sub(changed, prose)


def _uri(path: Path) -> str:
    """Return where a file of the repository stands on the site."""
    if path == ROOT / "README.md":
        return ABOUT
    if path.suffix == ".ipynb":
        path = path.with_suffix(".md")
    return path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT).as_posix()


def _is_path(target: str) -> bool:
    return bool(target) and not re.match(r"[a-z]+:", target)
