"""How many pairs of a batch CoSENT's gradient moves, by batch size and temperature, before and after a training.

python reproduce/cosent/shares.py --start START --data DATA

Each set is trained on for 200 steps of 16 pairs. The cosines of its training pairs, by the start and by the trained
model, are then dealt into 500 random batches of each size. ``results/shares.jsonl`` gets a line for each set, state,
batch size and temperature; ``tables.py`` writes them into the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import samesense
from samesense.losses import cosent
from samesense.types import Scores

SETS = {
    "stsb": "en/stsb.train.tsv.gz",
    "sickr": "en/sickr.train.tsv.gz",
    "mrpc": "en/mrpc.train.tsv.gz",
    "paws": "en/paws.dev.tsv.gz",
}
SIZES = (16, 64, 256)
TEMPERATURES = (0.05, 0.1, 0.2)
BATCHES = 500
PAIRS = 2000
STEPS = 200

RESULTS = Path(__file__).parent / "results" / "shares.jsonl"


def effective_pairs(scores: torch.Tensor, labels: torch.Tensor, temperature: float) -> tuple[float, float]:
    """Return how many pairs the gradient moves, and the sum of its absolute values.

    The number is ``(sum |g|)^2 / sum g^2``: the number of pairs if all have the same share, and 1 if one has all. It is
    0 for a batch without a gradient.
    """
    scores = scores.clone().requires_grad_()
    cosent(scores, labels, temperature=temperature).backward()
    shares = scores.grad.abs()
    total = float(shares.sum())
    if total == 0:
        return 0.0, 0.0
    return total**2 / float((shares**2).sum()), total


def cosines(model: samesense.Model, pairs: list[tuple[str, str]]) -> Scores:
    """Return the cosine of each pair ``(pairs,)``."""
    first, second = (model.encode([pair[side] for pair in pairs], normalize=True) for side in (0, 1))
    return np.einsum("nd,nd->n", first, second).astype(np.float64)


def rows_of(name: str, state: str, scores: Scores, labels: Scores) -> list[dict]:
    """Return a row for each batch size and temperature."""
    rows = []
    for size in SIZES:
        random = np.random.default_rng(0)
        batches = [random.choice(len(scores), size, replace=False) for _ in range(BATCHES)]
        for temperature in TEMPERATURES:
            measured = [
                effective_pairs(torch.from_numpy(scores[batch]), torch.from_numpy(labels[batch]), temperature)
                for batch in batches
            ]
            numbers, totals = np.asarray(measured).T
            row = {"set": name, "state": state, "batch_size": size, "temperature": temperature}
            rows.append({**row, "pairs": numbers.mean(), "gradient_in_scales": totals.mean() * temperature})
    return rows


def main() -> None:
    """Train, measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", required=True, help="the untouched start point")
    parser.add_argument("--data", required=True, type=Path, help="folder with en/")
    args = parser.parse_args()
    rows = []
    for name, file in SETS.items():
        data = samesense.read(args.data / file)
        drawn = np.random.default_rng(0).choice(len(data), min(PAIRS, len(data)), replace=False)
        pairs = [(data.sentences1[row], data.sentences2[row]) for row in drawn]
        labels = np.asarray(data.labels, dtype=np.float64)[drawn]
        rows += rows_of(name, "start", cosines(samesense.load(args.start), pairs), labels)
        with tempfile.TemporaryDirectory() as folder:
            samesense.train(
                data,
                model=args.start,
                dev="none",
                output=f"{folder}/run",
                max_steps=STEPS,
                seed=1,
                report=False,
                keep_start="never",
            )
            trained = samesense.load(f"{folder}/run")
        rows += rows_of(name, f"after {STEPS} steps", cosines(trained, pairs), labels)
        sys.stdout.write(f"{name} done\n")
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
