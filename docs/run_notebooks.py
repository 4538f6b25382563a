"""Run notebooks from top to bottom, and keep what their cells print, if it is small.

    python docs/run_notebooks.py NOTEBOOK... [NAME=VALUE...]

A value replaces one of the cell of parameters, such as a folder for the name of a model on a hub.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

LONGEST = 4_000
"""Characters of an output; of a longer one the rest is left out."""


def run(path: Path, values: dict[str, str]) -> None:
    """Run the cells of a notebook in this process, and write their outputs into it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        cell["outputs"] = outputs_of("".join(cell["source"]), namespace, number)
        cell["execution_count"] = number
        if "parameters" in cell["metadata"].get("tags", ()):
            namespace |= values
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def outputs_of(code: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run a cell; return what it printed, and the value of its last expression, as a notebook keeps them."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = StringIO()
    value = None
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": shortened(text)})
    if value is not None:
        text = str(value) if hasattr(value, "_repr_html_") else repr(value)
        data = {"text/plain": shortened(text)}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def shortened(text: str) -> list[str]:
    """Return the lines of an output, and a mark in place of what is too much."""
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition("\n")[0] + "\n..."
    return text.splitlines(keepends=True)


def main(arguments: list[str]) -> None:
    """Run the notebooks, each in an empty folder."""
    values = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    home = Path.cwd()
    for argument in arguments:
        if "=" not in argument:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                run(home / argument, values)
                os.chdir(home)


if __name__ == "__main__":
    main(sys.argv[1:])
