"""Milliseconds of one core that a sentence costs an Origin by next words, by arithmetic and by part of the work.

python benchmarks/origin_cost.py --model smollm2 --data data/en/stsb.test.tsv.gz
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from samesense.context.generator.language_models import open_language_model
from samesense.context.origin.reader import Reader
from samesense.context.origin.word_origin import WordOrigin
from samesense.data import read_pairs
from samesense.recipes.origin.settings import OriginSettings
from samesense.recipes.origin.words import fit_parts

SENTENCES = 256
REFERENCE = 200
ROUNDS = 5


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work for one of its sentences."""
    begun = time.process_time()
    work()
    return 1000 * (time.process_time() - begun) / SENTENCES


def products(model: torch.nn.Module, tokens: int) -> Callable[[], object]:
    """Return the matrix products alone of reading a number of tokens together."""
    weights = [
        module.weight.detach() for module in model.modules() if isinstance(module, torch.nn.Linear)
    ]  # the output layer reads one token a sentence
    head = max(weights, key=lambda weight: weight.shape[0])

    def run() -> None:
        for weight in weights:
            rows = SENTENCES if weight is head else tokens
            torch.ones(rows, weight.shape[1], dtype=weight.dtype) @ weight.T

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--precisions", nargs="+", default=["bfloat16", "float32"])
    arguments = parser.parse_args()
    pairs = read_pairs(str(arguments.data))
    texts = list(dict.fromkeys([*pairs.sentences1, *pairs.sentences2]))[: SENTENCES + REFERENCE]
    sentences = texts[:SENTENCES]
    torch.set_num_threads(1)
    print("| arithmetic | a sentence | of these, reading | matrix products alone | tokens of a sentence |")
    print("|---|---:|---:|---:|---:|")
    with threadpool_limits(1), torch.inference_mode():
        for precision in arguments.precisions:
            reader = Reader(open_language_model(str(arguments.model), precision=precision))
            fitted = fit_parts(reader, reader.read(texts[SENTENCES:]), OriginSettings())
            lengths = reader.lengths(sentences)
            prefix = len(reader._prefix)
            tokens = sum(len(reader.prompt_ids(text)) - prefix for text in sentences)
            rows = {
                "a sentence": lambda reader=reader, fitted=fitted: WordOrigin(None, reader, fitted).encode(sentences),
                "reading": lambda reader=reader: reader.read(sentences),
                "products": products(reader.generator.model, tokens),
            }
            timings = {name: [milliseconds(work) for _ in range(ROUNDS)] for name, work in rows.items()}
            cells = [f"{statistics.median(each):.1f} ({min(each):.1f} to {max(each):.1f})" for each in timings.values()]
            print(f"| {precision} | {' | '.join(cells)} | {np.mean(lengths):.1f} |", flush=True)


if __name__ == "__main__":
    main()
