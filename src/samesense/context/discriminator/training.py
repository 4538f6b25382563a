"""Train the discriminator on the windows of a corpus, with the trainer of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

from samesense.context.corpus.corpus import Corpus, WindowTraining, hold_out, to_learn_from
from samesense.context.discriminator.batching import Allowed, Collate, HeldOut, Schedule, Steps
from samesense.context.discriminator.encoder import SentenceEncoder
from samesense.context.discriminator.lstm import UNKNOWN, Coherence, Interaction, Vocabulary
from samesense.execution.trainer import run_trainer, training_arguments
from samesense.types import Encode


@dataclass(frozen=True, kw_only=True)
class DiscriminatorTraining(WindowTraining):
    """How a discriminator is trained; batches are of windows, and a multiple of 8 makes full use of shared sentences.

    Source: Sun et al. 2022, section 3.2.1: half of the negatives from the same document, half from anywhere.
    Differs: the paper states no optimiser, size of word vectors, share of negatives or number of epochs.
    """

    # see :class:`~samesense.context.discriminator.lstm.Coherence`, as for the next three
    interaction: Interaction = "bilinear"
    dim: int = 300  # size of a word vector; that of the initial vectors where there are some
    hidden: int = 300  # size of the LSTM in each direction
    dropout: float = 0.2  # share of the entries of word and sentence vectors that is dropped
    least_count: int = 2  # rarer words are unknown
    most_words: int = 64  # further words of a sentence are not read
    negatives: int = 1  # replacements of the centre of each window, drawn again in each epoch
    epochs: int = 3  # passes over the windows


@dataclass(frozen=True)
class TrainedDiscriminator:
    """A trained network and what the held-out windows say of it."""

    encoder: SentenceEncoder  # the network at its best checkpoint, with its vocabulary
    # share of right answers, at the threshold of a half, over all held-out examples ("all"), the centres that
    # stood there ("positive"), and replacements from the same document ("same document") and from anywhere
    # ("anywhere"); a kind without windows is absent, and all are if training was stopped
    accuracies: dict[str, float]
    held_out: int  # windows held out
    steps: int  # done in all
    interrupted: bool  # whether it was stopped before its end


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
    # Before the network is made, as its weights are drawn.
    set_seed(training.seed)
    schedule = Schedule(training.batch_size, training.epochs, training.negatives, training.seed)
    learnt, held = hold_out(corpus, training.held_out_windows, training.seed)
    allowed = to_learn_from(corpus, held)
    encoder = _new_encoder(corpus, allowed, training, word_vectors)
    steps = Steps(corpus, learnt, schedule, allowed)
    evaluated = HeldOut(corpus, held, schedule)
    trainer = Trainer(
        model=encoder.model,
        args=_arguments(training, len(steps), checkpoints),
        train_dataset=steps,
        eval_dataset=evaluated,
        data_collator=Collate(encoder, corpus),
        compute_metrics=evaluated.accuracies,
        callbacks=list(callbacks),
    )
    interrupted = run_trainer(trainer, resume_from)
    encoder.model.eval()
    # The trainer has loaded the best checkpoint at its end.
    figures = {} if interrupted else trainer.evaluate()
    return TrainedDiscriminator(
        encoder=encoder,
        accuracies={name: float(figures[f"eval_{name}"]) for name in evaluated.kinds if figures},
        held_out=len(held),
        steps=trainer.state.global_step,
        interrupted=interrupted,
    )


def _new_encoder(
    corpus: Corpus, allowed: Allowed, training: DiscriminatorTraining, word_vectors: Encode | None
) -> SentenceEncoder:
    # Without the held-out documents, whose words would leak into the vocabulary.
    vocabulary = Vocabulary.count(corpus.sentences(np.flatnonzero(allowed)), least=training.least_count)
    initial = None
    if word_vectors is not None:
        initial = torch.from_numpy(np.array(word_vectors(vocabulary.words)))
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
    return training_arguments(
        TrainingArguments,
        training,
        checkpoints,
        eval_steps=training.eval_steps or max(1, steps // 10),
        metric="eval_loss",  # what is used is the probability, not the side of a threshold
        use_cpu=not torch.cuda.is_available(),
        num_train_epochs=1,  # Steps spans all epochs
        train_sampling_strategy="sequential",  # Steps has shuffled them
        per_device_train_batch_size=1,  # a batch of ours
        per_device_eval_batch_size=1,
        label_names=["labels"],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
