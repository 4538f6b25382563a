"""Write the tree and the files to touch for CONTRIBUTING.md, from the source tree and the registries.

Called by ``docs/generate.py``. A missing file of an example is an error, so the page cannot go stale.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

from samesense.evaluation.suites import SUITES
from samesense.losses.registry import PAIR_LOSSES
from samesense.recipes.methods import METHODS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "samesense"


def tree() -> str:
    """Return the packages, and the packages in them, each with the first line of its docstring."""
    lines = []
    for entry in sorted([*SOURCE.iterdir()], key=lambda path: (path.is_dir(), path.name)):
        if entry.suffix == ".py" and entry.stem not in ("__main__",):
            name = "__init__.py" if entry.stem == "__init__" else entry.name
            lines.append(f"{name:<27} {_first_line(entry)}")
        elif (entry / "__init__.py").is_file():
            lines.append(f"{entry.name + '/':<27} {_first_line(entry / '__init__.py')}")
            lines += [
                f"  {inner.name + '/':<25} {_first_line(inner / '__init__.py')}"
                for inner in sorted(entry.iterdir())
                if (inner / "__init__.py").is_file()
            ]
    return "\n".join(line.rstrip() for line in lines)


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def files_to_touch() -> list[tuple[str, str, list[str]]]:
    """Return, for the most common additions, an existing example and its files."""
    loss = "angle"
    method = "simcse"
    suite = "binary"
    command = "mine"
    prepare = _file("samesense.recipes.unsupervised.simcse")
    settings = _file(METHODS[method].settings.__module__)
    examples = [
        (
            "loss",
            loss,
            [
                _file(PAIR_LOSSES.spec(loss).module.__module__),
                _file("samesense.losses.registry"),
                f"tests/losses/test_{loss}.py",
                f"tests/references/{loss}.py",
                "docs/methods/cosent.md",
            ],
        ),
        (
            "method",
            method,
            [
                prepare,
                settings,
                _file("samesense.recipes.methods"),
                f"src/samesense/recipes/configs/{method}.toml",
                f"tests/recipes/test_{method}.py",
                f"docs/methods/{method}.md",
            ],
        ),
        (
            "suite",
            suite,
            [
                _file(f"samesense.evaluation.{SUITES[suite].name}"),
                _file("samesense.evaluation.suites"),
                f"tests/evaluation/test_{suite}.py",
                "docs/evaluation.md",
            ],
        ),
        (
            "command",
            command,
            [
                f"src/samesense/cli/commands/{command}.py",
                _file("samesense.cli.main"),
                _file(import_module("samesense")._HOME_OF[command]),
                "src/samesense/__init__.py",
                "tests/test_front_door.py",
                f"tests/inference/test_{command}_commands.py",
            ],
        ),
        (
            "index backend",
            "usearch",
            [
                _file("samesense.inference.search.hnsw"),
                _file("samesense.inference.collection.writer"),
                "tests/inference/test_approximate.py",
                "docs/search.md",
                "pyproject.toml",
            ],
        ),
    ]
    absent = [path for _, _, paths in examples for path in paths if not (ROOT / path).is_file()]
    if absent:
        raise FileNotFoundError(f"docs/where.py names files that are not there: {', '.join(absent)}")
    return examples


def _file(module: str) -> str:
    path = ROOT / "src" / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return str(path.relative_to(ROOT))


def section() -> str:
    """Return the part of CONTRIBUTING.md that says where things are."""
    rows = [
        f"| {kind} | `{example}` | {', '.join(f'`{path}`' for path in paths)} |"
        for kind, example, paths in files_to_touch()
    ]
    table = "\n".join(["| to add a | look at | files |", "|---|---|---|", *rows])
    return f"```text\n{tree()}\n```\n\n{table}\n"
