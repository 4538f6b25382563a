"""Compare an Origin by next words with its rivals, on STS-B dev or once on six test sets.

The protocol is in reproduce/context/words.md.

python benchmarks/origin_sets.py dev --model smollm2 --glove glove --data data/en --folder readings
python benchmarks/origin_sets.py test --model smollm2 --glove glove --data data/en --folder readings

Readings of the sentences are cached in blocks in the folder, so a stopped run resumes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from origin_words import reference_sentences

from samesense.context.generator.language_models import open_language_model
from samesense.context.origin.parts import OWN, STATE, WORDS, Parts
from samesense.context.origin.reader import Reader, Readings
from samesense.context.origin.word_origin import WordOrigin
from samesense.data import read_pairs
from samesense.metrics import spearman
from samesense.metrics.seeds import compare_resampled, interval_of_runs, mean_of_sets, resampled_figures
from samesense.metrics.significance import holm
from samesense.recipes.origin.settings import OriginSettings
from samesense.recipes.origin.words import fit_parts
from samesense.types import Pair

SETS = ("sts12.test", "sts13.test", "sts14.test", "sts15.test", "stsb.test", "sickr.test")

BLOCK = 500
"""Sentences of a file of readings."""

GATES = (
    ("next words, joined", "own states"),
    ("next words, joined", "TF-IDF"),
    ("next words, joined", "GloVe with SIF weights"),
    ("words alone, all of them", "own states"),
)
"""What is tested, on the mean of the sets, corrected together by Holm."""

Scores = npt.NDArray[np.float64]


class Library:
    """Reads sentences, and caches their readings."""

    def __init__(self, model: Path, precision: str, folder: Path) -> None:
        self.reader = Reader(open_language_model(str(model), precision=precision))
        self._folder = folder / precision
        self._folder.mkdir(parents=True, exist_ok=True)
        self._readings: dict[str, tuple[npt.NDArray[np.float16], ...]] = {}
        for path in sorted(self._folder.glob("*.npz")):
            self._take_up(path)

    def read(self, texts: Sequence[str]) -> Readings:
        """Return the readings of the texts; read those that are not cached."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._readings]
        for start in range(0, len(missing), BLOCK):
            block = missing[start : start + BLOCK]
            readings = self.reader.read(block)
            halves = {
                "own": readings.own.astype(np.float32),
                "states": readings.states.astype(np.float32),
                "log_probs": readings.log_probs.astype(np.float16),
            }
            path = self._folder / f"{len(list(self._folder.glob('*.npz'))):04d}.npz"
            np.savez(path.with_suffix(".part"), texts=block, **halves)
            Path(f"{path.with_suffix('.part')}.npz").rename(path)
            self._take_up(path)
            print(f"read {start + len(block)} of {len(missing)}", flush=True)
        arrays = zip(*(self._readings[text] for text in texts), strict=True)
        return Readings(*(np.stack(rows).astype(np.float32) for rows in arrays))

    def _take_up(self, path: Path) -> None:
        with np.load(path) as arrays:
            rows = zip(arrays["own"], arrays["states"], arrays["log_probs"], strict=True)
            self._readings |= dict(zip(arrays["texts"].tolist(), rows, strict=True))


def cosines(rows: npt.NDArray[np.floating], sides: Sequence[Sequence[int]]) -> Scores:
    """Return the cosine of each pair."""
    wide = rows.astype(np.float64)
    unit = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
    return np.einsum("nd,nd->n", unit[list(sides[0])], unit[list(sides[1])])


def origin_rows(fitted: Parts, readings: Readings, sides: Sequence[Sequence[int]]) -> dict[str, Scores]:
    """Return the scores of an Origin, of its parts, and of its words without projection."""
    sparse_rows = fitted.words.rows(readings.log_probs)
    lengths = np.sqrt(np.asarray(sparse_rows.multiply(sparse_rows).sum(axis=1)).ravel())
    first, second = (list(side) for side in sides)
    products = np.asarray(sparse_rows[first].multiply(sparse_rows[second]).sum(axis=1)).ravel()
    words = products / np.maximum(lengths[first] * lengths[second], 1e-12)
    numbers = fitted.numbers(readings)
    alone = {name: cosines(rows, sides) for name, rows in numbers.items()}
    weights = fitted.weights
    return {
        "next words, joined": cosines(fitted.vectors(readings), sides),
        "joined, words without projection": sum(weights[name] * alone[name] for name in (OWN, STATE))
        + weights[WORDS] * words,
        "words alone, all of them": words,
        "words alone, projected": alone[WORDS],
        "state behind the prompt": alone[STATE],
        "own states": alone[OWN],
    }


def tfidf_settings() -> Iterator[dict[str, Any]]:
    """Yield the settings of TF-IDF from which the best on dev is taken.

    Words that no reference sentence has are left out, or count as if one had them.
    """
    flags = (True, False)
    for sublinear, smooth, longest, unknown, size in product(flags, flags, (1, 2), flags, (500, 1500)):
        vectorizer = {"sublinear_tf": sublinear, "smooth_idf": smooth, "ngram_range": (1, longest)}
        yield {"vectorizer": vectorizer, "unknown": unknown, "reference": size}


