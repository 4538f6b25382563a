"""Write docs/cli.md from the help of the commands, and parts of other pages.

Where things are, in CONTRIBUTING.md, is written from the tree; the tables of docs/readers.md and docs/clients.md are
written from the results of tests/clients.

python docs/generate.py            writes all pages
python docs/generate.py --check    exits with 1 if a page would change
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import commands
import readers
import where

PAGE = Path(__file__).with_name("cli.md")
CONTRIBUTING = PAGE.parents[1] / "CONTRIBUTING.md"
READERS = PAGE.with_name("readers.md")
CLIENTS = PAGE.with_name("clients.md")


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
        PAGE: commands.page(),
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
