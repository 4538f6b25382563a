"""Peak memory and time of one training step: many examples under a token budget against few without one.

    python benchmarks/memory.py --model default --data stsb.train.tsv.gz --objective cosent

Objectives: cosent (pairs); multi_positive (an example is an anchor with one positive and one negative); rank_cse (an
example is a sentence, embedded in two views, with a teacher of 384 dimensions).

Each row is a separate process, so that one peak does not hide another, and takes several steps on different examples,
as training does (the library under torch caches compiled kernels for every new input shape: up to 300 MiB over time,
with or without a budget). Memory is the growth of the resident set over the loaded model with its gradients; time is
the median step's forward and backward, without the first.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROWS = ((64, None, 24), (64, 512, 24), (1024, 512, 4), (4096, 512, 2))
"""Examples in a step, token budget, steps."""


def resident() -> int:
    """Return the resident set in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 2**20


def one(args: argparse.Namespace, examples: int, budget: int | None, steps: int) -> dict[str, float]:
    import torch

    from samesense.data import read_pairs, sample_path
    from samesense.encoder.assembly.build import build
    from samesense.encoder.forward.dropout import use_cheap_dropout
    from samesense.encoder.forward.precision import autocast, inference_precision
    from samesense.losses.cosent import CoSENT
    from samesense.losses.multi_positive import MultiPositive
    from samesense.losses.rank_cse import RankCSE

    data = read_pairs(args.data or sample_path("train"))
    sides = {"cosent": [data.sentences1, data.sentences2], "rank_cse": [data.sentences1]}.get(
        args.objective, [data.sentences1, data.sentences2, data.sentences2[::-1]]
    )
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0)).tolist()
    batches = [[order[i % len(order)] for i in range(n * examples, (n + 1) * examples)] for n in range(steps)]
    model = build(args.model, max_seq_length=128, device="cpu")
    use_cheap_dropout(model)
    model.train()
    precision = inference_precision("auto", model.device)
    teacher = torch.randn(len(data), 384)

    objective = {
        "cosent": lambda: CoSENT(model, mini_batch_num_tokens=budget),
        "multi_positive": lambda: MultiPositive(model, positives=1, mini_batch_num_tokens=budget),
        "rank_cse": lambda: RankCSE(model, teachers=[teacher.__getitem__], mini_batch_num_tokens=budget),
    }[args.objective]()

    def tokens(rows: list[int]) -> list[dict]:
        return [model.preprocess([side[i] for i in rows]) for side in sides]

    def labels(rows: list[int]) -> torch.Tensor | None:
        if args.objective == "multi_positive":
            return None
        return torch.tensor(rows if args.objective == "rank_cse" else [data.labels[i] for i in rows])

    def step(columns: list[dict], rows: list[int]) -> None:
        with autocast(model.device, precision):
            loss = objective(columns, labels(rows))
        loss.backward()

    step(tokens(order[:4]), order[:4])
    before = resident()
    peak = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    seconds = []
    for rows in batches:
        columns = tokens(rows)
        started = time.perf_counter()
        step(columns, rows)
        seconds.append(time.perf_counter() - started)
    done.set()
    watcher.join()
    return {"mib": peak[0] - before, "seconds": statistics.median(seconds[1:]), "precision": precision}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", default=None)
    parser.add_argument("--objective", choices=("cosent", "multi_positive", "rank_cse"), default="cosent")
    parser.add_argument("--row", type=int, default=None)
    args = parser.parse_args()
    if args.row is not None:
        print(json.dumps(one(args, *ROWS[args.row])))
        return
    print("| examples in a step | token budget | MiB added at the peak | times the first row | ms an example |")
    print("|---:|---:|---:|---:|---:|")
    ratios = []
    for i, (examples, budget, _) in enumerate(ROWS):
        command = [sys.executable, __file__, "--model", args.model, "--objective", args.objective, "--row", str(i)]
        command += ["--data", args.data] if args.data else []
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1]) | {"examples": examples, "mini_batch_num_tokens": budget}
        ratios.append(row)
        each = 1000 * row["seconds"] / examples
        print(
            f"| {examples} | {budget or '-'} | {row['mib']} | {row['mib'] / ratios[0]['mib']:.2f} | {each:.1f} |",
            flush=True,
        )
    line = {"benchmark": "memory", "objective": args.objective, "model": Path(args.model).name, "rows": ratios}
    with (Path(__file__).parent / "results" / "memory.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
