"""Write docs/cli.md from the help of the commands, and parts of other pages.

Where things are, in CONTRIBUTING.md, is written from the tree; the tables of docs/readers.md and docs/clients.md are
written from the results of tests/clients.

python docs/generate.py            writes all pages
python docs/generate.py --check    exits with 1 if a page would change
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cyclopts import App

from samesense.cli.main import COMMANDS, app
from samesense.cli.train import app_of_method
from samesense.recipes.methods import METHODS

sys.path.insert(0, str(Path(__file__).parent))
import readers
import where

PAGE = Path(__file__).with_name("cli.md")
CONTRIBUTING = PAGE.parents[1] / "CONTRIBUTING.md"
READERS = PAGE.with_name("readers.md")
CLIENTS = PAGE.with_name("clients.md")
EXAMPLE = re.compile(r"^(samesense [^\n]*(?:\n(?!\n)[^\n]+)*)$", re.MULTILINE)
"""A paragraph that begins with a command."""

CONTENTS = re.compile(r"^#+ Table of Contents\n(?:\n| *- [^\n]*\n)*", re.MULTILINE)
SUBCOMMANDS = re.compile(r"^###+ ", re.MULTILINE)

INTRODUCTION = """\
# The command line

This page is made by `sh scripts/docs` from the help of the commands; do not edit it.

Data goes to standard output, messages go to standard error.
Exit codes: 0 when done; 1 when runs of a sweep failed, or `drift` is above its `--limit`; 2 on misuse or bad input, or
when shards were given up; 130 when interrupted. Any other failure is a defect and shows a traceback.
"""


def section(title: str, command: App, level: int = 2) -> str:
    """Return the section of a command: usage, what it does, an example, and its flags as lists."""
    text = command.generate_docs(heading_level=level, usage_name=title, recursive=False)
    _, usage, body = text.strip().split("```", 2)
    usage = usage.removeprefix("console\n")  # no command that runs
    body = re.split(SUBCOMMANDS, body)[0]  # these have sections of their own
    body = re.sub(CONTENTS, "", body)
    body = EXAMPLE.sub(r"```bash\n\1\n```", body)
    body = body.replace("](#index-", "](#samesense-index-")
    body = re.sub(r"\[(`--install-completion`)\]\([^)]*\)", r"\1", body)
    return f"{'#' * level} {title}\n\n```text\n{usage}```{body.rstrip()}\n"


def spelled() -> list[str]:
    """Return every command, and after a command group each of its subcommands."""
    names = []
    for name in COMMANDS:
        names.append(name)
        inner = app[name]
        names += (
            [f"{name} {subcommand}" for subcommand in sorted(inner) if not subcommand.startswith("-")]
            if inner.default_command is None
            else []
        )
    return names


def page() -> str:
    """Return the whole page."""
    names = spelled()  # first: it loads the commands, and the overview shows them
    blocks = [INTRODUCTION, section("samesense", app)]
    for name in names:
        command = app
        for word in name.split():
            command = command[word]
        blocks.append(section(f"samesense {name}", command))
        if name == "train":
            methods = [section(f"samesense train --method {method}", app_of_method(method), 3) for method in METHODS]
            blocks += methods
    return "\n".join(blocks)


def with_part(path: Path, name: str, content: str) -> str:
    """Return a page with new content between its two marks of that name."""
    begin = f"<!-- {name}: written by docs/generate.py -->"
    end = f"<!-- end of {name} -->"
    before, _, remainder = path.read_text(encoding="utf-8").partition(begin)
    return f"{before}{begin}\n{content}{end}{remainder.partition(end)[2]}"


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/generate.py [--check]\n")
        return 2
    stale = 0
    pages = {
        PAGE: page(),
        CONTRIBUTING: with_part(CONTRIBUTING, "where things are", where.section()),
        READERS: with_part(READERS, "readers", readers.readers()),
        CLIENTS: with_part(CLIENTS, "clients", readers.clients()),
    }
    for path, now in pages.items():
        if path.exists() and path.read_text(encoding="utf-8") == now:
            continue
        if arguments:
            sys.stderr.write(f"{path.name} differs from the code. Run: sh scripts/docs\n")
            stale = 1
        else:
            path.write_text(now, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
