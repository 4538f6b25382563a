"""Pairs a second of CoSENT training, against ``SentenceTransformerTrainer`` with its defaults, alternating.

Both train the same number of steps of 16 pairs from the same state and data order with sentence-transformers' trainer;
the peer has its own CoSENTLoss and default arguments, samesense what ``samesense train`` uses. Only ``train()`` is
timed, with the checkpoint that both write at its end.

    python benchmarks/training.py --model default --data stsb.train.tsv.gz --steps 40
"""

from __future__ import annotations

import copy
import tempfile
import time
from pathlib import Path

from alternate import alternate, arguments, report


def main() -> None:
    args = arguments(__doc__, rounds=3)
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    from samesense.data import read_pairs, sample_path
    from samesense.encoder.build import build
    from samesense.recipes.runner import as_dataset
    from samesense.recipes.settings import CosentSettings
    from samesense.training.fit import fit
    from samesense.training.losses.pairs import CoSENT

    data = read_pairs(args.data or sample_path("train"))
    dataset = as_dataset(CosentSettings().targets(data).columns)
    start = build(args.model, max_seq_length=128)
    chosen: dict[str, str] = {}

    def peer() -> float:
        model = copy.deepcopy(start)
        with tempfile.TemporaryDirectory() as folder:
            settings = SentenceTransformerTrainingArguments(
                folder, max_steps=args.steps, per_device_train_batch_size=16, report_to="none", disable_tqdm=True
            )
            trainer = SentenceTransformerTrainer(
                model=model, args=settings, train_dataset=dataset, loss=CoSENTLoss(model)
            )
            started = time.perf_counter()
            trainer.train()
            return time.perf_counter() - started

    def ours(precision: str) -> float:
        model = copy.deepcopy(start)
        with tempfile.TemporaryDirectory() as folder:
            settings = CosentSettings(max_steps=args.steps, eval_steps=args.steps, precision=precision)
            outcome = fit(model, dataset, CoSENT(model), settings, Path(folder))
            chosen[precision] = outcome.precision
            return outcome.seconds

    ways = {
        "sentence-transformers defaults": peer,
        "samesense, float32": lambda: ours("float32"),
        "samesense, auto": lambda: ours("auto"),
    }
    seconds = alternate(ways, args.rounds)
    facts = {"model": args.model, "data": data.name, "steps": args.steps, "auto": chosen["auto"]}
    report("training", seconds, 16 * args.steps, "pairs", "sentence-transformers defaults", **facts)
    print("auto chose", chosen["auto"])


if __name__ == "__main__":
    main()
