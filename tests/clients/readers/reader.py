"""Shared by every reader: read the models from one file, write their outputs into another; find code in the docs."""

import json
import re
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

warnings.simplefilter("ignore")

DOCS = Path(__file__).parents[3] / "docs"


def documented(page, title, index=0):
    """Return the code of a page below a heading: its first block of Python, or that of another index."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.split(rf"^#+ {re.escape(title)}$", text, maxsplit=1, flags=re.MULTILINE)[1]
    section = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```python[^\n]*\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[index]


def answer(rows, job):
    try:
        return {"rows": rows(job)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:600]}


def main(rows, *packages):
    """Read the file of models, each with ``folder`` and ``inputs``; write the rows of each, or why there are none."""
    source, out = map(Path, sys.argv[1:])
    jobs = json.loads(source.read_text(encoding="utf-8"))
    answers = {job["name"]: answer(rows, job) for job in jobs}
    versions = {package: version(package) for package in packages}
    out.write_text(json.dumps({"rows": answers, "versions": versions}), encoding="utf-8")
