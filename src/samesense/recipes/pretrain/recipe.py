"""Pretraining: a masked language model goes on reading, in the documents of one's own domain.

    samesense pretrain documents/ --model FOLDER --output runs/domain
    samesense train pairs.tsv --model runs/domain --output runs/mine

The folder is that of every run: ``model/`` is an encoder that every reader opens, with the head of the masked language
model in its file, so that it can be pretrained further, and ``train --mlm-weight`` finds it.

Source: Devlin et al. 2019 (BERT), section 3.1; Gururangan et al. 2020, "Don't stop pretraining", for going on with
    one's own domain; BehnamGhader et al. 2024 (LLM2Vec), section 2, for decoders.
Differs: no prediction of the next sentence; one pass at a constant share of masked tokens.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from sentence_transformers import SentenceTransformer
from transformers import PrinterCallback, TrainerCallback, TrainingArguments, set_seed

from samesense.data.documents import read_documents
from samesense.encoder.assembly.build import build
from samesense.encoder.forward.packing import cheap_dropout_on_cpu
from samesense.encoder.forward.positions import position_limit
from samesense.encoder.forward.precision import inference_precision
from samesense.encoder.forward.routes import refuse_routes
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError
from samesense.execution.progress import progress_bar, stage
from samesense.execution.ranks import world_size
from samesense.execution.timing import Laps
from samesense.execution.trainer import StopOnInterrupt, newest_checkpoint, run_trainer, training_arguments
from samesense.execution.trainer_fields import check_trainer
from samesense.hashes import source_hash
from samesense.losses.mlm import transformer_source
from samesense.places import check_outside
from samesense.recipes.pretrain.settings import PretrainSettings
from samesense.recipes.run import run_folder
from samesense.recipes.run.earlier_run import CHECKPOINTS
from samesense.recipes.run.training_run import TrainingRun
from samesense.results.results import Results
from samesense.training import manifest
from samesense.training.callbacks import History, Patience, Progress
from samesense.training.fit import TrainOutput
from samesense.training.masked_blocks import BlockMaker, MaskedBlocks, hold_out_blocks
from samesense.training.masked_lm import MaskedLm, MaskedLmTrainer, MaskedLoss, is_decoder, open_masked_lm

logger = logging.getLogger(__name__)

PERPLEXITY = "perplexity"
"""Key in the manifest: of the start and of what was kept, on the text that was held out."""

NEW_HEAD = "new_head"
"""Key in the manifest: whether the start had no head that guesses words."""


@dataclass(frozen=True, repr=False)
class Pretraining(TrainingRun):
    """What a run leaves: how it was trained, and the perplexity of held-out text before and after, unless stopped."""

    before: float | None = None
    after: float | None = None
    new_head: bool = False  # whether the start had none, so that before says nothing of it

    def conclusion(self) -> list[str]:
        """Return in words what was gained over the start."""
        if self.before is None or self.after is None:
            return []
        before = "" if self.new_head else f"{self.before:.4g} before, "
        return [f"perplexity of the masked tokens of held-out text: {before}{self.after:.4g} after"]


def run(
    sources: Sequence[str],
    settings: PretrainSettings,
    output: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
) -> Pretraining:
    """Train on the documents, keep the state of lowest loss on what is held out, and leave ``output/model``.

    For sources see :func:`~samesense.data.documents.read_documents`.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where the run could not end well.
    """
    if world_size() > 1:
        raise ConfigError("Pretraining runs in one process; start it without torchrun.")
    laps = Laps()
    sources = list(map(str, sources))
    check_outside(sources, output)
    check_trainer(TrainingArguments, settings)
    if not resume:
        run_folder.check_new(output, overwrite=overwrite)
    set_seed(settings.seed)  # of a new head
    with stage(f"loading {settings.model}"):
        start = _open_start(settings)
    encoder = start.encoder
    model = start.language_model.model
    maker = BlockMaker(encoder.tokenizer, settings.max_seq_length, settings.masked, decoder=is_decoder(model.config))
    blocks = {source: _cut_documents(source, settings, maker) for source in sources}
    data = {
        name: {"source": name, "sha256": source_hash(name), "rows": len(documents)}
        for name, documents in blocks.items()
    }
    record = manifest.describe(run_folder.PRETRAIN, settings.model_dump(), data)
    run_folder.check(output, record, resume=resume, overwrite=overwrite)
    settings = settings.model_copy(update={"precision": inference_precision(settings.precision, encoder.device)})
    learnt, held = _split_blocks([document for documents in blocks.values() for document in documents], settings)
    record[NEW_HEAD] = start.language_model.has_new_head
    if record[NEW_HEAD]:
        logger.info("the head is new, as the file of the model has none")
    with run_folder.locked(output), run_folder.cleared_if_refused(output, resume=resume):
        before = run_folder.check(
            output, record, resume=resume, overwrite=overwrite
        )  # another run may have ended since
        record = run_folder.begin(output, record, before)
        laps.count("loading")
        finished = run_folder.finished_training(output, before)
        if finished is not None:
            return _finish(output, record, finished, laps)
        trainer = _build_trainer(model.to(encoder.device), maker, learnt, held, settings, output, callbacks)
        start_loss = trainer.evaluate()["eval_loss"]
        laps.count("evaluation")
        if not record[NEW_HEAD]:
            logger.info(f"before: perplexity {math.exp(start_loss):.4g} of the masked tokens held out")
        newest = newest_checkpoint(output / CHECKPOINTS) if resume else None
        trained = _train(trainer, model, newest, settings, laps)
        best = trainer.state.best_metric
        if not trained.interrupted and best is not None:
            record[PERPLEXITY] = {"before": math.exp(start_loss), "after": math.exp(best)}
            # The language model with its head, so that the saved one can be pretrained further.
            encoder[0].model = model
            with stage("saving the model"):
                run_folder.save_model(output, record, trained, partial(save, encoder))
        return _finish(output, record, trained, laps)


class _Start(NamedTuple):
    """The start model twice: as an encoder, and as a language model with a head that predicts tokens."""

    encoder: SentenceTransformer
    language_model: MaskedLm


def _open_start(settings: PretrainSettings) -> _Start:
    """Open the start model; ConfigError or ModelError if it cannot be pretrained by the settings."""
    encoder = build(settings.model, device="cuda" if torch.cuda.is_available() else "cpu")
    refuse_routes(encoder, "Pretraining")
    most = position_limit(encoder)
    if settings.max_seq_length > most:
        raise ConfigError(
            f"`max_seq_length` of {settings.model} is {most} or less, as many positions as it has; received "
            f"{settings.max_seq_length}."
        )
    return _Start(encoder, open_masked_lm(_transformer_of(encoder, settings.model), settings.layers))


def _split_blocks(
    documents: list[list[list[int]]], settings: PretrainSettings
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the blocks to learn from and those held out, and say how many there are."""
    learnt, held = hold_out_blocks(documents, settings.held_out, settings.seed)
    held_out = f"{len(held):,} held out"
    if _holds_whole_documents(documents, held):
        held_out += ", of documents of their own"
    logger.info(
        f"data: {len(documents):,} documents, {len(learnt):,} blocks of at most {settings.max_seq_length} tokens, and "
        f"{held_out}"
    )
    return learnt, held


