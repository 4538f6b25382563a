"""Pairs a second of training, against sentence-transformers' trainer, in turns.

Both train the same number of steps from the same state and data order with sentence-transformers' trainer; the peer has
its own loss, with its default arguments and with those that its docs name for speed (fused AdamW, alone and with
``bf16=True`` where the processor computes in bfloat16); samesense has what ``samesense train`` uses. A
bi-encoder is trained by CoSENT, a cross-encoder by cross-entropy. Only ``train()`` is timed, with the checkpoint that
both write at its end.

    python benchmarks/training.py --model default --data stsb.train.tsv.gz --steps 40
    python benchmarks/training.py --encoder cross --data mrpc.train.tsv.gz --steps 40
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from alternate import alternate, arguments, arithmetic, report, speed_flags, trainer_clock


def main() -> None:
    args = arguments(__doc__, rounds=3, encoder="bi")
    for batch_size in (16, 64):
        compared(args, batch_size, max(4, args.steps * 16 // batch_size))


def compared(args: argparse.Namespace, batch_size: int, steps: int) -> None:
    """Time every way at one batch size, and report it."""
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    from samesense.data import read_pairs, sample_path
    from samesense.encoder.assembly.build import build
    from samesense.encoder.assembly.build_cross import build_cross
    from samesense.losses.cosent import CoSENT
    from samesense.losses.cross_entropy import CrossEntropy
    from samesense.recipes.cosent.settings import CosentSettings
    from samesense.training.dataset import as_dataset
    from samesense.training.fit import fit

    cross = args.encoder == "cross"
    theirs: tuple[Any, Any, Any] = (SentenceTransformerTrainer, SentenceTransformerTrainingArguments, CoSENTLoss)
    if cross:
        theirs = CrossEncoderTrainer, CrossEncoderTrainingArguments, BinaryCrossEntropyLoss
    trainer_of, settings_of, loss_of = theirs
    data = read_pairs(args.data or sample_path("train"))
    method = CosentSettings(encoder="cross", loss="cross-entropy") if cross else CosentSettings()
    dataset = as_dataset(method.targets(data).columns)
    start = (build_cross if cross else build)(args.model, max_seq_length=128)
    chosen: dict[str, str] = {}

    def peer(**faster: object) -> float:
        model = copy.deepcopy(start)
        with tempfile.TemporaryDirectory() as folder:
            settings = settings_of(
                folder,
                max_steps=steps,
                per_device_train_batch_size=batch_size,
                report_to="none",
                disable_tqdm=True,
                **faster,
            )
            trainer = trainer_of(model=model, args=settings, train_dataset=dataset, loss=loss_of(model))
            started = time.perf_counter()
            trainer.train()
            return time.perf_counter() - started

    def ours(precision: str) -> float:
        model = copy.deepcopy(start)
        with tempfile.TemporaryDirectory() as folder:
            changes = {"max_steps": steps, "eval_steps": steps, "batch_size": batch_size, "precision": precision}
            loss = CrossEntropy(model) if cross else CoSENT(model)
            clock = trainer_clock()
            outcome = fit(model, dataset, loss, method.model_copy(update=changes), Path(folder), callbacks=[clock])
            chosen[precision] = outcome.precision
            return time.perf_counter() - clock.started

    ways = {
        "sentence-transformers defaults": peer,
        **{name: partial(peer, **flags) for name, flags in speed_flags().items()},
        "samesense, float32": lambda: ours("float32"),
        "samesense, auto": lambda: ours("auto"),
    }
    seconds = alternate(ways, args.rounds)
    facts = {"model": args.model, "data": data.name, "batch_size": batch_size, "steps": steps}
    facts["auto"] = chosen["auto"]
    name = f"training{' of a cross-encoder' if cross else ''}, {batch_size} pairs a step"
    name += arithmetic(chosen["auto"])
    report(name, seconds, batch_size * steps, "pairs", "sentence-transformers defaults", **facts)
    print("auto chose", chosen["auto"])


if __name__ == "__main__":
    main()
