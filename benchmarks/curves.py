"""Pairs a second and peak memory of training, by batch size, length and model, beside sentence-transformers.

    python benchmarks/curves.py --data stsb.train.tsv.gz --models wordllama=STATIC 3=L3 6=default 12=L12

Each point is a separate process. sentence-transformers' trainer has the flags that make it fastest on this processor,
samesense the settings of ``samesense train``; both train by CoSENT. Speed is that of the median step, without the
first; memory is the peak that training adds to the process with the model loaded. To compare lengths, sentences are
joined until they have enough tokens. Points that are in the results are not measured again. A point without figures
ran out of memory. ``docs/pictures.py`` draws the result.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from alternate import RESULTS, fastest_flags
from memory import resident

BATCH_SIZES = (16, 64, 256, 1024)
LENGTHS = (16, 64, 256)
USUAL = 16
WAYS = ("sentence-transformers", "samesense")


def longer(texts: list[str], model: Any, length: int) -> list[str]:
    """Return each text joined with the texts after it until it has at least ``length`` tokens."""
    counts = [len(ids) for ids in model.tokenizer(texts, add_special_tokens=False)["input_ids"]]
    lengthened = []
    for first in range(len(texts)):
        sentences = []
        tokens = 0
        position = first
        while tokens < length:
            sentences.append(texts[position % len(texts)])
            tokens += counts[position % len(texts)]
            position += 1
        lengthened.append(" ".join(sentences))
    return lengthened


def measure_point(args: argparse.Namespace) -> dict[str, float]:
    """Train a few steps in this process."""
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss
    from transformers import TrainerCallback

    from samesense.data import read_pairs
    from samesense.encoder.assembly.build import build
    from samesense.execution.threads import keep_freed_memory
    from samesense.losses.cosent import CoSENT
    from samesense.recipes.cosent.settings import CosentSettings
    from samesense.training.dataset import as_dataset
    from samesense.training.fit import fit

    class Clock(TrainerCallback):
        """Records when each step ended."""

        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *_: Any, **kwargs: Any) -> None:
            self.ends.append(time.perf_counter())

    data = read_pairs(args.data)
    method = CosentSettings()
    dataset = as_dataset(method.targets(data).columns)
    model = build(args.model, max_seq_length=args.length)
    if args.length:
        for side in dataset.column_names[:2]:
            texts = longer(dataset[side][:500], model, args.length)
            dataset = dataset.select(range(len(texts))).remove_columns(side).add_column(side, texts)
        dataset = dataset.select_columns(["sentence1", "sentence2", "label"])
    clock = Clock()
    peak = [0]
    done = threading.Event()
    before = resident()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    with tempfile.TemporaryDirectory() as folder:
        if args.way == "samesense":
            keep_freed_memory()
            changes = {"max_steps": args.steps, "eval_steps": args.steps, "batch_size": args.batch_size}
            fit(model, dataset, CoSENT(model), method.model_copy(update=changes), Path(folder), callbacks=[clock])
        else:
            settings = SentenceTransformerTrainingArguments(
                folder,
                max_steps=args.steps,
                per_device_train_batch_size=args.batch_size,
                report_to="none",
                disable_tqdm=True,
                save_strategy="no",
                **fastest_flags()[1],
            )
            SentenceTransformerTrainer(
                model=model, args=settings, train_dataset=dataset, loss=CoSENTLoss(model), callbacks=[clock]
            ).train()
    done.set()
    watcher.join()
    seconds = statistics.median(
        after - before_step for before_step, after in zip(clock.ends, clock.ends[1:], strict=False)
    )
    return {"pairs_a_second": args.batch_size / seconds, "mib": peak[0] - before}


def steps_for(batch_size: int) -> int:
    """Return fewer steps for larger batches, whose steps take longer."""
    if batch_size > 256:
        return 3
    return 4 if batch_size > 16 else 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--models", nargs="+", default=["6=default"], metavar="NAME=MODEL", help="the usual one: 6")
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--model")
    parser.add_argument("--batch-size", type=int, default=USUAL)
    parser.add_argument("--length", type=int)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args()
    if args.way:
        print(json.dumps(measure_point(args)))
        return
    models = dict(entry.partition("=")[::2] for entry in args.models)
    points: list[dict[str, Any]] = [{"of": "batch size", "at": size, "batch_size": size} for size in BATCH_SIZES]
    points += [{"of": "tokens a text", "at": length, "length": length} for length in LENGTHS]
    points += [{"of": "layers", "at": name, "model": model} for name, model in models.items()]
    log = RESULTS / "curves.jsonl"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    there = {(line["of"], line["at"], line["way"]) for line in lines}
    for point in points:
        usual = {"model": models["6"], "batch_size": USUAL, "length": None}
        options = {**usual, **{name: value for name, value in point.items() if name in usual}}
        options["steps"] = steps_for(options["batch_size"])
        flags = [
            word for name, value in options.items() if value for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        for way in WAYS:
            if (point["of"], point["at"], way) in there:
                continue
            words = [sys.executable, __file__, "--data", args.data, "--way", way, *flags]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode not in (0, -signal.SIGKILL):
                raise SystemExit(done.stderr)
            figures = json.loads(done.stdout.splitlines()[-1]) if not done.returncode else {}  # killed: out of memory
            line = json.dumps({"of": point["of"], "at": point["at"], "way": way, **figures})
            print(line, flush=True)
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


if __name__ == "__main__":
    main()
