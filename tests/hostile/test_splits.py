"""Random graphs of texts, split in every way: no sentence is on both sides without a warning."""

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import samesense
from samesense.data.pairs.data import PairData
from samesense.data.pairs.folds import fold_numbers
from samesense.data.pairs.keys import plain_text
from samesense.errors import DataError
from samesense.evaluation.argument import cross_validation
from samesense.metrics import spearman
from samesense.recipes.held_out.sets import sets_of
from samesense.recipes.planning.dev_split import hold_out, hold_out_pairs
from samesense.recipes.sweep.data_entry import DataEntry
from samesense.recipes.sweep.splits import read_splits
from tests.hostile.conftest import rounds
from tests.messages import listen


def spelled(draw, text):
    """The text, often in another case or with other punctuation."""
    return draw.choice([text, text, text.upper(), f"{text}.", f" {text} !", text.title()])


def graph(draw):
    """Pairs by numbers of texts: chains, stars, circles, twins, self pairs, loose ones and random ones."""
    pairs = []
    texts = iter(range(100_000))
    for _ in range(draw.choice([1, 2, 5, 20, 40])):
        kind = draw.choice(["chain", "star", "twin", "self", "loose", "random"])
        size = draw.randint(1, 9)
        nodes = [next(texts) for _ in range(size + 1)]
        if kind == "chain":
            pairs += pairwise(nodes)
        elif kind == "star":
            pairs += [(nodes[0], node) for node in nodes[1:]]
        elif kind == "twin":
            pairs += [draw.choice([(nodes[0], nodes[1]), (nodes[1], nodes[0])]) for _ in nodes]
        elif kind == "self":
            pairs += [(text, text) for text in nodes]
        elif kind == "loose":
            pairs += [(next(texts), next(texts)) for _ in nodes]
        else:
            pairs += [(draw.choice(nodes), draw.choice(nodes)) for _ in nodes]
    draw.shuffle(pairs)
    return pairs


def drawn_pairs(draw):
    labels = draw.choice([(0.0, 1.0), (0.0, 1.0, 2.0), tuple(quarter / 4 for quarter in range(21))])
    rows = [(spelled(draw, f"text {a}"), spelled(draw, f"text {b}"), draw.choice(labels)) for a, b in graph(draw)]
    first, second, values = (list(column) for column in zip(*rows, strict=True))
    return PairData(
        sentences1=first,
        sentences2=second,
        labels=values,
        subsets=None,
        kind="scored",
        scale=(0.0, 5.0),
        source="made.tsv",
        label_column="score",
    )


def texts(data, rows=None):
    chosen = range(len(data)) if rows is None else rows
    return {plain_text(side[row]) for row in chosen for side in (data.sentences1, data.sentences2)}


def check_apart(train, held, lines):
    shared = texts(train) & texts(held)
    assert not shared or any("trained on" in line for line in lines), shared


def test_no_sentence_is_in_two_parts_without_a_warning():
    counts = dict.fromkeys(("held out", "folds", "calibration", "refused"), 0)
    for seed in range(rounds(150, 3000)):
        draw = random.Random(seed)
        data = drawn_pairs(draw)
        lines = listen()
        try:
            check_apart(*hold_out(data, seed), lines)
            check_apart(*hold_out_pairs(data, draw.choice([0.05, 0.2, 0.5]), seed), lines)
            counts["held out"] += 1
        except DataError:
            counts["refused"] += 1
        k = draw.randint(2, 8)
        try:
            for train, held in cross_validation(data, k, "apart", seed):
                assert len(held) and not texts(data, train) & texts(data, held)
            counts["folds"] += 1
        except DataError:
            counts["refused"] += 1
        folds, apart = fold_numbers(data, k, seed)
        if apart == "sentences":
            counts["calibration"] += 1
            for fold in range(k):
                assert not texts(data, np.flatnonzero(folds == fold)) & texts(data, np.flatnonzero(folds != fold))
        again = fold_numbers(data.take(range(len(data))[::-1]), k, seed)[0]
        assert again[::-1].tolist() == folds.tolist()
    assert counts.pop("refused") and min(counts.values()) > 0.5 * rounds(150, 3000), counts


