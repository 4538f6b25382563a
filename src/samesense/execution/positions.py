"""How many tokens a model has positions for: where the tables end in which it looks them up, found by watching it.

RoBERTa's kin count positions from behind the padding token's, BART's from 2, and others in ways of their own. What is
looked up tells, and not what a configuration says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode


def table_limit(compute: Callable[[], object], tokens: int) -> int | None:
    """Return how many tokens fit into the tables that ``compute`` looks positions up in; ``None`` without a table.

    It has a model read so many tokens, whose numbers do not rise one by one.
    """
    tables = _Tables(tokens)
    with torch.inference_mode(), tables:
        compute()
    return min(tables.limits, default=None)


class _Tables(TorchFunctionMode):
    """Notes how many tokens each table holds in which rows are looked up by position: one after another.

    Some models pad a text to a multiple of their window; only its own ``tokens`` count.
    """

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens
        self.limits: list[int] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.embedding:
            self._note(rows=args[1].shape[0], places=args[0])
        elif func is torch.index_select or func is Tensor.index_select:
            self._note(rows=args[0].shape[0], places=args[-1])
        return func(*args, **(kwargs or {}))

    def _note(self, rows: int, places: Tensor) -> None:
        flat = places.flatten()[: self.tokens].tolist()
        if len(flat) == self.tokens > 2 and flat == list(range(flat[0], flat[0] + len(flat))):
            self.limits.append(rows - flat[0])
