"""Anchors a second and peak memory of SupMPN at the paper's batch: filled up, equal sentences encoded once, ragged.

    python benchmarks/supmpn.py --model default --data lingnli.train.tsv.gz --steps 3

Every way trains on the same anchors, batch 256 (--batch) with five places for positives and five for negatives, under
the recipe's token budget. "padded" encodes each place for itself; "padded, once" encodes equal sentences of a batch
once, copies of an anchor apart, as the recipe does; "ragged" leaves places without a partner empty. The ways alternate
in one process; peak memory, which a process can be asked for once, is that of a process for each way: what the steps
add to the resident set of the loaded model with its gradients.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from alternate import alternate, report
from memory import resident

WAYS = {"padded": (True, False), "padded, once": (True, True), "ragged": (False, True)}
"""Filled up, and equal sentences encoded once."""


def steps_of(args: argparse.Namespace, ways: list[str]) -> tuple[dict[str, Callable[[], None]], dict[str, Any]]:
    """Return the step function of each way, and their collators, which count sentences."""
    from samesense.data.tuples.completion import Completion, key_of
    from samesense.data.tuples.read import read_tuples
    from samesense.encoder.assembly.build import build
    from samesense.encoder.forward.dropout import use_cheap_dropout
    from samesense.encoder.forward.precision import autocast, inference_precision
    from samesense.losses.multi_positive import TupleMultiPositive
    from samesense.training.tuple_batches import TupleBatches, has_dropout

    data = read_tuples(args.data)
    data = data.take(row for row, positives in enumerate(data.positives) if positives)
    model = build(args.model, max_seq_length=32, device="cpu")
    use_cheap_dropout(model)
    model.train()
    precision = inference_precision("auto", model.device)
    objective = TupleMultiPositive(model, positives=5, mini_batch_num_tokens=args.mini_batch_num_tokens)
    for parameter in model.parameters():
        parameter.grad = parameter.new_zeros(parameter.shape)

    def made(padded: bool, once: bool) -> tuple[Callable[[], None], TupleBatches]:
        complete = Completion(data=data, positives=5, negatives=5, padded=padded)
        batches = TupleBatches(
            data.anchors,
            complete,
            model.preprocess,
            places=(5, 5),
            positives=data.positives,
            key=key_of("same"),
            once=once,
            apart=has_dropout(model),
        )

        def run() -> None:
            for step in range(args.steps):
                rows = [(step * args.batch + offset) % len(data) for offset in range(args.batch)]
                batch = batches([{"label": row} for row in rows])
                labels = batch.pop("label")
                with autocast(model.device, precision):
                    loss = objective([{name.removeprefix("texts_"): value for name, value in batch.items()}], labels)
                loss.backward()

        return run, batches

    steps = {name: made(*WAYS[name]) for name in ways}
    return {name: run for name, (run, _) in steps.items()}, {name: batches for name, (_, batches) in steps.items()}


def peak(args: argparse.Namespace) -> None:
    """Print the MiB that the steps of one way add."""
    runs, _ = steps_of(args, [args.way])
    before = resident()
    most = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    runs[args.way]()
    done.set()
    watcher.join()
    print(json.dumps(most[0] - before))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", required=True, help="NLI pairs, or anchors with lists of positives and negatives")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--mini-batch-num-tokens", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, default=None, help="measure the memory of one way, and stop")
    args = parser.parse_args()
    if args.way is not None:
        peak(args)
        return
    memory = {}
    for way in WAYS:
        command = [sys.executable, __file__, *sys.argv[1:], "--way", way]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        memory[way] = json.loads(done.stdout.splitlines()[-1])
    runs, batches = steps_of(args, list(WAYS))
    started = time.perf_counter()
    seconds = alternate(runs, args.rounds)
    sentences = {way: [counted.encoded, counted.given] for way, counted in batches.items()}
    facts = {"model": args.model, "data": Path(args.data).name, "batch": args.batch, "steps": args.steps}
    facts |= {"mini_batch_num_tokens": args.mini_batch_num_tokens, "peak_mib": memory, "sentences": sentences}
    report("supmpn", seconds, args.batch * args.steps, "anchors", "padded", **facts)
    for way, (encoded, tokens) in sentences.items():
        print(f"{way}: {encoded} of {tokens} sentences encoded; {memory[way]} MiB added at the peak")
    print(f"in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
