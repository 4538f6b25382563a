"""Train a generator from scratch on the windows of a corpus, with the trainer of transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, Sampler
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_pt_utils import LengthGroupedSampler

from samesense.context.corpus.corpus import Corpus, Window, WindowTraining, hold_out
from samesense.context.generator.base import Kind, Reading, Size
from samesense.context.generator.seq2seq import token_costs
from samesense.context.generator.tokens import (
    Layout,
    Tokens,
    encode_packs,
    gather,
    on_device,
    shifted,
    source_of,
    split_window,
)
from samesense.context.generator.transformer import Architecture, Seq2Seq
from samesense.execution.trainer import run_trainer, training_arguments
from samesense.types import Indices

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACK_TOKENS = 4096
"""Most tokens encoded together in training, padding included; rows of similar length are batched."""


@dataclass(frozen=True, kw_only=True)
class GeneratorTraining(WindowTraining):
    """How a generator is trained, in batches of targets; for sizes see ``SIZES`` of the transformer."""

    size: Size = "tiny"  # of the model
    reading: Reading = "apart"  # see :class:`~samesense.context.generator.seq2seq.Seq2SeqGenerator`
    max_tokens: int = 64  # longest sentence
    dropout: float = 0.1  # share of values dropped
    epochs: float = 3.0  # passes over all windows, each once for every direction that the model learns
    max_steps: int | None = None  # takes precedence over epochs; None for no limit


@dataclass(frozen=True)
class TrainedGenerator:
    """A trained model, its steps, and whether it was stopped."""

    model: Seq2Seq
    steps: int
    interrupted: bool


def train_generator(
    corpus: Corpus,
    tokenizer: Tokenizer,
    kinds: Sequence[Kind],
    training: GeneratorTraining,
    checkpoints: Path,
    *,
    resume_from: Path | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> TrainedGenerator:
    """Train one model for all of ``kinds``.

    The offsets of the target sentences tell the model which kind it generates.

    Raises:
        ConfigError: if more windows are held out than half of all.

    Source: Sun et al. 2022 (TACL), sections 3.2.2 and 4.1.
    Differs: the paper states neither the optimiser nor its settings for the generators; those of Vaswani et al. 2017,
        with AdamW, are the starting point.
    """
    set_seed(training.seed)
    shape = Architecture.of(
        training.size, tokenizer.get_vocab_size(), max_tokens=training.max_tokens, dropout=training.dropout
    )
    cost = _Cost(Seq2Seq(shape))
    collate = _Collate(Tokens(tokenizer, training.max_tokens), training.reading)
    learnt, held = hold_out(corpus, training.held_out_windows, training.seed)
    trainer = _Trainer(
        model=cost,
        args=_arguments(training, len(learnt) * len(kinds), checkpoints),
        train_dataset=_Targets(corpus, learnt, kinds),
        eval_dataset=_Targets(corpus, held, kinds),
        data_collator=collate,
        callbacks=list(callbacks),
    )
    interrupted = run_trainer(trainer, resume_from)
    return TrainedGenerator(
        model=cost.model.eval(),
        steps=trainer.state.global_step,
        interrupted=interrupted,
    )


class _Targets(Dataset[tuple[Kind, Window]]):
    """Every window with every kind."""

    def __init__(self, corpus: Corpus, windows: Indices, kinds: Sequence[Kind]) -> None:
        self.corpus = corpus
        self.windows = windows
        self.kinds = kinds

    def __len__(self) -> int:
        return len(self.windows) * len(self.kinds)

    def __getitem__(self, index: int) -> tuple[Kind, Window]:
        window, kind = divmod(index, len(self.kinds))
        return self.kinds[kind], self.corpus.window(int(self.windows[window]))

    def lengths(self) -> list[int]:
        """Return the length of each target in characters."""
        ends = np.cumsum([0, *(len(sentence) for sentence in self.corpus)])
        first, last = self.corpus.window_bounds(self.windows)
        bounds = {
            "sentence": (self.windows, self.windows + 1),
            "left": (first, self.windows),
            "right": (self.windows + 1, last),
            "continuation": (self.windows + 1, last),
        }
        columns = [ends[bounds[kind][1]] - ends[bounds[kind][0]] for kind in self.kinds]
        return np.stack(columns, axis=1).reshape(-1).tolist()


class _Collate:
    """Collates targets with the sources that they attend to."""

    def __init__(self, tokens: Tokens, reading: Reading) -> None:
        self.tokens = tokens
        self.reading = reading

    def __call__(self, examples: Sequence[tuple[Kind, Window]]) -> dict[str, Any]:
        both = [split_window(kind, window.centre, window) for kind, window in examples]
        self.tokens.learn(sentence.text for read, target in both for sentence in (*read, *target))
        sources = [source_of(read, self.reading) for read, _ in both]
        layout = Layout(self.tokens, sources, PACK_TOKENS)
        target = self.tokens.pack([target for _, target in both])
        return {
            "packs": [on_device(pack) for pack in layout.packs],
            "state_indices": torch.from_numpy(layout.state_indices(sources)),
            "inputs": on_device(shifted(target)),
            "targets": torch.from_numpy(target.tokens),
        }


class _Cost(nn.Module):
    """The mean cost of a token, in the form that the trainer takes."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, packs: list[list[Tensor]], state_indices: Tensor, inputs: list[Tensor], targets: Tensor
    ) -> dict[str, Tensor]:
        """Return the loss."""
        memory, absent = gather(encode_packs(self.model, packs), state_indices)
        costs, _ = token_costs(self.model, inputs, targets, memory, absent)
        return {"loss": costs.mean()}


class _Trainer(Trainer):
    """Batches targets of similar length, to save padding."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        targets: Any = self.train_dataset
        size = self.args.train_batch_size
        # What is left over at the end of an epoch is a step too.
        steps_per_epoch = -(-len(targets) // size)
        return _ByLength(targets.lengths(), size, self.args.seed, lambda: self.state.global_step // steps_per_epoch)


class _ByLength(Sampler[int]):
    """Orders each epoch by seed and epoch alone, so that a resumed run continues with its own order.

    The trainer's own sampler repeats the first order after a resumption.
    """

    def __init__(self, lengths: list[int], batch_size: int, seed: int, epoch: Callable[[], int]) -> None:
        self._lengths = lengths
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator()
        generator.manual_seed(self._seed)
        for _ in range(self._epoch()):  # skip the orders of earlier epochs
            torch.randperm(len(self._lengths), generator=generator)
        return iter(LengthGroupedSampler(self._batch_size, lengths=self._lengths, generator=generator))


def _arguments(training: GeneratorTraining, targets: int, checkpoints: Path) -> TrainingArguments:
    steps = training.max_steps or int(-(-targets // training.batch_size) * training.epochs)
    return training_arguments(
        TrainingArguments,
        training,
        checkpoints,
        eval_steps=training.eval_steps or max(1, steps // 10),
        metric="eval_loss",
        use_cpu=not torch.cuda.is_available(),
        num_train_epochs=training.epochs,
        max_steps=training.max_steps or -1,
        per_device_train_batch_size=training.batch_size,
        per_device_eval_batch_size=training.batch_size,
        adam_beta2=0.98,  # as in Vaswani et al. 2017
        label_names=["targets"],
        prediction_loss_only=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
