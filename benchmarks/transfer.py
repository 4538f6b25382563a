"""The transfer suite's classifier against SentEval's protocol, fit by fit, on the same embeddings.

    python benchmarks/transfer.py --data FOLDER_WITH_mr.tsv.gz --model MODEL --tasks mr,mrpc --outer 10

"together" is the suite's classifier, Adam with early stopping for all fits at once.

SentEval's side is ``tests/references/senteval_probe.py``, written from its description. Where it does not run all
outer folds (``--outer``), its time is scaled to all of them and accuracies are compared on those that it ran. Seconds
are of the processor, all threads added, so that other work on the machine does not enter; encoding is not in them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
RESULTS = Path(__file__).parent / "results" / "transfer.jsonl"
PARTS = {
    "mr": ("",),
    "cr": ("",),
    "subj": ("",),
    "mpqa": ("",),
    "sst2": ("train", "dev", "test"),
    "trec": ("train", "test"),
    "mrpc": ("train", "test"),
}
FOLDS = 10


def load(folder: Path, task: str, encode: Callable) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return features and classes of each part."""
    from samesense.data import read_pairs
    from samesense.data.benchmarks.sentences import read_sentences

    splits = []
    for split in PARTS[task]:
        path = folder / f"{task}{split and '.' + split}.tsv.gz"
        if task == "mrpc":
            data = read_pairs(path)
            u = encode(data.sentences1)
            v = encode(data.sentences2)
            splits.append((np.concatenate([abs(u - v), u * v], axis=1), np.array(data.labels, dtype=np.intp)))
        else:
            rows = read_sentences(path, keep_empty=True)
            splits.append((encode(rows.texts), np.array(rows.labels, dtype=np.intp)))
    return splits


def ours(splits: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """Return the accuracy of each outer fold, or of the test part."""
    from samesense.evaluation.classifier import cross_predict, nested_folds, split_folds

    x, y = (np.concatenate(side) for side in zip(*splits, strict=True))
    sizes = [len(labels) for _, labels in splits]
    if len(splits) == 1:
        folds = nested_folds(y, FOLDS)
    else:
        folds = split_folds(y, (sizes[0], sizes[1] if len(sizes) == 3 else 0, sizes[-1]), FOLDS)
    predicted, _ = cross_predict(x, y, folds)
    return [100 * float((predicted[fold.test] == y[fold.test]).mean()) for fold in folds]


def stratified(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test rows of each of SentEval's folds."""
    from sklearn.model_selection import StratifiedKFold

    from tests.references.senteval_probe import SEED

    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(y, y))


def by_folds(x: np.ndarray, y: np.ndarray) -> Any:
    """Return SentEval's classifier: its penalty is chosen by folds of the rows, then it learns from all of them."""
    from tests.references.senteval_probe import GRID, Classifier

    dim = x.shape[1]
    classes = int(y.max()) + 1
    splits = stratified(y)
    scores = [
        np.mean([Classifier(dim, classes, l2).fit(x[learnt], y[learnt], (x[held], y[held])) for learnt, held in splits])
        for l2 in GRID
    ]
    final = Classifier(dim, classes, GRID[int(np.argmax(np.round(100 * np.array(scores), 2)))])
    final.fit(x, y)
    return final


def theirs(splits: Sequence[tuple[np.ndarray, np.ndarray]], outer: int) -> list[float]:
    """Return the same by SentEval's protocol; of nested folds the first ``outer``."""
    from tests.references.senteval_probe import by_dev

    (x, y), test = splits[0], splits[-1]
    if len(splits) == 1:
        return [100 * by_folds(x[learnt], y[learnt]).score(x[held], y[held]) for learnt, held in stratified(y)[:outer]]
    final = by_dev(x, y, splits[1])[0] if len(splits) == 3 else by_folds(x, y)
    return [100 * final.score(*test)]


def timed(function: Callable[..., list[float]], *args: object) -> tuple[list[float], float]:
    started = time.process_time()
    return function(*args), time.process_time() - started


def compare(task: str, splits: Sequence[tuple[np.ndarray, np.ndarray]], outer: int) -> dict:
    small = [(x[:: max(1, len(x) // 200)], y[:: max(1, len(x) // 200)]) for x, y in splits]
    ours(small)  # warm-up: imports on first use are not timed, here and below
    import_module("tests.references.senteval_probe")
    import_module("sklearn.model_selection")
    reference, slow = timed(theirs, splits, outer)
    row: dict = {"task": task, "rows": [len(labels) for _, labels in splits], "features": splits[0][0].shape[1]}
    accuracies, seconds = timed(ours, splits)
    scaled = slow * len(accuracies) / len(reference)
    row["senteval"] = {"accuracy": statistics.mean(reference), "folds": len(reference), "seconds": scaled}
    row["together"] = {
        "accuracy": statistics.mean(accuracies),
        "same_folds": statistics.mean(accuracies[: len(reference)]),
        "seconds": seconds,
        "times": scaled / seconds,
    }
    cells = [task, f"{row['together']['accuracy']:.2f}", f"{row['together']['same_folds']:.2f}"]
    cells += [f"{row['senteval']['accuracy']:.2f}", f"{len(reference)} of {len(accuracies)}", f"{seconds:.1f}"]
    print("| " + " | ".join([*cells, f"{scaled:.0f}", f"{scaled / seconds:.0f}"]) + " |", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of mr.tsv.gz, mrpc.train.tsv.gz and so on")
    parser.add_argument("--model", default="default")
    parser.add_argument("--tasks", default="mr,mrpc", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--outer", type=int, default=FOLDS, help="outer folds that SentEval's side runs")
    args = parser.parse_args()
    import torch

    from samesense.encoder.assembly.build import build
    from samesense.encoder.encode import as_encode

    torch.set_num_threads(1)
    encode = as_encode(build(args.model), precision="float32")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    print("| task | all folds | same folds | SentEval | its folds | seconds | its seconds | times |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    RESULTS.parent.mkdir(exist_ok=True)
    for task in args.tasks.split(","):
        row = compare(task, load(args.data, task, encode), args.outer)
        line = {"benchmark": "transfer", "commit": commit, "model": Path(args.model).name, **row}
        with RESULTS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
