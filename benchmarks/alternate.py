"""Time several ways of doing the same thing fairly: in one process, in turns, several times, as a ratio of medians."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every timed process would compile all modules again


def arguments(doc: str, **defaults: object) -> argparse.Namespace:
    """Parse the flags that all speed benchmarks share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=defaults.get("model", "default"))
    parser.add_argument("--data", default=None, help="file of labelled pairs [the shipped sample]")
    parser.add_argument("--rounds", type=int, default=defaults.get("rounds", 5))
    parser.add_argument("--steps", type=int, default=defaults.get("steps", 40))
    if "encoder" in defaults:
        parser.add_argument("--encoder", choices=("bi", "cross"), default=defaults["encoder"])
    return parser.parse_args()


def alternate(candidates: dict[str, Callable[[], float | None]], rounds: int) -> dict[str, list[float]]:
    """Return seconds of every candidate in every round; a candidate may return its own seconds. One round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for attempt in range(rounds + 1):
        for name, candidate in candidates.items():
            started = time.perf_counter()
            candidate_settings = candidate()
            if attempt:
                seconds[name].append(
                    time.perf_counter() - started if candidate_settings is None else candidate_settings
                )
    return seconds


def trainer_clock() -> Any:
    """Return a trainer callback that notes in ``started`` when its trainer is made: peers' clocks start then too."""
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        def on_init_end(self, *_: object, **__: object) -> None:
            self.started = time.perf_counter()

    return Clock()


def speed_flags() -> dict[str, dict[str, object]]:
    """Return the training arguments that sentence-transformers' docs name for speed, by a name for them.

    Without bfloat16 in the processor, ``bf16`` makes training many times slower, so that it is left out.
    """
    import torch

    from samesense.encoder.forward.precision import has_bfloat16

    fused = {"optim": "adamw_torch_fused"}
    flags: dict[str, dict[str, object]] = {"sentence-transformers, fused AdamW": dict(fused)}
    if has_bfloat16(torch.device("cpu")):
        flags["sentence-transformers, bf16 and fused AdamW"] = {"bf16": True, "use_cpu": True, **fused}
    return flags


@cache
def fastest_flags() -> tuple[str, dict[str, object]]:
    """Return the fastest of :func:`speed_flags` on this processor, with its name; a few steps of each decide.

    Some processors have bfloat16, and compute faster in float32.
    """
    flags = speed_flags()
    if len(flags) == 1:
        return next(iter(flags.items()))
    seconds = alternate({name: partial(_peer_seconds, **faster) for name, faster in flags.items()}, rounds=2)
    fastest = min(flags, key=lambda name: min(seconds[name]))
    return fastest, flags[fastest]


def arithmetic(precision: str) -> str:
    """Return what the name of a training benchmark ends in, by the precision that was the fastest."""
    if precision == "bfloat16":
        import torch

        return ", AMX" if torch.cpu.get_capabilities().get("amx_bf16") else ""
    return ", bfloat16 no faster" if len(speed_flags()) > 1 else ", no bfloat16"


def _peer_seconds(**flags: object) -> float:
    """Return the seconds of a few steps of sentence-transformers' trainer on the shipped sample."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    from samesense.data import read_pairs, sample_path
    from samesense.encoder.names import resolve

    data = read_pairs(sample_path("train"))
    columns = {"sentence1": list(data.sentences1), "sentence2": list(data.sentences2), "score": list(data.labels)}
    model = SentenceTransformer(resolve("default"), device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        settings = SentenceTransformerTrainingArguments(
            folder,
            max_steps=6,
            per_device_train_batch_size=16,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            **flags,
        )
        trainer = SentenceTransformerTrainer(
            model=model, args=settings, train_dataset=Dataset.from_dict(columns), loss=CoSENTLoss(model)
        )
        started = time.perf_counter()
        trainer.train()
        return time.perf_counter() - started


def _name(model: object) -> object:
    """Return a model's name without its folder, which only this machine has."""
    return [_name(entry) for entry in model] if isinstance(model, list) else Path(str(model)).name


def report(name: str, seconds: dict[str, list[float]], units: int, unit: str, baseline: str, **facts: object) -> None:
    """Print a Markdown table and keep the figures in ``results/NAME.jsonl``."""
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    print(f"| {name} | {unit} a second | times {baseline} (median) | lowest | highest |\n|---|---:|---:|---:|---:|")
    rows = []
    for key, values in seconds.items():
        ratios = sorted(b / v for b, v in zip(seconds[baseline], values, strict=True))
        row = {"way": key, f"{unit}_a_second": units / medians[key], "ratio": statistics.median(ratios)}
        row |= {"low": ratios[0], "high": ratios[-1]}
        rows.append(row)
        cells = (key, f"{units / medians[key]:.1f}", *(f"{row[name]:.2f}" for name in ("ratio", "low", "high")))
        print(f"| {' | '.join(cells)} |")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    machine = {"cores": os.cpu_count(), "machine": platform.machine()}
    facts |= {key: _name(value) for key, value in facts.items() if key in ("model", "teachers")}
    line = {
        "benchmark": name,
        "commit": commit,
        "machine": machine,
        "rounds": len(seconds[baseline]),
        **facts,
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "speed.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
