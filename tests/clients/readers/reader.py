"""What every reader has in common: models come in one file, what they give goes into another."""

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

warnings.simplefilter("ignore")


def answer(rows, known):
    try:
        return {"rows": rows(known)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:600]}


def main(rows, *packages):
    """Read the file of models, each with ``folder`` and ``inputs``; write the rows of each, or why there are none."""
    asked, out = map(Path, sys.argv[1:])
    models = json.loads(asked.read_text(encoding="utf-8"))
    given = {known["name"]: answer(rows, known) for known in models}
    versions = {package: version(package) for package in packages}
    out.write_text(json.dumps({"rows": given, "versions": versions}), encoding="utf-8")
