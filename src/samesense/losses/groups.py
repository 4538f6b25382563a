"""Groups of pairs, such as the candidates of one query, within which alone a loss compares.

In training data the label of a pair is then ``[label, group]``, so that both come through the collators of
sentence-transformers together, and are gathered from all processes together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samesense.losses.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


def check_groups(loss: str, scores: Tensor, groups: Tensor) -> None:
    """Raise ValueError unless there is an integer group for each score, ``(pairs,)``."""
    integers = not (groups.is_floating_point() or groups.is_complex() or groups.dtype == torch.bool)
    if groups.shape != scores.shape or not integers:
        raise ValueError(
            f"{loss} takes an integer group for each pair, of shape {tuple(scores.shape)}; received groups of shape "
            f"{tuple(groups.shape)} and type {groups.dtype}."
        )


def split_groups(loss: str, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the labels and the integer groups ``(pairs,)`` of rows ``[label, group]``; ValueError for other rows."""
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(
            f"{loss} within groups takes a label and a group for each pair, of shape (pairs, 2); received "
            f"{tuple(rows.shape)}."
        )
    return rows[:, 0], rows[:, 1].long()


def padded_lists(groups: Tensor, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores and labels ``(pairs,)`` as one list a group, padded with 0, and where the lists hold pairs.

    All three are ``(groups, largest group)``; pairs keep their order.
    """
    _, index, sizes = torch.unique(groups, return_inverse=True, return_counts=True)
    order = index.argsort(stable=True)
    lists = index[order]
    positions = torch.arange(len(order), device=order.device) - (sizes.cumsum(0) - sizes)[lists]
    shape = (len(sizes), int(sizes.max()))
    score_lists = scores.new_zeros(shape).index_put((lists, positions), scores[order])
    label_lists = labels.new_zeros(shape).index_put((lists, positions), labels[order])
    present = torch.zeros(shape, dtype=torch.bool, device=scores.device)
    present[lists, positions] = True
    return score_lists, label_lists, present


def count_comparisons(labels: Tensor, groups: Tensor) -> Tensor:
    """Return the number of couples of one group whose labels differ, a scalar."""
    levels, level = torch.unique(labels, return_inverse=True)
    _, number = torch.unique(groups, return_inverse=True)
    return _couples(number) - _couples(number * len(levels) + level)


def _couples(numbers: Tensor) -> Tensor:
    """Return the number of couples of equal numbers."""
    _, counts = torch.unique(numbers, return_counts=True)
    couples: Tensor = (counts * (counts - 1)).sum() // 2
    return couples
