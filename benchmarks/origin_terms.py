"""What each term adds that a bank can have; the protocol is in reproduce/context/bank.md.

python benchmarks/origin_terms.py --corpus CORPUS --model smollm2 --data data/en
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from origin_bank import pairs_of, sentences_of

WINDOWS, TOKENS, LEFT_TOKENS = 32, 4, 24


def left_logs(reader, windows, texts):
    """Return the mean log probability of each sentence after the left side of each window, ``(sentences, windows)``."""
    from samesense.context.generator.base import groups_of

    generator = reader.generator
    lefts = [generator.tokenizer.decode(generator.ids(w.left[-1], inside=False)[-LEFT_TOKENS:]) for w in windows]
    rows = [generator.ids(text, inside=True) for text in texts]
    found = np.empty((len(texts), len(lefts)), dtype=np.float32)
    for same in groups_of(np.array([len(row) for row in rows], dtype=np.int64)):
        tails = np.array([rows[int(at)] for at in same], dtype=np.int64)
        found[same] = reader.read(lefts, tails).logs.mean(axis=2).T
        print(f"{len(same)} sentences of {tails.shape[1]} tokens", flush=True)
    return found


def main() -> None:
    import torch

    from samesense.context.corpus.corpus import Corpus
    from samesense.context.generator.language_models import open_language_model
    from samesense.context.origin.bank import Bank
    from samesense.context.origin.reader import Reader
    from samesense.encoder.maps.whitening import Whitening
    from samesense.metrics.correlation import spearman
    from samesense.metrics.significance import bootstrap_interval

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("corpus", "model", "data"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=300, help="of STS-B dev")
    parser.add_argument("--reference", type=int, default=600, help="sentences of STS-B train that whiten")
    given = parser.parse_args()
    torch.set_num_threads(2)
    corpus = Corpus(given.corpus)
    reader = Reader(open_language_model(str(given.model), precision="bfloat16"))
    bank = Bank.draw(corpus, reader.tail, windows=WINDOWS, tokens=TOKENS, seed=42)
    windows = [corpus.window(int(at)) for at in bank.windows]
    pairs, labels = pairs_of(given, "dev")
    texts, usual = sentences_of(given, corpus, "dev"), sentences_of(given, corpus, "train")
    read = {name: reader.read(part, bank.tails) for name, part in (("texts", texts), ("usual", usual))}
    numbers = {
        "R | s": [one.logs.reshape(len(one.logs), -1) for one in read.values()],
        "s | L": [left_logs(reader, windows, part) for part in (texts, usual)],
        "own": [one.own for one in read.values()],
    }
    place = {text: at for at, text in enumerate(texts)}
    sides = [[place[pair[side]] for pair in pairs] for side in (0, 1)]
    scores = {}
    for term, (rows, reference) in numbers.items():
        unit = Whitening.shrunk(reference).apply(rows).astype(np.float64)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        scores[term] = (2 if term == "own" else 1) * np.einsum("nd,nd->n", unit[sides[0]], unit[sides[1]])
    print(f"{len(pairs)} pairs of dev, whitened by {len(usual)} sentences of train")
    for count in (1, 2, 3):
        for terms in combinations(scores, count):
            joined = np.sum([scores[term] for term in terms], axis=0)
            low, high = bootstrap_interval(joined, labels, "spearman")
            print(f"| {', '.join(terms)} | {100 * spearman(joined, labels):.2f} [{100 * low:.1f}, {100 * high:.1f}] |")


if __name__ == "__main__":
    main()
