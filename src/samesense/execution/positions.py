"""Finds how many tokens a model has positions for, by observing its lookups in position tables.

RoBERTa and its relatives count positions from after the padding token's, BART from 2, and others in their own ways. So
the lookups are observed rather than the configuration read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode


def table_limit(compute: Callable[[], object], tokens: int) -> int | None:
    """Return how many tokens fit into the position tables that ``compute`` uses; ``None`` without a table.

    ``compute`` runs a model on ``tokens`` tokens, whose ids must not be consecutive numbers.
    """
    tables = _Tables(tokens)
    with torch.inference_mode(), tables:
        compute()
    return min(tables.limits, default=None)


class _Tables(TorchFunctionMode):
    """Records the limit of each table whose rows are looked up by position, that is one after another.

    Some models pad a text to a multiple of their window; only the first ``tokens`` count.
    """

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens
        self.limits: list[int] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.embedding:
            self._note(rows=args[1].shape[0], positions=args[0])
        elif func is torch.index_select or func is Tensor.index_select:
            self._note(rows=args[0].shape[0], positions=args[-1])
        return func(*args, **(kwargs or {}))

    def _note(self, rows: int, positions: Tensor) -> None:
        # short texts could have consecutive ids by chance
        flat = positions.flatten()[: self.tokens].tolist()
        if len(flat) == self.tokens > 2 and flat == list(range(flat[0], flat[0] + len(flat))):
            # Rows before the first position belong to none, as in RoBERTa.
            self.limits.append(rows - flat[0])