def _holds_whole_documents(documents: Sequence[Sequence[list[int]]], held: Sequence[list[int]]) -> bool:
    """Return whether each document is held out as a whole or not at all."""
    # By identity, as two documents may hold equal blocks.
    chosen = set(map(id, held))
    return all(len({id(block) in chosen for block in document}) == 1 for document in documents)


def _train(
    trainer: MaskedLmTrainer, model: Any, newest: Path | None, settings: PretrainSettings, laps: Laps
) -> TrainOutput:
    """Train from the newest checkpoint, or from the start, until the end or Ctrl-C; return how that went."""
    stop = StopOnInterrupt()
    with cheap_dropout_on_cpu(model):
        # Early stopping ends a training before its last step too, and interrupts nothing.
        interrupted = run_trainer(trainer, newest, stop) and stop.interrupted
    laps.count("training")
    return TrainOutput(
        steps=trainer.state.global_step,
        seconds=laps.seconds["training"],
        precision=settings.precision,
        best_step=trainer.state.best_global_step,
        interrupted=interrupted,
    )


def _finish(output: Path, record: dict[str, Any], trained: TrainOutput, laps: Laps) -> Pretraining:
    """Write down how a run ended whose model, if it was not stopped, is in its folder."""
    done = Pretraining(
        output, trained, Results(), laps.seconds, **record.get(PERPLEXITY, {}), new_head=record[NEW_HEAD]
    )
    conclusion = "".join(f"{line[0].upper()}{line[1:]}." for line in done.conclusion())
    run_folder.end(output, record, trained, {run_folder.SECTIONS: {"Evaluation": conclusion} if conclusion else {}})
    laps.count("saving")
    return done


def _transformer_of(encoder: SentenceTransformer, name: str) -> str:
    """Return the folder or hub name from which the transformer of an encoder was loaded."""
    source = transformer_source(encoder)
    if not source:
        raise ModelError(f"{name} has no transformer to pretrain: it is static. Give a transformer.")
    return source


def _cut_documents(source: str, settings: PretrainSettings, maker: BlockMaker) -> list[list[list[int]]]:
    """Return the blocks of each document that has any."""
    documents = []
    with progress_bar("tokenise", "document") as bar:
        for document in read_documents(source, language=settings.language, paragraphs=settings.paragraphs):
            documents.append(list(maker.cut_blocks(document)))
            bar.update()
    return [blocks for blocks in documents if blocks]


def _build_trainer(
    model: Any,
    maker: BlockMaker,
    learnt: list[list[int]],
    held: list[list[int]],
    settings: PretrainSettings,
    output: Path,
    callbacks: Sequence[TrainerCallback],
) -> MaskedLmTrainer:
    set_seed(settings.seed)
    steps = settings.steps(len(learnt))
    loss = MaskedLoss()
    arguments = training_arguments(
        TrainingArguments,
        settings,
        output / CHECKPOINTS,
        eval_steps=settings.steps_between_evaluations(len(learnt)),
        metric="eval_loss",
        use_cpu=not torch.cuda.is_available(),
        max_steps=steps,
        lr_scheduler_type=settings.lr_scheduler_type,
        max_grad_norm=settings.max_grad_norm,
        train_sampling_strategy="sequential",  # the order is that of the examples
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        label_names=["labels"],
        # The trainer would drop what the model's forward does not name, and the loss takes it.
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    run_callbacks: list[TrainerCallback] = [Progress(loss), History(output / run_folder.HISTORY)]
    if settings.early_stopping_patience is not None:
        run_callbacks.append(Patience(settings.early_stopping_patience))
    trainer = MaskedLmTrainer(
        loss,
        model=model,
        args=arguments,
        # All passes as one: the data set itself shuffles and masks each of them differently.
        train_dataset=MaskedBlocks(learnt, maker, steps * settings.batch_size, (settings.seed, 1)),
        eval_dataset=MaskedBlocks(held, maker, len(held), (settings.seed, 2), shuffled=False),
        data_collator=maker.collate,
        callbacks=[*run_callbacks, *callbacks],
    )
    # It would print the evaluation of the start, which comes before run_trainer removes it.
    trainer.remove_callback(PrinterCallback)
    return trainer
