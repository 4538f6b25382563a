"""``samesense push``: uploads a finished model to the hub."""

from __future__ import annotations

from typing import Any

from samesense.api import publish
from samesense.cli.command import command_of
from samesense.cli.output import put


@command_of(publish.push)
def push(model: str, name: str, /, **options: Any) -> None:
    """samesense push runs/first owner/name --license apache-2.0 --language en"""
    put(publish.push(model, name, **options))
