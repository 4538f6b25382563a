"""What the evaluated data are: rows, labels, lengths, scripts, repeated texts, and what models do not read of them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from samesense.data.conventions.numbers import number_text
from samesense.data.pairs.data import PairData
from samesense.data.pairs.doctor import describe_texts
from samesense.data.pairs.keys import pair_key
from samesense.data.sampling import spread_over
from samesense.encoder.names import local_folder
from samesense.errors import SamesenseError
from samesense.evaluation.task import Task
from samesense.files import read_json
from samesense.inference.models.model import Model
from samesense.inference.names import place_of, split_kind
from samesense.reports.grid import ABSENT
from samesense.reports.tables import TitledTable
from samesense.types import Scorer

MOST_LABELS = 6
"""Labels are counted one by one up to this number of different ones, and by fifths of their range beyond it."""

BINS = 5

SAMPLE = 5000
"""Distinct texts at most whose letters and tokens are looked at."""

LEAST_SHARE = 0.01
"""A script is named from this share of the letters on."""

SCRIPTS = {"CJK": "Chinese characters", "HANGUL": "Hangul", "HIRAGANA": "Hiragana", "KATAKANA": "Katakana"}
"""What a script is called, where the Unicode name of its letters does not begin with it."""


def describe_data(tasks: Sequence[Task]) -> TitledTable:
    """Return a row for each evaluated set; of suites that share a set the first is read."""
    rows = []
    suites: dict[str, list[str]] = {}
    first: dict[str, Task] = {}
    for task in tasks:
        suites.setdefault(task.dataset, []).append(task.suite)
        first.setdefault(task.dataset, task)
    for dataset, task in first.items():
        data = pairs_of(task)
        texts = [text for text in task.texts() if isinstance(text, str)]
        rows.append([dataset, ", ".join(suites[dataset]), *_pair_cells(data), *_text_cells(texts)])
    header = ["set", "suites", "rows", "labels", "repeated pairs", "texts", "length", "script"]
    return TitledTable("Rows, labels and texts", header, rows, numeric=())


def pairs_of(task: Task) -> PairData | None:
    """Return the labelled pairs of a task, if it has them."""
    for name in ("data", "test"):
        data = getattr(task, name, None)
        if isinstance(data, PairData):
            return data
    return None


def _pair_cells(data: PairData | None) -> list[str]:
    """Return rows, labels, and how many pairs occur more than once."""
    if data is None:
        return [ABSENT, ABSENT, ABSENT]
    keys = {pair_key(*pair) for pair in data.pairs()}
    return [f"{len(data):,}", label_text(data), f"{len(data) - len(keys):,}"]


def label_text(data: PairData) -> str:
    """Return kind, scale and histogram of labels, as in ``binary: 0 62 %, 1 38 %``."""
    labels = np.asarray(data.labels, dtype=np.float64)
    counts = Counter(labels.tolist())
    if len(counts) <= MOST_LABELS:
        shares = [f"{data.label_name(label)} {_percent(counts[label], len(labels))}" for label in sorted(counts)]
    else:
        numbers, edges = np.histogram(labels, bins=BINS, range=data.scale or (labels.min(), labels.max()))
        shares = [
            f"{number_text(low)} to {number_text(high)} {_percent(int(number), len(labels))}"
            for number, low, high in zip(numbers, edges[:-1].round(2), edges[1:].round(2), strict=True)
        ]
    if data.scale is None or data.kind != "scored":
        scale = ""
    else:
        scale = f" on {'-'.join(map(number_text, data.scale))}"
    return f"{data.kind}{scale}: {', '.join(shares)}"


def _percent(count: int, total: int) -> str:
    percentage = 100 * count / total
    if percentage >= 1 or not count:
        return f"{percentage:.0f} %"
    return "< 1 %"


def _text_cells(texts: Sequence[str]) -> list[str]:
    """Return the number of distinct texts, their lengths, and their scripts."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return ["0", ABSENT, ABSENT]
    facts = describe_texts(distinct)
    median = number_text(facts["words_median"])
    most = number_text(facts["words_p99"])
    longest = max(map(len, distinct))
    length = f"median {median} {facts['length_unit']}, 99 % at most {most}; longest {longest:,} characters"
    return [f"{len(distinct):,}", length, script_text(_sample(distinct))]


