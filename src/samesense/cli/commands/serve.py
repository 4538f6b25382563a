"""``samesense serve``: models behind HTTP."""

from __future__ import annotations

from typing import Any

from samesense.api import serve as api
from samesense.cli.command import command_of
from samesense.cli.output import Several


@command_of(api.serve)
def serve(models: Several, /, **options: Any) -> None:
    """samesense serve default small=models/small cross=runs/cross --port 8000 --api-key-file keys.txt"""
    api.serve(models, **options)