def test_dev_and_verdict_of_a_run_and_the_dev_of_a_sweep_share_no_sentence(tmp_path):
    for seed in range(rounds(10, 200)):
        draw = random.Random(seed)
        datasets = [drawn_pairs(draw) for _ in range(20)]
        rows = [
            (f"{number} {a}", f"{number} {b}", label)
            for number, dataset in enumerate(datasets)
            for a, b, label in zip(dataset.sentences1, dataset.sentences2, dataset.labels, strict=True)
        ]
        path = tmp_path / f"{seed}.tsv"
        path.write_text("sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{label:g}\n" for a, b, label in rows))
        entry = DataEntry(name="made", train=str(path), dev=draw.choice(["hold 0.1", "hold 0.3"]), test=str(path))
        splits = read_splits(entry, seed)
        assert not texts(splits.train) & texts(splits.dev) and len(splits.dev) > 10
        sets = sets_of(replace(splits.train, source="dev"), None, cross_fit=False)
        assert not texts(sets.selecting) & texts(sets.verdict.data)


def memory(data, train, held):
    """Scores of a model that knows its training pairs by heart: the mean label of pairs with a common text."""
    of_text: dict[str, list[float]] = {}
    for row in train:
        for side in (data.sentences1, data.sentences2):
            of_text.setdefault(plain_text(side[row]), []).append(data.labels[row])
    middle = np.mean([data.labels[row] for row in train])
    labels_by_pair = (
        [*of_text.get(plain_text(data.sentences1[r]), []), *of_text.get(plain_text(data.sentences2[r]), [])]
        for r in held
    )
    return [
        np.mean(labels) if labels else middle + 1e-9 * row for row, labels in zip(held, labels_by_pair, strict=True)
    ]


def random_labels_with_reverses(seed):
    draw = random.Random(seed)
    rows = [(f"text {2 * number}", f"text {2 * number + 1}", draw.randint(0, 5)) for number in range(60)]
    rows += [(f"{second.title()}.", first, label) for first, second, label in rows]
    draw.shuffle(rows)
    return rows


def test_nothing_is_learnt_of_random_labels_by_heart():
    figures = []
    for seed in range(20):
        rows = random_labels_with_reverses(seed)
        data = samesense.read([{"sentence1": a, "sentence2": b, "score": label} for a, b, label in rows])
        for mode in ("mixed", "apart"):
            scores = np.zeros(len(data))
            for train, held in cross_validation(data, 5, mode, seed):
                scores[held] = memory(data, train, held)
            figures.append((mode, spearman(scores, data.labels)))
    means = {
        mode: np.mean([value for figure_mode, value in figures if figure_mode == mode]) for mode in ("mixed", "apart")
    }
    assert means["mixed"] > 0.5  # leakage through shared sentences
    assert abs(means["apart"]) < 0.15


@pytest.mark.long
def test_folds_of_random_labels_estimate_nothing(tiny_trunk, tmp_path):
    """60 pairs with random labels and their reverses, by models that are trained until they know them by heart."""
    words = "a dog runs in the rain the cat sleeps on a mat trains are late today".split()
    lows = []
    for seed in range(3):
        draw = random.Random(seed)
        sentences = {f"text {number}": " ".join(draw.choices(words, k=8)) for number in range(120)}
        spelled_out = [(a.removesuffix(".").lower(), b, label) for a, b, label in random_labels_with_reverses(seed)]
        rows = [{"sentence1": sentences[a], "sentence2": sentences[b], "score": label} for a, b, label in spelled_out]
        results = samesense.cross_validate(
            rows,
            folds=3,
            output=tmp_path / str(seed),
            model=str(tiny_trunk),
            loss="mse",
            max_steps=60,
            batch_size=16,
            learning_rate=1e-3,
            precision="float32",
        )
        whole = next(row for row in results if (row.metric, row.subset) == ("spearman", "all"))
        assert "0 of 120 held-out pairs share" in whole.protocol
        lows.append((whole.low, whole.high))
    assert sum(low <= 0 <= high for low, high in lows) >= 2 and np.mean(lows) < 0.25, lows
