"""Twenty tasks of all kinds of supervision, for ``without_a_flag.py``: what is trained on, and what is tested.

Half of them are development tasks, on which defaults are chosen; the final tasks are run once, at the end. Three of the
development sets are also tasks of learning curves, with more and fewer rows, and five are tasks of races. Fresh
tasks were named after the defaults of 2026-11-29, and have other sets or other starts than all of these. Training rows
are drawn by the seed, without the pairs that stand in the test; test rows are the same for all seeds.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

Kind = Literal["scored", "binary", "nli", "triplets", "positives", "classes", "sentences"]
PairStatistic = Literal["spearman", "average_precision"]
Row = tuple[str, ...]

MOST_TEST = 1500
"""Most rows of a test."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "scored": ("sentence1", "sentence2", "score"),
    "binary": ("sentence1", "sentence2", "label"),
    "nli": ("premise", "hypothesis", "label"),
    "triplets": ("anchor", "positive", "negative"),
    "positives": ("anchor", "positive"),
    "classes": ("text", "label"),
    "sentences": ("text",),
}
"""Columns of the training file of each kind."""

NLI_LABELS = {"contradiction": 0.0, "neutral": 1.0, "entailment": 2.0}


@dataclass(frozen=True)
class Test:
    """What a model is tested on: pairs with labels, titles with their texts, or texts with classes."""

    statistic: Literal["spearman", "average_precision", "mean"]
    rows: list[Row]
    labels: list[float]


@dataclass(frozen=True)
class Task:
    """One data set with its supervision, its start model and its test."""

    name: str
    kind: Kind
    start: str  # a folder of the models, or "default"
    rows: int  # of training
    train: Callable[[Path], list[Row]]  # reads all rows that training rows are drawn from
    test: Callable[[Path], Test]

    def training_rows(self, data: Path, seed: int) -> list[Row]:
        """Return the training rows of a seed."""
        tested = {frozenset(row[:2]) for row in self.test(data).rows}
        rows = [row for row in self.train(data) if frozenset(row[:2]) not in tested]
        order = np.random.default_rng(seed).permutation(len(rows))
        if self.kind != "classes":
            return [rows[index] for index in order[: self.rows]]
        classes = sorted({row[1] for row in rows})
        by_class = [[rows[index] for index in order if rows[index][1] == name] for name in classes]
        return [row for members in zip(*by_class, strict=False) for row in members][: self.rows]


def write_training_file(task: Task, rows: Sequence[Row], folder: Path) -> Path:
    """Write training rows as a stranger would have them: CSV with a header, or a sentence a line."""
    if task.kind == "sentences":
        path = folder / "train.txt"
        path.write_text("".join(f"{text}\n" for (text,) in rows), encoding="utf-8")
        return path
    path = folder / "train.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS[task.kind], *rows])
    return path


