"""How a model moves in the plane of alignment and uniformity while it is trained.

Source: Liu et al. 2023 (RankCSE), Fig. 4 and appendix H; Wang and Isola 2020 for the quantities.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from samesense.data import PairData
from samesense.errors import ConfigError
from samesense.evaluation.geometry import GeometryTask
from samesense.inference.models.load import load
from samesense.recipes.unsupervised.settings import ViewSettings


class GeometryPath(TrainerCallback):
    """Writes alignment and uniformity of the dev set into the history, before the first step and at each evaluation.

    Pairs near the top of the scale are positives; see :class:`~samesense.evaluation.geometry.GeometryTask`.
    """

    def __init__(self, dev: PairData) -> None:
        self.task = GeometryTask(dev)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **kwargs: Any
    ) -> None:
        """Measure the start point; a resumed run has it already."""
        if state.global_step == 0:
            self._measure(state, model)

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **kwargs: Any
    ) -> None:
        """Measure the model as it was just evaluated on dev."""
        self._measure(state, model)

    def _measure(self, state: TrainerState, model: Any) -> None:
        trained = load(getattr(model, "module", model), name="dev", precision="float32")
        found = {result.metric: result.value for result in self.task.evaluate(trained).results}
        measured = {f"dev_{name}": found[name] for name in ("alignment", "uniformity")}
        state.log_history.append({"epoch": state.epoch or 0.0, "step": state.global_step, **measured})


def geometry_callbacks(settings: ViewSettings, dev: PairData | None) -> list[TrainerCallback]:
    """Return the callback that the settings ask for, or none."""
    if not settings.geometry:
        return []
    if dev is None:
        raise ConfigError("geometry is measured on the dev set, and there is none. Give dev, or leave out geometry.")
    return [GeometryPath(dev)]
