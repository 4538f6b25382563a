"""Compare a bank of contexts with what is cheaper on six test sets; the protocol is in reproduce/context/bank.md.

python benchmarks/origin_sets.py --corpus CORPUS --data data/en --folder readings

The readings are made by origin_bank.py. Sentences of train that whiten are never those of the set that is evaluated.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from origin_bank import LAYERS, SETS, baselines, gathered, pairs_of

TOKENS = 4

GATES = ("own vectors, whitened", "TF-IDF", "word overlap")
"""What the chosen setting is tested against, on the mean of the sets."""


class Set:
    """One test set: its pairs, their labels, and what was read of its sentences."""

    def __init__(self, given, name, train):
        self.pairs, self.labels = pairs_of(given, name)
        read = gathered(given.folder, name)
        self.texts = list(dict.fromkeys(text for pair in self.pairs for text in pair))
        place = {text: at for at, text in enumerate(self.texts)}
        self.sides = [[place[pair[side]] for pair in self.pairs] for side in (0, 1)]
        own = [text for text in train if text not in place]
        print(f"{name}: {len(self.pairs)} pairs, {len(self.texts)} sentences, whitened by {len(own)}")
        self.logs = [
            np.stack([found[text][0] for text in texts]) for found, texts in ((train, own), (read, self.texts))
        ]
        at = LAYERS.index(given.layer)
        self.own = [
            np.stack([found[text][1][0, at] for text in texts]) for found, texts in ((train, own), (read, self.texts))
        ]

    def scores(self, reference, rows, whiten=True):
        from samesense.encoder.maps.whitening import Whitening

        if whiten:
            rows = Whitening.shrunk(reference).apply(rows)
        rows = rows / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        return np.einsum("nd,nd->n", rows[self.sides[0]], rows[self.sides[1]])

    def bank(self, windows):
        return self.scores(*(each[:, :windows, :TOKENS].reshape(len(each), -1) for each in self.logs))


def main() -> None:
    from samesense.context.corpus.corpus import Corpus
    from samesense.metrics.seeds import compare_resampled, interval_of_runs, mean_of_sets, resampled_figures
    from samesense.metrics.significance import holm

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--layer", type=int, default=1)
    parser.add_argument("--own", type=float, default=2.0, help="weight of own vectors beside the bank's")
    parser.add_argument("--windows", type=int, nargs="+", default=[32, 16, 8], help="banks, the first is tested")
    parser.add_argument("--pairs", type=int, default=5000, help="of each set at most; as in the readings")
    parser.add_argument("--sets", nargs="+", default=[*SETS[:4], "test", SETS[4]])
    given = parser.parse_args()
    corpus, train = Corpus(given.corpus), gathered(given.folder, "train")
    found = {}
    for name in given.sets:
        one = Set(given, name, train)
        own = one.scores(*one.own)
        banks = {windows: one.bank(windows) for windows in given.windows}
        rows = {
            **{f"bank of {windows}, and own vectors": bank + given.own * own for windows, bank in banks.items()},
            **{f"bank of {windows}": bank for windows, bank in banks.items()},
            "own vectors, whitened": own,
            "own vectors": one.scores(*one.own, whiten=False),
            **baselines(one, corpus),
        }
        for row, scores in rows.items():
            drawn = resampled_figures([scores], one.labels, samples=1000, seed=0)
            found.setdefault(row, {})[name] = drawn
    means = {row: mean_of_sets(list(sets.values())) for row, sets in found.items()}
    chosen = means[next(iter(means))]
    gaps = {row: compare_resampled(chosen, means[row]) for row in GATES}
    adjusted = dict(zip(gaps, holm([gap.p_value for gap in gaps.values()]), strict=True))
    print(f"| | {' | '.join(given.sets)} | mean | difference | p |")
    for row, sets in found.items():
        low, high = interval_of_runs(means[row])
        figures = " | ".join(f"{100 * one.figures[0]:.2f}" for one in sets.values())
        print(f"| {row} | {figures} | {100 * means[row].figures[0]:.2f} [{100 * low:.1f}, {100 * high:.1f}] |", end=" ")
        if row in gaps:
            gap = gaps[row]
            between = f"{100 * gap.difference:+.2f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]"
            print(f"{between} | {adjusted[row]:.3f} |")
        else:
            print("| |")


if __name__ == "__main__":
    main()