def read_table(path: Path) -> list[dict[str, str]]:
    """Read one of the benchmark's tables: gzip, tabs, no quoting."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def scored_rows(*names: str, data: Path) -> list[Row]:
    """Return pairs with scores of several files."""
    rows = [row for name in names for row in read_table(data / f"{name}.tsv.gz")]
    return [(row["sentence1"], row["sentence2"], row["score"]) for row in rows]


def nli_rows(name: str, data: Path) -> list[Row]:
    """Return premises and hypotheses with their labels."""
    return [(row["premise"], row["hypothesis"], row["label"]) for row in read_table(data / f"{name}.tsv.gz")]


def class_rows(name: str, data: Path, share: slice) -> list[Row]:
    """Return texts with their classes; ``share`` cuts a file without a test split, after one fixed shuffle."""
    rows = [(row["sentence"], row["label"]) for row in read_table(data / f"{name}.tsv.gz") if row["sentence"].strip()]
    order = np.random.default_rng(0).permutation(len(rows))
    return [rows[index] for index in order][share]


@dataclass(frozen=True)
class Document:
    """A title, sentences in order, and the topic, which is the second word of the identifier."""

    title: str
    sentences: list[str]
    topic: str


def documents(name: str, data: Path) -> list[Document]:
    """Return documents in one fixed shuffle."""
    with gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        parsed = [json.loads(line) for line in file]
    read = [
        Document(
            title=entry["title"],
            sentences=[text for part in entry["sections"] for text in part["sentences"]],
            topic="-".join(entry["id"].split("-")[1:2]),
        )
        for entry in parsed
    ]
    order = np.random.default_rng(0).permutation(len(read))
    return [read[index] for index in order]


def title_rows(name: str, data: Path, share: slice) -> list[Row]:
    """Return titles with the first three sentences of their texts; each title and text once."""
    read = documents(name, data)
    rows = {entry.title: " ".join(entry.sentences[:3]) for entry in read if entry.title and entry.sentences}
    by_text = {text: title for title, text in rows.items()}
    return [(title, text) for text, title in by_text.items()][share]


def sentence_rows(name: str, data: Path) -> list[Row]:
    """Return the sentences of documents, each once."""
    texts = dict.fromkeys(text for entry in documents(name, data) for text in entry.sentences)
    return [(text,) for text in texts if len(text.split()) > 3]


def nli_triplet_rows(*names: str, data: Path) -> list[Row]:
    """Return triplets of several files."""
    return nli_triplets(row for name in names for row in nli_rows(name, data))


def nli_triplets(rows: Iterable[Sequence[str]]) -> list[Row]:
    """Return premises with a hypothesis that they entail and one that they contradict, as many as there are."""
    hypotheses: dict[str, dict[str, list[str]]] = {}
    for premise, hypothesis, label in rows:
        hypotheses.setdefault(premise, {}).setdefault(label, []).append(hypothesis)
    return [
        (premise, positive, negative)
        for premise, by_label in hypotheses.items()
        for positive, negative in zip(by_label.get("entailment", []), by_label.get("contradiction", []), strict=False)
    ]


def title_triplet_rows(name: str, data: Path, share: slice) -> list[Row]:
    """Return titles with their texts and, as the negative, the text of another title that shares the most words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    rows = title_rows(name, data, share)
    vectorizer = TfidfVectorizer().fit([text for row in rows for text in row])
    titles, texts = (vectorizer.transform([row[side] for row in rows]) for side in (0, 1))
    similarities = (titles @ texts.T).toarray()
    np.fill_diagonal(similarities, -1)
    return [(*row, rows[closest][1]) for row, closest in zip(rows, similarities.argmax(axis=1), strict=True)]


def next_sentence_rows(name: str, data: Path) -> list[Row]:
    """Return every fourth sentence of documents with the one that follows it, both of more than five words."""
    pairs = [
        (entry.sentences[place], entry.sentences[place + 1])
        for entry in documents(name, data)
        for place in range(0, len(entry.sentences) - 1, 4)
    ]
    long = [pair for pair in pairs if all(len(text.split()) > 5 for text in pair)]
    by_second = {second: first for first, second in long}
    by_first = {first: second for second, first in by_second.items()}
    return list(by_first.items())


def topic_rows(name: str, data: Path) -> list[Row]:
    """Return the first three sentences of documents with their topics."""
    return [(" ".join(entry.sentences[:3]), entry.topic) for entry in documents(name, data) if entry.sentences]


def limited(rows: list[Row]) -> list[Row]:
    """Return at most :data:`MOST_TEST` rows, drawn once for all."""
    if len(rows) <= MOST_TEST:
        return rows
    chosen = np.sort(np.random.default_rng(0).choice(len(rows), MOST_TEST, replace=False))
    return [rows[index] for index in chosen]


def pair_test(statistic: PairStatistic, read: Callable[[Path], list[Row]], data: Path) -> Test:
    """Return a test of pairs, whose labels are numbers or those of NLI."""
    rows = limited(read(data))
    labels = [NLI_LABELS[row[2]] if row[2] in NLI_LABELS else float(row[2]) for row in rows]
    return Test(statistic, rows, labels)


def mean_test(read: Callable[[Path], list[Row]], data: Path) -> Test:
    """Return a test of which each row is right or wrong."""
    return Test("mean", limited(read(data)), [])


def _of_pairs(
    name: str, kind: Kind, start: str, rows: int, train: Callable[[Path], list[Row]], test: Callable[[Path], list[Row]]
) -> Task:
    statistic: PairStatistic = "average_precision" if kind == "binary" else "spearman"
    return Task(name, kind, start, rows, train, partial(pair_test, statistic, test))


def _scored(*names: str) -> Callable[[Path], list[Row]]:
    return lambda data: scored_rows(*names, data=data)


def _nli(name: str) -> Callable[[Path], list[Row]]:
    return lambda data: nli_rows(name, data)