def tfidf(
    reference: Sequence[str], texts: Sequence[str], sides: Sequence[Sequence[int]], settings: Mapping[str, Any]
) -> Scores:
    """Return the cosines of TF-IDF whose inverse document frequencies are from the reference."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from samesense.context.corpus.words import words

    vectorizer = TfidfVectorizer(tokenizer=words, token_pattern=None, lowercase=False, **settings["vectorizer"])
    unknown = [" ".join(texts)] if settings["unknown"] else []
    vectorizer.fit([*reference[: settings["reference"]], *unknown])
    rows = vectorizer.transform(texts)
    return np.asarray(rows[list(sides[0])].multiply(rows[list(sides[1])]).sum(axis=1)).ravel()


class PairSet:
    """Pairs with labels, and their distinct sentences."""

    def __init__(self, data: Path, name: str) -> None:
        pairs = read_pairs(str(data / f"{name}.tsv.gz"))
        self.labels = np.asarray(pairs.labels, dtype=np.float64)
        self.pairs: list[Pair] = list(pairs.pairs())
        self.texts = list(dict.fromkeys(text for pair in self.pairs for text in pair))
        index = {text: row for row, text in enumerate(self.texts)}
        self.sides = [[index[pair[side]] for pair in self.pairs] for side in (0, 1)]


def rows_of(pairs: PairSet, library: Library, arguments: argparse.Namespace, tfidf_choice: Mapping[str, Any]):
    """Return the scores of each row of the table."""
    from samesense.encoder.vectors.lookup import read_words

    settings = OriginSettings(reference=arguments.reference)
    evaluated = set(pairs.texts)
    reference = [text for text in reference_sentences(arguments.data, 1500) if text not in evaluated]
    fitted = fit_parts(library.reader, library.read(reference[: settings.reference]), settings)
    glove = read_words(arguments.glove, sif=True)
    overlap = [set(text.lower().split()) for text in pairs.texts]
    shared = [
        len(overlap[first] & overlap[second]) / max(1, len(overlap[first] | overlap[second]))
        for first, second in zip(*pairs.sides, strict=True)
    ]
    return {
        **origin_rows(fitted, library.read(pairs.texts), pairs.sides),
        "TF-IDF": tfidf(reference, pairs.texts, pairs.sides, tfidf_choice),
        "GloVe with SIF weights": cosines(np.asarray(glove(pairs.texts)), pairs.sides),
        "word overlap": np.array(shared),
    }


def choose_tfidf(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of TF-IDF that are best on dev."""
    dev = PairSet(arguments.data, "stsb.dev")
    reference = reference_sentences(arguments.data, 1500)
    figures = [
        (100 * spearman(tfidf(reference, dev.texts, dev.sides, settings), dev.labels), settings)
        for settings in tfidf_settings()
    ]
    figures.sort(key=lambda row: -row[0])
    for figure, settings in (*figures[:3], figures[-1]):
        print(f"TF-IDF {settings}: {figure:.2f}")
    return figures[0][1]


def check_product(library: Library, arguments: argparse.Namespace) -> None:
    """Raise if the scores here are not those of an Origin on a few pairs."""
    dev = PairSet(arguments.data, "stsb.dev")
    reference = reference_sentences(arguments.data, 1500)[: arguments.reference]
    fitted = fit_parts(library.reader, library.read(reference), OriginSettings())
    origin = WordOrigin(None, library.reader, fitted)
    expected = origin_rows(fitted, library.read(dev.texts), dev.sides)["next words, joined"][:20]
    np.testing.assert_allclose(origin(dev.pairs[:20]), expected, atol=0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("on", choices=["dev", "test"])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--glove", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--reference", type=int, default=500)
    parser.add_argument("--precision", default="bfloat16", choices=["float32", "bfloat16"])
    arguments = parser.parse_args()
    library = Library(arguments.model, arguments.precision, arguments.folder)
    check_product(library, arguments)
    tfidf_choice = choose_tfidf(arguments)
    names = SETS if arguments.on == "test" else ("stsb.dev",)
    resampled: dict[str, dict[str, Any]] = {}
    for name in names:
        pairs = PairSet(arguments.data, name)
        for row, scores in rows_of(pairs, library, arguments, tfidf_choice).items():
            resampled.setdefault(row, {})[name] = resampled_figures([scores], pairs.labels, samples=10000, seed=0)
    means = {row: mean_of_sets(list(sets.values())) for row, sets in resampled.items()}
    print(f"\n| | {' | '.join(names)} | mean |\n|---|{'---:|' * (len(names) + 1)}")
    for row, sets in resampled.items():
        low, high = interval_of_runs(means[row])
        figures = " | ".join(f"{100 * drawn.figures[0]:.2f}" for drawn in sets.values())
        print(f"| {row} | {figures} | {100 * means[row].figures[0]:.2f} [{100 * low:.1f}, {100 * high:.1f}] |")
    gaps = [compare_resampled(means[better], means[worse]) for better, worse in GATES]
    print("\n| above | below | difference | p |\n|---|---|---:|---:|")
    for (better, worse), gap, p in zip(GATES, gaps, holm([gap.p_value for gap in gaps]), strict=True):
        interval = f"{100 * gap.difference:+.2f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]"
        print(f"| {better} | {worse} | {interval} | {p:.4f} |")


if __name__ == "__main__":
    main()
