"""Speed of training without labels, against the usual script for the same job, in turns.

SimCSE against sentence-transformers' (each sentence beside itself, ``MultipleNegativesRankingLoss``), distillation
against its ``MSELoss`` on vectors of the teacher, and pretraining against transformers' trainer with its collator for
masked language models on the same blocks. Each peer is timed with its default arguments and with those that make it
fastest on this processor; samesense has what its commands take. Both train as many steps from the same state; only
``train()`` is timed. The teacher is the model itself, whose vectors are made before, and its student has three layers.

    python benchmarks/without_labels.py --model raw-bert-l6 --documents wikitext2.jsonl.gz --steps 16
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from alternate import alternate, fastest_flags, report, trainer_clock

METHODS = ("simcse", "distil", "pretrain")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a masked language model")
    parser.add_argument("--documents", required=True)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    for method in args.methods:
        with tempfile.TemporaryDirectory() as folder:
            peer, ours, units, unit = globals()[method](args, Path(folder))
            best, flags = fastest_flags()
            usual = best.partition(",")[0] if method != "pretrain" else "transformers"
            ways = {
                f"{usual} defaults": peer,
                f"{usual},{best.partition(',')[2]}": lambda peer=peer, flags=flags: peer(**flags),
                f"samesense {method}": ours,
            }
            seconds = alternate(ways, args.rounds)
        name = f"{method}{'' if 'bf16' in flags else ', no bfloat16'}"
        report(name, seconds, units, unit, next(iter(ways)), model=args.model, steps=args.steps)


Timed = Callable[..., float]


def peer_of(start: Any, args: argparse.Namespace, columns: dict[str, Any], loss: Callable[[Any], Any]) -> Timed:
    """Return a function that trains by sentence-transformers' trainer and returns its seconds."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    dataset = Dataset.from_dict(columns)

    def peer(**faster: object) -> float:
        model = copy.deepcopy(start)
        with tempfile.TemporaryDirectory() as folder:
            settings = SentenceTransformerTrainingArguments(
                folder,
                max_steps=args.steps,
                per_device_train_batch_size=64,
                report_to="none",
                disable_tqdm=True,
                **faster,
            )
            return timed(
                SentenceTransformerTrainer(model=model, args=settings, train_dataset=dataset, loss=loss(model))
            )

    return peer


def timed(trainer: Any) -> float:
    started = time.perf_counter()
    trainer.train()
    return time.perf_counter() - started


def fitted(start: Any, args: argparse.Namespace, settings: Any, dataset: Any, loss: Callable[[Any], Any]) -> Timed:
    """Return a function that trains as the commands do and returns its seconds."""
    from samesense.training.fit import fit

    limited = settings.model_copy(update={"max_steps": args.steps, "eval_steps": args.steps, "batch_size": 64})

    def ours() -> float:
        model = copy.deepcopy(start)
        with tempfile.TemporaryDirectory() as folder:
            clock = trainer_clock()
            fit(model, dataset, loss(model), limited, Path(folder), callbacks=[clock])
            return time.perf_counter() - clock.started

    return ours


def sentences(args: argparse.Namespace) -> Any:
    """Return as many sentences as training needs."""
    from samesense.data.sentences import read_unlabelled

    read = read_unlabelled([args.documents])
    return read.take(range(64 * args.steps))


def simcse(args: argparse.Namespace, folder: Path) -> tuple[Timed, Timed, int, str]:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from samesense.encoder.assembly.build import build
    from samesense.recipes.unsupervised.settings import SimcseSettings
    from samesense.recipes.unsupervised.simcse import loss_of
    from samesense.training.dataset import as_dataset

    read = sentences(args)
    settings = SimcseSettings(pooling="mean")
    start = build(args.model, max_seq_length=settings.bare_length)
    peer = peer_of(start, args, {"anchor": read.texts, "positive": read.texts}, MultipleNegativesRankingLoss)
    dataset = as_dataset({"sentence": read.texts})
    ours = fitted(start, args, settings, dataset, lambda model: loss_of(model, settings, {}))
    return peer, ours, 64 * args.steps, "sentences"


def distil(args: argparse.Namespace, folder: Path) -> tuple[Timed, Timed, int, str]:
    from sentence_transformers.sentence_transformer.losses import MSELoss

    from samesense.encoder.assembly.build import build
    from samesense.encoder.assembly.students import first_layers
    from samesense.recipes.distil.recipe import loss_of
    from samesense.recipes.distil.settings import DistilSettings
    from samesense.recipes.teachers import open_teacher
    from samesense.recipes.unsupervised.rankcse import columns
    from samesense.training.dataset import as_dataset
    from samesense.training.teachers import teacher_store

    read = sentences(args)
    settings = DistilSettings(teacher=(args.model,))
    store = teacher_store(open_teacher(args.model), read, folder)
    start = first_layers(build(args.model, max_seq_length=settings.max_seq_length), 3)
    peer = peer_of(start, args, {"sentence": read.texts, "label": vectors(store)}, MSELoss)
    dataset = as_dataset(columns(read, settings))
    ours = fitted(start, args, settings, dataset, lambda model: loss_of(model, settings, [store]))
    return peer, ours, 64 * args.steps, "sentences"


def vectors(store: Any) -> Any:
    import numpy as np

    return store.rows(np.arange(len(store))).numpy()


def pretrain(args: argparse.Namespace, folder: Path) -> tuple[Timed, Timed, int, str]:
    import torch
    from transformers import (
        AutoModelForMaskedLM,
        AutoTokenizer,
        DataCollatorForLanguageModeling,
        Trainer,
        TrainingArguments,
    )

    from samesense.encoder.forward.precision import inference_precision
    from samesense.recipes.pretrain import recipe
    from samesense.recipes.pretrain.settings import PretrainSettings
    from samesense.training.masked_blocks import BlockMaker
    from samesense.training.masked_lm import open_masked_lm

    precision = inference_precision("auto", torch.device("cpu"))
    settings = PretrainSettings(model=args.model, max_steps=args.steps, eval_steps=args.steps, precision=precision)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    maker = BlockMaker(tokenizer, settings.max_seq_length, settings.masked)
    blocks = [block for document in recipe._cut_documents(args.documents, settings, maker) for block in document]
    blocks = blocks[: args.steps * settings.batch_size]

    def peer(**faster: object) -> float:
        model = AutoModelForMaskedLM.from_pretrained(args.model, dtype=torch.float32)
        arguments = TrainingArguments(
            str(folder / "peer"),
            max_steps=args.steps,
            per_device_train_batch_size=settings.batch_size,
            report_to="none",
            disable_tqdm=True,
            **faster,
        )
        collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=settings.masked)
        examples = [{"input_ids": block} for block in blocks]
        return timed(Trainer(model=model, args=arguments, train_dataset=examples, data_collator=collator))

    def ours() -> float:
        model, _ = open_masked_lm(args.model)
        with tempfile.TemporaryDirectory() as folder:
            return timed(recipe._build_trainer(model, maker, blocks, blocks[:1], settings, Path(folder), ()))

    return peer, ours, args.steps * settings.batch_size, "blocks"


if __name__ == "__main__":
    main()
