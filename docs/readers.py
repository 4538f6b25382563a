"""Tables of programs that open our folders and of clients of our server, from the last run of tests/clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "tests" / "clients" / "results.json"
CLIENT = "clients: "


WHOLE = "sentence-transformers 6.2"
"""The reader that opens every kind of model."""


def readers() -> str:
    """Return Markdown: the kinds of models, and the table of the programs that open them."""
    results = _results()
    rows = [[name, *_row(result)] for name, result in results.items() if not name.startswith(CLIENT)]
    groups = results[WHOLE]["groups"]
    tried = "; ".join(f"{group} ({', '.join(sorted(kinds))})" for group, kinds in sorted(groups.items()))
    models = f"The {sum(map(len, groups.values()))} models: {tried}."
    header = ["reader", "versions tried", "models opened", "what it needs", "models not opened"]
    return f"{models}\n\n{_table(header, rows)}\n"


def clients() -> str:
    """Return Markdown: the table of clients of the server."""
    rows = [_client(name, result) for name, result in _results().items() if name.startswith(CLIENT)]
    return f"{_table(['client', 'versions tried', 'what was compared', 'what it needs'], rows)}\n"


def _results() -> dict[str, Any]:
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def _row(result: dict[str, Any]) -> list[str]:
    kinds = {kind: why for group in result["groups"].values() for kind, why in group.items()}
    refused = "; ".join(f"{kind}: {why}" for kind, why in sorted(kinds.items()) if why != "same")
    same = sum(why == "same" for why in kinds.values())
    return [_versions(result), f"{same} of {len(kinds)}", result["setting"], refused]


def _client(name: str, result: dict[str, Any]) -> list[str]:
    return [name.removeprefix(CLIENT), _versions(result), ", ".join(sorted(result["groups"])), result["setting"]]


def _versions(result: dict[str, Any]) -> str:
    return ", ".join(f"{package} {version}" for package, version in result["versions"].items())


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
