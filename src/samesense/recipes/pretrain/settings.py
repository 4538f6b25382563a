"""Settings of pretraining; see :mod:`samesense.recipes.pretrain.recipe`."""

from __future__ import annotations

from pydantic import Field, model_validator

from samesense.data.documents import Paragraphs
from samesense.data.sentence_splitting import Language
from samesense.errors import ConfigError
from samesense.execution.settings import with_defaults
from samesense.training.settings import TrainerSettings


@with_defaults(learning_rate=1e-4, warmup_ratio=0.05)
class PretrainSettings(TrainerSettings):
    """Settings of pretraining; the defaults are for some million words, and a model that has read others before."""

    model: str = Field(description="what is trained on: folder, hub name, or default")
    layers: int | None = Field(None, ge=1, description="keep this number of the lowest layers [all]")
    masked: float = Field(0.15, gt=0, lt=1, description="share of the tokens to predict")
    max_seq_length: int = Field(128, ge=8, description="tokens of a block of text")
    held_out: float = Field(
        0.02, gt=0, le=0.5, description="share of the text that selects the checkpoint: whole documents, of ten or more"
    )
    language: Language = Field("auto", description="language of the documents, for the splitting into sentences")
    paragraphs: Paragraphs = Field("sections", description="what a paragraph of a text file is")

    batch_size: int = Field(32, ge=1, description="blocks in a step")
    epochs: float = Field(1.0, gt=0, description="passes over the text")

    @model_validator(mode="after")
    def _of_one_length(self) -> PretrainSettings:
        if self.mini_batch_num_tokens is not None:
            raise ConfigError(
                "`mini_batch_num_tokens` is for texts of different lengths, and pretraining reads blocks of one. Take "
                "a smaller `batch_size`, or leave it out."
            )
        return self
