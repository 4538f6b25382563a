"""Examines labelled pairs before training: counts, contradictions, and overlap with a test set."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from samesense.data.conflicts import Conflict
from samesense.data.conventions.numbers import number_text
from samesense.data.conventions.texts import PYTHON_BYTES
from samesense.data.pairs.data import PairData
from samesense.data.pairs.keys import Groups, Keys, group_equal, pair_keys, plain_keys, text_keys
from samesense.data.pairs.report import DataReport
from samesense.data.sampling import spread_over
from samesense.failures import excerpt
from samesense.metrics.correlation import spearman
from samesense.types import Floats, Indices, Pair

MOST_COUNTED = 12
"""Labels with more distinct values than this are described by quantiles."""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_WORD = re.compile(r"\w+")
_QUANTILES = {"min": 0, "25%": 25, "50%": 50, "75%": 75, "max": 100}


def examine(data: PairData, *, against: Mapping[str, PairData | Sequence[Pair]] | None = None) -> DataReport:
    """Describe labelled pairs and warn of what may spoil a training run or its test.

    ``against`` is other data by name, such as the test set, or its pairs. Pairs in both are counted without regard to
    sentence order, case and punctuation, and so are single sentences.
    """
    first = text_keys(data.sentences1)
    second = text_keys(data.sentences2)
    groups = group_equal(pair_keys(first, second))
    conflicts = list(_find_conflicts(data, groups))
    shared = _count_shared(data, against or {})
    values, counts = np.unique(np.asarray(data.labels, dtype=np.float64), return_counts=True)
    report = DataReport(
        name=data.name,
        sha256=data.sha256,
        rows=len(data),
        kind=data.kind,
        scale=data.scale,
        label_quantiles={name: float(np.percentile(data.labels, percent)) for name, percent in _QUANTILES.items()},
        label_counts=_name_counts(data, values, counts),
        positive_share=int(counts[values == 1].sum()) / len(data) if data.kind == "binary" else None,
        **describe_texts(_all_texts(data)),
        duplicate_pairs=len(data) - 1 - int(groups.max()),
        conflicting_pairs=len(conflicts),
        conflicts=conflicts,
        equal_pairs=int((first == second).sum()),
        subsets=None if data.subsets is None else dict(Counter(data.subsets)),
        dropped=data.dropped,
        overlaps={name: overlap.pairs for name, overlap in shared.items()},
        shared_sentences={name: overlap.sentences for name, overlap in shared.items()},
        dropped_unlabelled=data.dropped_unlabelled,
        warnings=[],
    )
    warnings = [
        *_scale_warnings(data),
        *_direction_warnings(data),
        *text_warnings(_all_texts(data)),
        *_count_warnings(report),
    ]
    return replace(report, warnings=warnings)


def _find_conflicts(data: PairData, groups: Groups) -> Iterator[Conflict]:
    """Yield the rows of each group of equal pairs whose labels differ."""
    numbers = data.rows or range(1, len(data) + 1)
    labels = np.asarray(data.labels, dtype=np.float64)
    order = np.argsort(groups, kind="stable")
    # First position of each group among the sorted rows.
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    differ = np.minimum.reduceat(labels[order], starts) < np.maximum.reduceat(labels[order], starts)
    ends = [*starts[1:], len(order)]
    for group in np.flatnonzero(differ):
        positions = order[starts[group] : ends[group]].tolist()
        yield Conflict(
            rows=[numbers[position] for position in positions],
            texts=[data.sentences1[positions[0]], data.sentences2[positions[0]]],
            labels=[data.label_name(data.labels[position]) for position in positions],
        )


class _Overlap(NamedTuple):
    """The numbers of distinct pairs and sentences that are also in other data."""

    pairs: int
    sentences: int


def _count_shared(data: PairData, against: Mapping[str, PairData | Sequence[Pair]]) -> dict[str, _Overlap]:
    """Return what is shared with other data, by their name."""
    if not against:
        return {}
    keys = _DataKeys.of(data)
    return {name: keys.count_shared(_DataKeys.of(other_data)) for name, other_data in against.items()}


@dataclass(frozen=True)
class _DataKeys:
    """Keys of the distinct pairs and sentences of a data set, without case and punctuation."""

    pairs: Keys
    sentences: Keys

    @classmethod
    def of(cls, data: PairData | Sequence[Pair]) -> _DataKeys:
        if isinstance(data, PairData):
            first = plain_keys(data.sentences1)
            second = plain_keys(data.sentences2)
        else:
            first = plain_keys(pair[0] for pair in data)
            second = plain_keys(pair[1] for pair in data)
        return cls(np.unique(pair_keys(first, second)), np.unique(np.concatenate([first, second])))

    def count_shared(self, other: _DataKeys) -> _Overlap:
        """Return how many pairs and how many sentences are in both."""
        pairs = np.intersect1d(self.pairs, other.pairs, assume_unique=True)
        sentences = np.intersect1d(self.sentences, other.sentences, assume_unique=True)
        return _Overlap(len(pairs), len(sentences))


def describe_texts(texts: Iterable[str]) -> dict[str, Any]:
    """Return the number of distinct texts and their lengths, as fields of :class:`DataReport`."""
    keys = array("q")  # hashes instead of texts, which need not stay in memory
    counted = array("q")
    unspaced = 0
    for text in texts:
        keys.append(hash(text))
        counted.append(sentence_length(text))
        unspaced += _CJK.search(text) is not None
    lengths = np.asarray(counted)
    return {
        "distinct_sentences": len(np.unique(np.asarray(keys))),
        "length_unit": "characters" if 2 * unspaced > len(lengths) else "words",
        "words_median": float(np.median(lengths)),
        # A length that occurs, and no value between two.
        "words_p99": float(np.percentile(lengths, 99, method="inverted_cdf")),
    }


def sentence_length(text: str) -> int:
    """Count the words of a sentence, or its characters in a script without spaces between words."""
    if _CJK.search(text):
        return len("".join(text.split()))
    return len(text.split())


def _name_counts(data: PairData, labels: Floats, counts: Indices) -> dict[str, int] | None:
    """Return the number of pairs of each label, by its name; ``None`` if there are too many labels to list."""
    if len(labels) > MOST_COUNTED:
        return None
    return dict(zip(map(data.label_name, labels.tolist()), counts.tolist(), strict=True))


def _all_texts(data: PairData) -> Iterator[str]:
    return chain(data.sentences1, data.sentences2)


def _count_warnings(report: DataReport) -> Iterable[str]:
    for name, shared in report.overlaps.items():
        if shared:
            yield f"{_pairs_are(shared)} also in {name}: a score on it would be inflated"
    if report.conflicting_pairs:
        yield f"{_pairs_are(report.conflicting_pairs)} given different labels: decide which one is right"
    if report.equal_pairs > 0.5 * report.rows:
        yield (
            f"{report.equal_pairs} of {report.rows} pairs are a text with itself, which teaches nothing: check "
            "that the two columns of texts are the right ones"
        )
    if report.duplicate_pairs > 0.2 * report.rows:
        yield f"{report.duplicate_pairs} of {report.rows} rows repeat an earlier pair: they count more than the others"
    # On the scale of cosines, -1 is the label of opposite texts.
    if set(report.label_counts or ()) == {"-1", "0", "1"}:
        yield "the labels are -1, 0 and 1: if -1 marks pairs without a label, leave those rows out"
    if report.positive_share is not None and report.positive_share < 0.05:
        yield f"only {100 * report.positive_share:.1f} % of the pairs are positive: a threshold will be unreliable"


def _scale_warnings(data: PairData) -> Iterable[str]:
    if data.own_scale and data.scale is not None:
        low, high = map(number_text, data.scale)
        yield (
            f"no usual scale ends where these labels do, so {low} to {high} is taken: if labels could go further, give "
            "`label_range` LOW HIGH"
        )


FEWEST_PAIRS = 20
"""Pairs needed to check the direction of labels."""

MOST_PAIRS = 20_000
"""Most pairs used for that check; of more, an even sample."""

REVERSED = -0.3
"""Rank correlation of labels with word overlap; at or below it labels seem to be distances."""


def _direction_warnings(data: PairData) -> Iterable[str]:
    """Yield a warning if labels fall as two texts share more words, because a higher label must mean more similar."""
    if data.kind not in ("scored", "binary") or len(data) < FEWEST_PAIRS:
        return
    # An even sample, because files are often sorted by label.
    positions = spread_over(len(data), MOST_PAIRS)
    overlaps = [_word_overlap(data.sentences1[position], data.sentences2[position]) for position in positions]
    labels = [data.labels[position] for position in positions]
    # A correlation needs two values of each.
    if len(set(overlaps)) < 2 or len(set(labels)) < 2:
        return
    correlation = spearman(overlaps, labels)
    if correlation <= REVERSED:
        yield (
            f"labels fall as two texts share more words (Spearman {correlation:.2f}): they seem to be distances, and a "
            "label must be larger the more alike two texts are"
        )


def _word_overlap(first: str, second: str) -> float:
    """Return the Jaccard similarity of the words of two texts, or of their characters in scripts without spaces."""
    first_words = _distinct_words(first)
    second_words = _distinct_words(second)
    return len(first_words & second_words) / max(1, len(first_words | second_words))


def _distinct_words(text: str) -> set[str]:
    return set("".join(text.split()) if _CJK.search(text) else _WORD.findall(text.casefold()))


class _Corruption(NamedTuple):
    """A change that programs make to texts, as the predicate of a sentence, with its pattern and its fix."""

    predicate: str
    pattern: re.Pattern[str]
    fix: str


_CORRUPTIONS = (
    _Corruption(
        "are in double quotes, with doubled ones inside",
        re.compile(r'^"(?=.*"".).*"$', re.DOTALL),
        "if a program wrote them, `quoting` csv",
    ),
    _Corruption(
        "have backslashes before quotes",
        re.compile(r'\\"'),
        "write the file again without them; in pandas, read_csv takes them off by escapechar",
    ),
    _Corruption(
        "are written as bytes of Python",
        PYTHON_BYTES,
        "decode them, and write the file again",
    ),
    # Curly quotes and dashes of WINDOWS-1252 that were decoded as LATIN1.
    _Corruption(
        "hold control characters in place of curly quotes or dashes",
        re.compile("[\u0080-\u009f]"),
        "convert from WINDOWS-1252",
    ),
    # The two bytes of a letter or a curly quote in UTF-8, decoded as LATIN1 or WINDOWS-1252.
    _Corruption(
        "seem to be UTF-8 that was read in another encoding",
        re.compile(
            "[\u00c2\u00c3][\u00a0-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u20ac\u201a\u201e]|\u00e2\u20ac"
        ),
        "write the file again from its source",
    ),
)

_PLACEHOLDERS = ("nan", "none", "null", "(null)", "<null>", "n/a", "undefined")
"""Placeholders that programs write for a missing text, in lower case."""

_LONGEST_PLACEHOLDER = 20
"""Most characters of a placeholder, with spaces around it."""


def text_warnings(texts: Iterable[str]) -> list[str]:
    """Return warnings of texts that programs may have changed: by quotes, other encodings, or marks of missing ones."""
    placeholders = set[str]()
    corrupted: dict[_Corruption, set[int]] = {}  # hashes of the different texts
    examples: dict[_Corruption, str] = {}
    for text in texts:
        if len(text) < _LONGEST_PLACEHOLDER and text.strip().casefold() in _PLACEHOLDERS:
            placeholders.add(text)
        for corruption in _CORRUPTIONS:
            if corruption.pattern.search(text):
                corrupted.setdefault(corruption, set()).add(hash(text))
                examples.setdefault(corruption, text)
    warnings = [
        f"{len(hashes)} texts {corruption.predicate}, such as {excerpt(examples[corruption], 60)}: {corruption.fix}"
        for corruption, hashes in corrupted.items()
    ]
    if placeholders:
        names = ", ".join(map(repr, sorted(placeholders)))
        warnings.append(f"{names} occur as texts: if they mean that there is no text, leave those rows out")
    return warnings


def _pairs_are(count: int) -> str:
    if count == 1:
        return "1 pair is"
    return f"{count} pairs are"
