"""Tables of programs that open our folders and of clients of our server, from the last run of tests/clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "tests" / "clients" / "results.json"
CLIENT = "clients: "


WHOLE = "sentence-transformers 6.2"
"""The reader that opens every kind of model."""


def section() -> str:
    """Return Markdown: the kinds of models, and the tables of readers and of clients."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    readers = [[name, *_row(result)] for name, result in results.items() if not name.startswith(CLIENT)]
    clients = [_client(name, result) for name, result in results.items() if name.startswith(CLIENT)]
    groups = results[WHOLE]["groups"]
    tried = "; ".join(f"{group} ({', '.join(sorted(kinds))})" for group, kinds in sorted(groups.items()))
    blocks = [
        f"The {sum(map(len, groups.values()))} models: {tried}.",
        _table(["reader", "tried with", "opens", "with", "does not open"], readers),
        "Clients of `samesense serve`, unmodified:",
        _table(["client", "tried with", "gets", "with"], clients),
    ]
    return "\n\n".join(blocks) + "\n"


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
