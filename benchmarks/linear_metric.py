"""Why contexts scored by a bi-encoder add little to its whitened cosine: fits over shared contexts are a linear metric.

python benchmarks/linear_metric.py --corpus CORPUS --data data/en/stsb.dev.tsv.gz --models default raw-bert-l6
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

CONTEXTS = 2000
REFERENCE = 4000
SEED = 5


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def spearman_of(rows, texts, pairs, labels):
    from samesense.metrics import spearman

    row_of = {text: row for row, text in enumerate(texts)}
    first, second = (unit(rows[[row_of[pair[side]] for pair in pairs]]) for side in (0, 1))
    return 100 * spearman((first * second).sum(axis=1), labels)


def columns(encode, corpus, texts, pairs, labels):
    """Return the Spearman of four ways to compare the vectors of one encoder."""
    from samesense.context.origin.scheme import reference_sentences
    from samesense.encoder.maps.whitening import Whitening

    windows = corpus.windows_at(corpus.random_windows(SEED, CONTEXTS))
    usual = reference_sentences(corpus, REFERENCE, SEED)
    rows = encode(texts).astype(float)
    reference = encode(usual).astype(float)
    beside = [(number, text) for number, window in enumerate(windows) for text in (*window.left, *window.right)]
    around = np.zeros((len(windows), rows.shape[1]))
    np.add.at(around, [number for number, _ in beside], encode([text for _, text in beside]))
    whitening = Whitening.shrunk(reference)

    def fits(vectors, contexts, by):
        """Return how well each sentence fits each context, standardised over the reference."""
        scores = vectors @ contexts.T
        usual = by @ contexts.T
        return (scores - usual.mean(axis=0)) / usual.std(axis=0)

    white, white_reference, white_around = (whitening.apply(x).astype(float) for x in (rows, reference, around))
    variants = {
        "own cosine": rows,
        "own, whitened": white,
        "fits, standardised": fits(rows, around, reference),
        "whitened fits": fits(white, white_around, white_reference),
    }
    return {name: spearman_of(vectors, texts, pairs, labels) for name, vectors in variants.items()}


def main():
    from samesense.context.corpus.corpus import Corpus
    from samesense.data import read_pairs
    from samesense.inference.models.load import load

    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--models", nargs="+", required=True)
    args = parser.parse_args()
    corpus = Corpus(args.corpus)
    read = read_pairs(args.data)
    pairs = list(read.pairs())
    labels = np.asarray(read.labels)
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    for name in args.models:
        figures = columns(load(name, precision="auto").encode, corpus, texts, pairs, labels)
        cells = " | ".join(f"{value:.1f}" for value in figures.values())
        print(f"| {Path(name).name} | {cells} |  ({', '.join(figures)})", flush=True)


if __name__ == "__main__":
    main()
