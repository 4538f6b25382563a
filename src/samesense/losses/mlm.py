"""Masked language modelling as an auxiliary task of a contrastive loss, against forgetting of word knowledge.

    L = InfoNCE + weight * cross-entropy of the masked tokens

A masked copy of every text is encoded in a second forward; the contrastive loss uses the unmasked texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling
from transformers.modeling_outputs import BaseModelOutputWithPast

from samesense.errors import ConfigError, ModelError
from samesense.execution.progress import without_bars
from samesense.execution.weights import checked_weights
from samesense.failures import first_line
from samesense.hub import hub_access
from samesense.losses.cosine import reduced, widen
from samesense.losses.gather import gather
from samesense.losses.info_nce import InfoNCE

IGNORED = -100
"""Label of a token that is not predicted; transformers' collator writes it, and ``F.cross_entropy`` skips it."""


class Masking:
    """Chooses tokens to predict; of these 80 % are masked, 10 % replaced by random tokens, and 10 % unchanged.

    A fraction ``share`` of the tokens is chosen, never special tokens or padding. ConfigError if the tokenizer has no
    mask token.

    Source: Devlin et al. 2019 (BERT), task 1; drawn by the collator of transformers.
    """

    def __init__(self, tokenizer: Any, share: float = 0.15) -> None:
        if getattr(tokenizer, "mask_token", None) is None:
            raise ConfigError(
                f"Masked language modelling needs a tokenizer with a mask token; {type(tokenizer).__name__} has none. "
                "Set mlm_weight to 0, or start from a masked language model."
            )
        self._special = torch.tensor(sorted(tokenizer.all_special_ids))
        self._draw = DataCollatorForLanguageModeling(tokenizer, mlm_probability=share).torch_mask_tokens

    def __call__(self, ids: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
        """Return a masked copy of ``ids`` ``(rows, tokens)``, and labels, ``IGNORED`` for tokens not chosen."""
        special = torch.isin(ids, self._special.to(ids.device)) | (attention == 0)
        # drawn on the CPU, whose generator is in checkpoints; a clone, as the collator works in place
        masked, targets = self._draw(ids.clone().cpu(), special_tokens_mask=special.cpu())
        return masked.to(ids.device), targets.to(ids.device)


class InfoNCEWithMLM(InfoNCE):
    """InfoNCE plus masked language modelling on the same texts.

    Args:
        model: the sentence-transformers model to train, beginning with a transformer.
        mlm_head: module from token vectors to logits of the vocabulary, see :func:`masked_lm_head`; it is trained and
            not kept.
        masking: masks the texts.
        mlm_weight: weight of the cross-entropy.
        settings: settings of :class:`~samesense.losses.info_nce.InfoNCE`, except the token budget.

    Source: Gao et al. 2021 (SimCSE), appendix on MLM: weight 0.1, new masks for every batch.
    Differs: only masked tokens go through the head. Under DDP the mean is over those of all processes.
    """

    def __init__(
        self, model: nn.Module, *, mlm_head: nn.Module, masking: Masking, mlm_weight: float = 0.1, **settings: Any
    ) -> None:
        super().__init__(model, **settings)
        self.mlm_head = mlm_head
        self.masking = masking
        self.mlm_weight = mlm_weight

    def forward(self, sentence_features: Any, labels: Tensor | None = None) -> Tensor:
        """Return the weighted sum of both losses of one batch."""
        columns = list(sentence_features)
        return super().forward(columns, labels) + self.mlm_weight * self.masked_lm_loss(self.views(columns))

    def masked_lm_loss(self, columns: Sequence[dict[str, Any]]) -> Tensor:
        """Return the mean cross-entropy of the masked tokens of all columns and processes, a scalar; 0 for none."""
        if isinstance(self.model, DistributedDataParallel):
            encoder = self.model.module
        else:
            encoder = self.model
        trunk = cast(SentenceTransformer, encoder)[0]
        vectors = []
        targets = []
        for column in columns:
            masked, labels = self.masking(column["input_ids"], column["attention_mask"])
            tokens = trunk({**column, "input_ids": masked})["token_embeddings"]
            vectors.append(tokens[labels != IGNORED])  # the head is computed for masked tokens only
            targets.append(labels[labels != IGNORED])
        # The vectors are gathered, not the logits, which are wider by far.
        logits = self.mlm_head(gather(torch.cat(vectors)))
        return reduced(F.cross_entropy(widen(logits), gather(torch.cat(targets)), reduction="none"), "mean")

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {**super().get_config_dict(), "mlm_weight": self.mlm_weight}


class _Head(nn.Module):
    """The head of a masked language model, whose trunk is replaced by given token vectors."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        setattr(model, model.base_model_prefix, StatesAsGiven())
        self.model = model

    def forward(self, vectors: Tensor) -> Tensor:
        """Return logits ``(tokens, vocabulary)`` for vectors ``(tokens, dim)``."""
        logits: Tensor = self.model(inputs_embeds=vectors.unsqueeze(0)).logits
        return logits.squeeze(0)


class StatesAsGiven(nn.Module):
    """Replaces the trunk of a model and returns the hidden states it gets, so that only the head is computed."""

    def forward(self, *args: Any, inputs_embeds: Tensor, **kwargs: Any) -> BaseModelOutputWithPast:
        """Return the given hidden states."""
        return BaseModelOutputWithPast(last_hidden_state=inputs_embeds)


def transformer_source(model: SentenceTransformer) -> str:
    """Return the folder or hub name from which a model's transformer was loaded; empty if it has none."""
    return str(getattr(getattr(model[0], "model", None), "name_or_path", ""))


@without_bars()
def masked_lm_head(model: SentenceTransformer) -> nn.Module:
    """Return the masked-LM head of the checkpoint from which the model's transformer was loaded.

    Its output layer is not tied to the model's embeddings. ConfigError if the checkpoint has no such head, or lacks
    weights of it.
    """
    source = transformer_source(model)
    try:
        with hub_access(source), checked_weights() as weights:
            loaded = AutoModelForMaskedLM.from_pretrained(source)
            new = weights.allow_head()
    except (OSError, ValueError, KeyError, ModelError) as error:
        raise _no_head(source, first_line(error)) from error
    missing = [name for name in new if not name.startswith(f"{loaded.base_model_prefix}.")]
    if missing:
        raise _no_head(source, f"{len(missing)} of its weights are not there, such as {sorted(missing)[0]}")
    return _Head(loaded).float().to(model.device)


def _no_head(source: str, reason: str) -> ConfigError:
    return ConfigError(
        f"Masked language modelling needs a checkpoint with its masked-LM head; {source or 'this model'} has none "
        f"({reason}). Set mlm_weight to 0, or start from a masked language model such as bert-base-uncased."
    )