def _titles(name: str, share: slice) -> Callable[[Path], list[Row]]:
    return lambda data: title_rows(name, data, share)


def _next_sentences(name: str, share: slice) -> Callable[[Path], list[Row]]:
    return lambda data: next_sentence_rows(name, data)[share]


def _topics(name: str, share: slice) -> Callable[[Path], list[Row]]:
    return lambda data: topic_rows(name, data)[share]


def _classes(name: str, share: slice = slice(None)) -> Callable[[Path], list[Row]]:
    return lambda data: class_rows(name, data, share)


def _classified(
    name: str, start: str, rows: int, train: Callable[[Path], list[Row]], test: Callable[[Path], list[Row]]
) -> Task:
    return Task(name, "classes", start, rows, train, lambda data: mean_test(test, data))


def _titled(name: str, rows: int, source: str, tested: int) -> Task:
    train = _titles(source, slice(tested, None))
    return Task(name, "positives", "default", rows, train, lambda data: mean_test(_titles(source, slice(tested)), data))


def _unlabelled(name: str, start: str, rows: int, source: str, test: str) -> Task:
    read = _scored(test)
    return Task(
        name, "sentences", start, rows, lambda data: sentence_rows(source, data), partial(pair_test, "spearman", read)
    )


HELD, REST = slice(1000), slice(1000, None)
"""The rows of a file without a test split that are tested, and those that training rows are drawn from."""

DEVELOPMENT = (
    _of_pairs("STS-B, 200", "scored", "default", 200, _scored("en/stsb.train"), _scored("en/stsb.test")),
    _of_pairs(
        "STS-B, 2,000, never tuned", "scored", "raw-bert-l6", 2000, _scored("en/stsb.train"), _scored("en/stsb.test")
    ),
    _of_pairs("SICK-R, 1,000", "scored", "bge-small-en", 1000, _scored("en/sickr.train"), _scored("en/sickr.test")),
    _of_pairs("MRPC, 1,000", "binary", "default", 1000, _scored("en/mrpc.train"), _scored("en/mrpc.test")),
    _of_pairs("ATEC, 1,000", "binary", "me5-small", 1000, _scored("zh/atec.train"), _scored("zh/atec.test")),
    _of_pairs("SNLI, 1,000", "nli", "default", 1000, _nli("nli/snli_train_joci.train"), _nli("nli/snli.test")),
    _titled("titles of BBC, 500", 500, "docs/bbc", 500),
    _classified("MR, 64", "default", 64, _classes("en/mr", REST), _classes("en/mr", HELD)),
    _classified("SST-2, 200", "default", 200, _classes("en/sst2.train"), _classes("en/sst2.test")),
    _unlabelled("sentences of Wikipedia, never tuned", "raw-bert-l6", 5000, "docs/wikitext2", "en/stsb.test"),
)
"""Tasks on which defaults are chosen."""

FINAL = (
    _of_pairs(
        "STS, 1,000", "scored", "default", 1000, _scored("en/sts12.test", "en/sts14.test"), _scored("en/sts15.test")
    ),
    _of_pairs(
        "STS, 200, never tuned", "scored", "raw-bert-l6", 200, _scored("en/sts14.test"), _scored("en/sts13.test")
    ),
    _of_pairs("Chinese STS-B, 1,000", "scored", "me5-small", 1000, _scored("zh/stsb.train"), _scored("zh/stsb.test")),
    _of_pairs("PAWS, 1,000", "binary", "default", 1000, _scored("en/paws.dev"), _scored("en/paws.test")),
    _of_pairs("BQ, 1,000", "binary", "me5-small", 1000, _scored("zh/bq.train"), _scored("zh/bq.test")),
    _of_pairs("LingNLI, 1,000", "nli", "bge-small-en", 1000, _nli("nli/lingnli.train"), _nli("nli/lingnli.dev")),
    _titled("titles of ABC, 1,000", 1000, "docs/abc", 1000),
    _classified("SUBJ, 64", "default", 64, _classes("en/subj", REST), _classes("en/subj", HELD)),
    _classified("MPQA, 200", "default", 200, _classes("en/mpqa", REST), _classes("en/mpqa", HELD)),
    _unlabelled("sentences of ABC", "default", 5000, "docs/abc", "en/sts13.test"),
)
"""Tasks that are run once, when the defaults stand."""

