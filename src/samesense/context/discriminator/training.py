"""Train the discriminator on the windows of a corpus, with the trainer of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

from samesense.context.corpus.corpus import Corpus, hold_out
from samesense.context.discriminator.batching import Collate, Looks, Schedule, Steps
from samesense.context.discriminator.encoder import SentenceEncoder
from samesense.context.discriminator.lstm import UNKNOWN, Coherence, Interaction, Vocabulary
from samesense.errors import ConfigError
from samesense.types import Encode


@dataclass(frozen=True, kw_only=True)
class DiscriminatorTraining:
    """How a discriminator is trained.

    Source: Sun et al. 2022, section 3.2.1: half of the negatives from the same document, half from anywhere.
    Differs: the paper states no optimiser, size of word vectors, share of negatives or number of epochs.

    Attributes:
        interaction: see :class:`~samesense.context.discriminator.lstm.Coherence`, as for the next three.
        dim: size of a word vector; that of the initial vectors where there are some.
        hidden: size of the LSTM in each direction.
        dropout: share of the entries of word and sentence vectors that is dropped.
        least_count: rarer words are unknown.
        most_words: further words of a sentence are not read.
        negatives: replacements of the centre of each window, drawn anew in each epoch.
        batch_size: windows in a step; a multiple of 8 makes full use of shared sentences.
        epochs: passes over the windows.
        learning_rate: peak of AdamW.
        warmup_ratio: share of the steps in which it rises to the peak; it falls linearly after that.
        weight_decay: not applied to biases.
        eval_steps: steps between looks at the held-out windows and checkpoints; ``None`` for ten a run.
        held_out: about so many windows, of whole documents, are not trained on and choose the best state.
        precision: arithmetic of the LSTM.
        seed: of weights, order, negatives and dropout.
    """

    interaction: Interaction = "bilinear"
    dim: int = 300
    hidden: int = 300
    dropout: float = 0.2
    least_count: int = 2
    most_words: int = 64
    negatives: int = 1
    batch_size: int = 64
    epochs: int = 3
    learning_rate: float = 1e-3
    warmup_ratio: float = 0.05
    weight_decay: float = 0.01
    eval_steps: int | None = None
    held_out: int = 2000
    precision: Literal["float32", "bfloat16"] = "float32"
    seed: int = 42

    def __post_init__(self) -> None:
        for name in ("negatives", "batch_size", "epochs", "least_count", "most_words", "held_out"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; received {getattr(self, name)}.")


@dataclass(frozen=True)
class TrainedDiscriminator:
    """A trained network and what the held-out windows say of it.

    Attributes:
        encoder: the network at its best look, with its vocabulary.
        accuracies: share of right answers, at the threshold of a half, over all held-out examples (``"all"``), the
            centres that stood there (``"positive"``), and replacements from the same document (``"same document"``)
            and from anywhere (``"anywhere"``); a kind of which there is none is absent.
        held_out: windows held out.
        steps: done in all.
        interrupted: whether it was stopped before its end.
    """

    encoder: SentenceEncoder
    accuracies: dict[str, float]
    held_out: int
    steps: int
    interrupted: bool


def train_discriminator(
    corpus: Corpus,
    training: DiscriminatorTraining,
    checkpoints: Path,
    *,
    word_vectors: Encode | None = None,
    resume_from: Path | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> TrainedDiscriminator:
    """Train a network to tell the centre of a window from replacements.

    Words begin with the vectors that ``word_vectors`` gives them, or with random ones, and are trained further. A run
    that goes on from a checkpoint (``resume_from``) ends as one that was not stopped.

    Raises:
        ConfigError: if more windows are held out than half of all, or no word is frequent enough.
        DataError: if the corpus has no sentence to replace a centre with.
    """
    set_seed(training.seed)
    schedule = Schedule(training.batch_size, training.epochs, training.negatives, training.seed)
    learnt, held = hold_out(corpus, training.held_out, training.seed)
    encoder = _new_encoder(corpus, training, word_vectors)
    steps = Steps(corpus, learnt, schedule)
    looks = Looks(corpus, held, schedule)
    trainer = Trainer(
        model=encoder.model,
        args=_arguments(training, len(steps), checkpoints),
        train_dataset=steps,
        eval_dataset=looks,
        data_collator=Collate(encoder, corpus),
        compute_metrics=looks.accuracies,
        callbacks=list(callbacks),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=None if resume_from is None else str(resume_from))
    encoder.model.eval()
    found = trainer.evaluate()
    return TrainedDiscriminator(
        encoder=encoder,
        accuracies={name: float(found[f"eval_{name}"]) for name in looks.kinds},
        held_out=len(held),
        steps=trainer.state.global_step,
        interrupted=trainer.state.global_step < trainer.state.max_steps,
    )


def _new_encoder(corpus: Corpus, training: DiscriminatorTraining, word_vectors: Encode | None) -> SentenceEncoder:
    vocabulary = Vocabulary.count(corpus, least=training.least_count)
    initial = None if word_vectors is None else torch.from_numpy(np.array(word_vectors(vocabulary.words)))
    model = Coherence(
        len(vocabulary),
        dim=training.dim if initial is None else initial.shape[1],
        hidden=training.hidden,
        interaction=training.interaction,
        dropout=training.dropout,
    )
    if initial is not None:
        with torch.no_grad():
            model.embedding.weight[UNKNOWN + 1 :] = initial
    return SentenceEncoder(model, vocabulary, corpus.shape, training.most_words)


def _arguments(training: DiscriminatorTraining, steps: int, checkpoints: Path) -> TrainingArguments:
    every = training.eval_steps or max(1, steps // 10)
    return TrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=1,
        train_sampling_strategy="sequential",
        per_device_train_batch_size=1,  # a batch of ours
        per_device_eval_batch_size=1,
        learning_rate=training.learning_rate,
        warmup_steps=training.warmup_ratio,  # a share of the steps when below 1
        weight_decay=training.weight_decay,
        optim="adamw_torch_fused",
        bf16=training.precision == "bfloat16",
        use_cpu=not torch.cuda.is_available(),
        seed=training.seed,
        data_seed=training.seed,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",  # what is used is the probability, not the side of a threshold
        greater_is_better=False,
        logging_steps=max(1, every // 5),
        label_names=["labels"],
        remove_unused_columns=False,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
