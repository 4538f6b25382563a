"""The loss of distillation, which learns the teachers' ranking and their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from samesense.losses.cosine import check_number, row_cosine
from samesense.losses.rank_cse import RankCSE

if TYPE_CHECKING:
    from samesense.losses.rank_cse import Teacher


class Distillation(RankCSE):
    """RankCSE, and the distance between the student's and the teachers' unit vectors.

        L = L(RankCSE) + regress * sum over teachers of weight * mean of (1 - cos(W u, v))

    1 - cos is half the squared distance of unit vectors. W is learnt with the student and not kept. If the first
    teacher has the student's dimension, it has no W: both then embed in the same space, and may share a collection.

    Args:
        teachers: see :class:`~samesense.losses.rank_cse.RankCSE`; at least one.
        widths: dimension of the vectors of each teacher.
        dim: dimension of the student's embeddings, behind the head if there is one.
        regress: weight of the distance term.
        weights: weights of the teachers; equal by default.
        gamma: weight of the ranking term; 0 leaves it out.
        settings: further settings of ``RankCSE``.

    Raises:
        ValueError: if there is no teacher, or not one width and weight a teacher.

    Source: Reimers & Gurevych 2020, "Making Monolingual Sentence Embeddings Multilingual using Knowledge Distillation",
        whose loss is the squared distance of the vectors.
    Differs: unit vectors, as lengths do not affect cosines, and several teachers.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        teachers: Sequence[Teacher],
        widths: Sequence[int],
        dim: int,
        regress: float = 1.0,
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        **settings: Any,
    ) -> None:
        if not teachers or len(widths) != len(teachers) or (weights is not None and len(weights) != len(teachers)):
            received = f"{len(teachers)} teachers and {len(widths)} widths"
            if weights is not None:
                received += f" and {len(weights)} weights"
            raise ValueError(
                f"Distillation takes a teacher or more, with one width and one weight each; received {received}."
            )
        super().__init__(model, teachers=teachers, weights=weights, gamma=gamma, **settings)
        self.teachers = list(teachers)  # also needed if the ranking has no weight
        # RankCSE takes no labels without its ranking term; the distance needs the teachers too.
        self.labels = "row"
        self.weights = [1.0] * len(teachers) if weights is None else list(weights)
        check_number("regress", regress, least=0)
        for weight in self.weights:
            check_number("weight of a teacher", weight, least=0)
        self.regress = regress
        self.maps = nn.ModuleList()
        for position, width in enumerate(widths):
            # The student has the space of the first teacher, if it is of the same width.
            if position == 0 and width == dim:
                self.maps.append(nn.Identity())
            else:
                self.maps.append(nn.Linear(dim, width, bias=False))
        # RankCSE refuses weights that are all 0, so that it is then not called at all.
        self.ranks = any(self.settings.get(name, 1.0) for name in ("contrast", "beta", "gamma"))

    def total(self, views: list[Tensor], teacher_vectors: list[Tensor]) -> Tensor:
        """Return the loss of the sentences of all processes; see ``RankCSE.total``."""
        terms = []
        if self.ranks:
            terms.append(super().total(views, teacher_vectors if self.settings["gamma"] else []))
        if self.regress:
            distance = self.distance(views, teacher_vectors)
            self.term_means.add("regress", distance)
            terms.append(self.regress * distance)
        return torch.stack(terms).sum()

    def distance(self, views: list[Tensor], teacher_vectors: list[Tensor]) -> Tensor:
        """Return the weighted mean distance of all views from the teachers."""
        distances = [
            weight / sum(self.weights) * (1 - row_cosine(project(view.float()), vectors)).mean()
            for project, vectors, weight in zip(self.maps, teacher_vectors, self.weights, strict=True)
            for view in views
        ]
        return torch.stack(distances).sum() / len(views)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {**super().get_config_dict(), "regress": self.regress}
