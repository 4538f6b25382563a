"""Catalogue of the published benchmarks that this library knows: their splits, sizes, scales and caveats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from samesense.data.conventions.scales import Scale

_HUB_SPLITS = {"train": "train", "dev": "validation", "test": "test"}

Shape = Literal["pairs", "sentences"]

WHOLE = ""
"""The split of a set that was published without splits."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One published data set."""

    name: str  # its name in files, results and errors; also the start of its TSV file names
    suites: tuple[str, ...]  # the suites that include it
    rows: Mapping[str, int]  # published number of rows by split; :data:`WHOLE` if there are no splits
    shape: Shape = "pairs"  # labelled pairs, or labelled single sentences
    scale: Scale | None = (0, 5)  # lowest and highest label of a pair; None for classes of sentences
    # published number of rows of each subset of the test split, or of the whole set
    subsets: Mapping[str, int] = field(default_factory=dict)
    # by split, the hub sources that make it up, in order; no entry if no usable copy is known
    hub: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    language: Literal["en", "zh"] = "en"
    note: str = ""  # caveat for readers of its figures


def split_name(name: str, split: str) -> str:
    """Return the name of one split of a benchmark: ``"stsb.test"``, or ``"mr"`` if there are no splits."""
    if not split:
        return name
    return f"{name}.{split}"


def _sts(year: int, subsets: Mapping[str, int], note: str = "") -> Benchmark:
    return Benchmark(
        name=f"sts{year}",
        suites=("sts", "ranking"),
        rows={"test": sum(subsets.values())},
        subsets=subsets,
        hub={"test": (f"mteb/sts{year}-sts:test",)},
        note="; ".join(remark for remark in (_STSB_DRAWN, note) if remark),
    )


def _sentences(name: str, note: str = "", hub: tuple[str, ...] = (), **rows: int) -> Benchmark:
    # An empty string cannot be the name of an argument.
    sizes = {WHOLE if split == "whole" else split: count for split, count in rows.items()}
    copies = {WHOLE: hub} if hub else {}
    return Benchmark(name=name, suites=("transfer",), rows=sizes, shape="sentences", scale=None, hub=copies, note=note)


def _chinese(name: str, train: int, dev: int, test: int, note: str = "") -> Benchmark:
    copy = f"C-MTEB/{name.upper()}"
    return Benchmark(
        name=name,
        suites=("sts", "binary"),
        rows={"train": train, "dev": dev, "test": test},
        scale=(0, 1),
        hub={split: (f"{copy}:{name}",) for split, name in _HUB_SPLITS.items()},
        language="zh",
        note=note,
    )


_STSB_DRAWN = "STS-B was drawn from SemEval 2012-2017, so a model trained on it has seen part of this test"

# Sizes and notes are those of the publications; differing copies are reported as not comparable.
_TABLE = (
    _sts(
        12,
        {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
        "MSRpar is part of the MRPC training set",
    ),
    _sts(13, {"FNWN": 189, "headlines": 750, "OnWN": 561}, "subset SMT left out, as everywhere"),
    _sts(14, {"deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "OnWN": 750, "tweet-news": 750}),
    _sts(15, {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750}),
    _sts(16, {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209}),
    Benchmark(
        name="stsb",
        suites=("sts", "ranking", "geometry"),
        rows={"train": 5749, "dev": 1500, "test": 1379},
        hub={split: (f"mteb/stsbenchmark-sts:{name}",) for split, name in _HUB_SPLITS.items()},
        note="scores as they are, no regressor trained on top; 12 test pairs are also in its train split",
    ),
    Benchmark(
        name="sickr",
        suites=("sts", "ranking"),
        rows={"train": 4500, "dev": 500, "test": 4927},
        hub={"test": ("mteb/sickr-sts:test",)},
        note="scores as they are, no regressor trained on top; 73 test pairs are also in its train split",
    ),
    _sentences(
        "mr",
        hub=tuple(f"cornell-movie-review-data/rotten_tomatoes:{name}" for name in ("train", "validation", "test")),
        whole=10662,
    ),
    _sentences("cr", hub=("SetFit/SentEval-CR:train", "SetFit/SentEval-CR:test"), whole=3775),
    _sentences("subj", hub=("SetFit/subj:train", "SetFit/subj:test"), whole=10000),
    _sentences("mpqa", whole=10606),
    Benchmark(
        name="sst2",
        suites=("transfer",),
        rows={"train": 67349, "dev": 872, "test": 1821},
        shape="sentences",
        scale=None,
        hub={split: (f"SetFit/sst2:{name}",) for split, name in _HUB_SPLITS.items()},
        note="two classes, the published training set being phrases; 1482 test sentences are also in mr",
    ),
    _sentences("trec", "six coarse classes", train=5452, test=500),
    Benchmark(
        name="mrpc",
        suites=("binary", "transfer"),
        rows={"train": 4076, "test": 1725},
        scale=(0, 1),
        hub={"train": ("nyu-mll/glue@mrpc:train", "nyu-mll/glue@mrpc:validation"), "test": ("nyu-mll/glue@mrpc:test",)},
    ),
    Benchmark(
        name="paws",
        suites=("binary",),
        rows={"train": 49401, "dev": 8000, "test": 8000},
        scale=(0, 1),
        hub={split: (f"google-research-datasets/paws@labeled_final:{name}",) for split, name in _HUB_SPLITS.items()},
    ),
    _chinese("atec", 62477, 20000, 20000, "the usual random re-split of all rows, not the first release's"),
    _chinese("bq", 100000, 10000, 10000),
    _chinese("lcqmc", 238766, 8802, 12500),
    _chinese("pawsx", 49401, 2000, 2000, "25 test and 16 dev rows hold NS for a sentence never translated"),
    Benchmark(
        name="stsb-zh",
        suites=("sts", "ranking", "geometry"),
        rows={"train": 5231, "dev": 1458, "test": 1361},
        hub={split: (f"C-MTEB/STSB:{name}",) for split, name in _HUB_SPLITS.items()},
        language="zh",
        note="machine translation of STS-B, scores rounded; 17 test pairs are also in its train split",
    ),
    Benchmark(
        name="afs",
        suites=("argument",),
        rows={WHOLE: 6000},
        subsets={"DP": 2000, "GC": 2000, "GM": 2000},
        note="random folds share sentences between train and test",
    ),
)

BENCHMARKS: dict[str, Benchmark] = {row.name: row for row in _TABLE}
"""Every known benchmark by name."""