def _sample(texts: Sequence[str]) -> list[str]:
    return [texts[row] for row in spread_over(len(texts), min(SAMPLE, len(texts)))]


def script_text(texts: Sequence[str]) -> str:
    """Return the scripts of the letters with their shares: counted, where a language would be guessed."""
    letters = Counter(sign for text in texts for sign in text if sign.isalpha())
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        word = unicodedata.name(letter, "unnamed").split()[0]
        scripts[SCRIPTS.get(word, word.title())] += count
    total = scripts.total()
    common_scripts = [(script, count) for script, count in scripts.most_common() if count >= LEAST_SHARE * total]
    return ", ".join(f"{script} {_percent(count, total)}" for script, count in common_scripts) or "no letters"


def count_unread(models: Sequence[Scorer], tasks: Sequence[Task]) -> TitledTable | None:
    """Return for each model what it reads at most, and the share of each set's texts that it cuts."""
    by_set: dict[str, list[str]] = {}
    for task in tasks:
        texts = by_set.setdefault(task.dataset, [])
        texts += [text for text in task.texts() if isinstance(text, str)]
    rows = []
    for model in models:
        reading = model.reading if isinstance(model, Model) and model.embeds else None
        if reading is None or reading.longest is None:
            continue
        cells = []
        for texts in by_set.values():
            sample = _sample(list(dict.fromkeys(texts)))
            cells.append(_percent(sum(reading.longer(sample)), max(1, len(sample))))
        rows.append([model.name, f"{reading.longest:,}", *cells])
    header = ["model", "tokens at most", *by_set]
    if not rows:
        return None
    return TitledTable("Share of texts that a model cuts", header, rows, numeric=header[1:])


def trained_on(specs: Mapping[str, str], tasks: Sequence[Task]) -> list[str]:
    """Return a line for each evaluated set that a model was trained on, by the hash in its run's record or its card.

    ``specs`` are what the user gave, by the name of the model. A set that is the same row by row is found, others not.
    """
    sets = {task.dataset: data.sha256 for task in tasks if (data := pairs_of(task)) is not None}
    lines = []
    for name, spec in specs.items():
        hashes_by_split = _recorded_data(spec)
        for dataset, digits in sets.items():
            split = next(
                (
                    split
                    for split, split_hash in hashes_by_split.items()
                    # A card has only the first digits of a hash.
                    if split_hash and digits.startswith(split_hash)
                ),
                None,
            )
            # A run has learnt nothing from its test set.
            if split is not None and split != "test":
                lines.append(f"{name} knows {dataset}: these rows were its {split} data, which flatters its figures.")
    return lines


def _recorded_data(spec: str) -> dict[str, str]:
    """Return the hash of each part of the data a model was trained with, from its run's record, else from its card."""
    if split_kind(spec)[0]:
        return {}
    try:
        folder = local_folder(place_of(spec))
        if folder is None:
            return {}
        # The model of a run lies in `model/`, and the record beside that folder.
        for manifest in (folder / "manifest.json", folder.parent / "manifest.json"):
            data = read_json(manifest).get("data") if manifest.is_file() else None
            if isinstance(data, dict):
                return {split: str(row.get("sha256", "")) for split, row in data.items() if isinstance(row, dict)}
        return _carded_data(folder / "README.md")
    except (SamesenseError, OSError, UnicodeDecodeError):  # no record that can be read
        return {}


def _carded_data(card: Path) -> dict[str, str]:
    """Return the hashes in the table of data on a model card: ``| train | name | 100 | `0123456789abcdef` |``."""
    if not card.is_file():
        return {}
    rows = [line.strip("| \n").split(" | ") for line in card.read_text(encoding="utf-8").splitlines() if "`" in line]
    hashes_by_split = {row[0]: row[3].strip("`") for row in rows if len(row) == 4}
    return {
        split: digits for split, digits in hashes_by_split.items() if len(digits) == 16 and split in ("train", "dev")
    }