FRESH = (
    _of_pairs(
        "STS12, 500", "scored", "bge-small-en", 500, _scored("en/sts13.test", "en/sts15.test"), _scored("en/sts12.test")
    ),
    _of_pairs(
        "SICK-R, 200, language model", "scored", "smollm2-l8", 200, _scored("en/sickr.train"), _scored("en/sickr.test")
    ),
    _of_pairs("Chinese PAWS-X, 500", "binary", "me5-small", 500, _scored("zh/pawsx.dev"), _scored("zh/pawsx.test")),
    _of_pairs("OCNLI, 500", "nli", "me5-small", 500, _nli("nli/ocnli_zh.train"), _nli("nli/ocnli_zh.dev")),
    _of_pairs("CAD, 1,000", "nli", "paraphrase-l3", 1000, _nli("nli/cad.train"), _nli("nli/cad.test")),
    Task(
        "next sentences of GUM, 500",
        "positives",
        "paraphrase-l3",
        500,
        _next_sentences("docs/gum", REST),
        lambda data: mean_test(_next_sentences("docs/gum", HELD), data),
    ),
    _classified("topics of BBC, 48", "paraphrase-l3", 48, _topics("docs/bbc", REST), _topics("docs/bbc", HELD)),
    _unlabelled("sentences of Brown, language model", "smollm2-l8", 2000, "docs/brown", "en/stsb.test"),
    _of_pairs(
        "SICK-R, 500, base size", "scored", "mpnet-base", 500, _scored("en/sickr.train"), _scored("en/sickr.test")
    ),
    _of_pairs("PAWS, 500, base size", "binary", "mpnet-base", 500, _scored("en/paws.dev"), _scored("en/paws.test")),
    _of_pairs("WikiNLI, 1,000", "nli", "default", 1000, _nli("nli/wikinli.train"), _nli("nli/wikinli.test")),
    _of_pairs(
        "LingNLI, 1,000, never tuned, on STS-B",
        "nli",
        "raw-bert-l6",
        1000,
        _nli("nli/lingnli.train"),
        _scored("en/stsb.test"),
    ),
    _of_pairs("LingNLI, 1,000, on STS-B", "nli", "default", 1000, _nli("nli/lingnli.train"), _scored("en/stsb.test")),
)
"""Tasks named when the defaults stood, to see them on what no one had looked at."""

TRIPLETS = (
    Task(
        "triplets of NLI, 1,000, never tuned",
        "triplets",
        "raw-bert-l6",
        1000,
        lambda data: nli_triplet_rows("nli/lingnli.train", data=data),
        partial(pair_test, "spearman", _scored("en/stsb.test")),
    ),
    Task(
        "triplets of NLI, 500",
        "triplets",
        "default",
        500,
        lambda data: nli_triplet_rows("nli/snli.dev", "nli/snli.test", data=data),
        partial(pair_test, "spearman", _scored("en/sickr.test")),
    ),
    Task(
        "titles of BBC with negatives, 500",
        "triplets",
        "paraphrase-l3",
        500,
        lambda data: title_triplet_rows("docs/bbc", data, slice(500, None)),
        lambda data: mean_test(_titles("docs/bbc", slice(500)), data),
    ),
)
"""Tasks on which the method for triplets is chosen."""

LABELS = (50, 100, 200, 500, 1000)
"""Training rows of the learning curves."""


def _pairs_of_mrpc(rows: int) -> Task:
    return _of_pairs(f"MRPC, {rows:,}", "binary", "default", rows, _scored("en/mrpc.train"), _scored("en/mrpc.test"))


CURVES = (
    *(
        task
        for rows in LABELS
        for task in (
            _of_pairs(f"STS-B, {rows:,}", "scored", "default", rows, _scored("en/stsb.train"), _scored("en/stsb.test")),
            _pairs_of_mrpc(rows),
            _titled(f"titles of BBC, {rows:,}", rows, "docs/bbc", 500),
        )
    ),
    _pairs_of_mrpc(2500),
)
"""Tasks that differ in the number of labels alone."""

RACED = tuple(task for task in DEVELOPMENT if task.start == "default" and task.name != "SST-2, 200")
"""Development tasks on which a race is compared with the command without a flag."""

PARTS = {
    "development": DEVELOPMENT,
    "final": FINAL,
    "fresh": FRESH,
    "triplets": TRIPLETS,
    "curves": CURVES,
    "race": RACED,
}
