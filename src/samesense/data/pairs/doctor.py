"""Checks labelled pairs before training: counts, contradictions, and overlap with a test set."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from samesense.data.examples import Conflict, conflict_lines, spread_over
from samesense.data.pairs.data import PairData
from samesense.data.pairs.keys import Groups, Keys, group_equal, pair_keys, plain_keys, text_keys
from samesense.data.rows.labels import Kind
from samesense.data.rows.numbers import Scale, number_text
from samesense.metrics.correlation import spearman
from samesense.results import Shown
from samesense.types import Pair

MOST_COUNTED = 12
"""Labels with more distinct values than this are described by quantiles."""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_WORD = re.compile(r"\w+")
_QUANTILES = {"min": 0, "25%": 25, "50%": 50, "75%": 75, "max": 100}

_MOST_SUBSETS = 10


def examine(data: PairData, *, against: Mapping[str, PairData | Sequence[Pair]] | None = None) -> DataReport:
    """Describe labelled pairs and warn of what may spoil a training run or its test.

    ``against`` is other data by name, such as the test set, or its pairs. Pairs in both are counted without regard to
    sentence order, case and punctuation, and so are single sentences.
    """
    first = text_keys(data.sentences1)
    second = text_keys(data.sentences2)
    groups = group_equal(pair_keys(first, second))
    conflicts = list(_conflicts(data, groups))
    keys = _DataKeys.of(data) if against else None
    shared = {name: keys.shared(_DataKeys.of(other_data)) for name, other_data in (against or {}).items() if keys}
    values, counts = np.unique(np.asarray(data.labels, dtype=np.float64), return_counts=True)
    report = DataReport(
        name=data.name,
        sha256=data.sha256,
        rows=len(data),
        kind=data.kind,
        scale=data.scale,
        label_quantiles={name: float(np.percentile(data.labels, percent)) for name, percent in _QUANTILES.items()},
        label_counts=_label_counts(dict(zip(values[: MOST_COUNTED + 1].tolist(), counts.tolist(), strict=False)), data),
        positive_share=int(counts[values == 1].sum()) / len(data) if data.kind == "binary" else None,
        **describe_texts(_texts(data)),
        duplicate_pairs=len(data) - 1 - int(groups.max()),
        conflicting_pairs=len(conflicts),
        conflicts=conflicts,
        equal_pairs=int((first == second).sum()),
        subsets=None if data.subsets is None else dict(Counter(data.subsets)),
        dropped=data.dropped,
        overlaps={name: pairs for name, (pairs, _) in shared.items()},
        shared_sentences={name: sentences for name, (_, sentences) in shared.items()},
        dropped_unlabelled=data.dropped_unlabelled,
        warnings=[],
    )
    warnings = [*_scale_warnings(data), *_direction_warnings(data), *text_warnings(_texts(data)), *_warnings(report)]
    return replace(report, warnings=warnings)


def _conflicts(data: PairData, groups: Groups) -> Iterator[Conflict]:
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

    def shared(self, reference: _DataKeys) -> tuple[int, int]:
        """Return how many pairs and how many sentences are in both."""
        pairs = np.intersect1d(self.pairs, reference.pairs, assume_unique=True)
        return len(pairs), len(np.intersect1d(self.sentences, reference.sentences, assume_unique=True))


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


def texts_line(report: Mapping[str, Any]) -> str:
    """Return the result of :func:`describe_texts` as a line of text."""
    return (
        f"  sentences: {report['distinct_sentences']} distinct; {report['length_unit']}: median "
        f"{number_text(report['words_median'])}, 99 % have at most {number_text(report['words_p99'])}"
    )


def sentence_length(text: str) -> int:
    """Count the words of a sentence, or its characters in a script without spaces between words."""
    if _CJK.search(text):
        return len("".join(text.split()))
    return len(text.split())


def _label_counts(counts: Mapping[float, int], data: PairData) -> dict[str, int] | None:
    if len(counts) > MOST_COUNTED:
        return None
    return {data.label_name(label): count for label, count in counts.items()}


def _texts(data: PairData) -> Iterator[str]:
    return chain(data.sentences1, data.sentences2)


def _warnings(report: DataReport) -> Iterable[str]:
    for name, shared in report.overlaps.items():
        if shared:
            yield f"{_pairs(shared)} also in {name}: a score on it would be inflated"
    if report.conflicting_pairs:
        yield f"{_pairs(report.conflicting_pairs)} given different labels: decide which one is right"
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
    first_words = _words(first)
    second_words = _words(second)
    return len(first_words & second_words) / max(1, len(first_words | second_words))


def _words(text: str) -> set[str]:
    return set("".join(text.split()) if _CJK.search(text) else _WORD.findall(text.casefold()))


_CHANGED = {
    "are in double quotes, with doubled ones inside": (
        re.compile(r'^"(?=.*"".).*"$', re.DOTALL),
        "if a program wrote them, `quoting` csv",
    ),
    "are written as bytes of Python": (
        re.compile(r"^b(['\"]).*\1$", re.DOTALL),
        "decode them, and write the file again",
    ),
    # Curly quotes and dashes of WINDOWS-1252 that were decoded as LATIN1.
    "hold control characters in place of curly quotes or dashes": (
        re.compile("[\u0080-\u009f]"),
        "convert from WINDOWS-1252",
    ),
    # The two bytes of a letter or a curly quote in UTF-8, decoded as LATIN1 or WINDOWS-1252.
    "seem to be UTF-8 that was read in another encoding": (
        re.compile(
            "[\u00c2\u00c3][\u00a0-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u20ac\u201a\u201e]|\u00e2\u20ac"
        ),
        "write the file again from its source",
    ),
}
"""What programs do to texts, how it is recognised, and what to do."""

_EMPTY = ("nan", "none", "null", "(null)", "<null>", "n/a", "undefined")
"""Placeholders that programs write for a missing text, in lower case."""

_LONGEST_PLACEHOLDER = 20
"""Most characters of a placeholder, with spaces around it."""


def text_warnings(texts: Iterable[str]) -> list[str]:
    """Return warnings of texts that programs may have changed: by quotes, other encodings, or marks of missing ones."""
    placeholders = set[str]()
    changed: dict[str, set[int]] = {}  # hashes of different texts by what is wrong with them
    examples: dict[str, str] = {}
    for text in texts:
        if len(text) < _LONGEST_PLACEHOLDER and text.strip().casefold() in _EMPTY:
            placeholders.add(text)
        for problem, (pattern, _) in _CHANGED.items():
            if pattern.search(text):
                changed.setdefault(problem, set()).add(hash(text))
                examples.setdefault(problem, text)
    warnings = [
        f"{len(hashes)} texts {problem}, such as {excerpt(examples[problem], 60)}: {_CHANGED[problem][1]}"
        for problem, hashes in changed.items()
    ]
    if placeholders:
        names = ", ".join(map(repr, sorted(placeholders)))
        warnings.append(f"{names} occur as texts: if they mean that there is no text, leave those rows out")
    return warnings


def _pairs(count: int) -> str:
    if count == 1:
        return "1 pair is"
    return f"{count} pairs are"


@dataclass(frozen=True, kw_only=True, repr=False)
class DataReport(Shown):
    """What ``examine`` found.

    Attributes:
        name: short name of the data.
        sha256: fingerprint of its content.
        rows: number of pairs.
        kind: what the labels are.
        scale: lowest and highest value a label can take, where known.
        label_quantiles: ``min``, ``25%``, ``50%``, ``75%`` and ``max`` of the labels.
        label_counts: rows of each label, where there are at most 12 distinct ones.
        positive_share: share of the rows with label 1, for binary labels.
        distinct_sentences: number of different texts on either side.
        length_unit: ``"words"``, or ``"characters"`` where most sentences are in a script without spaces.
        words_median: median length of a sentence; a text in such a script counts its characters.
        words_p99: 99th percentile of the same.
        duplicate_pairs: rows that repeat an earlier pair, in either order.
        conflicting_pairs: different pairs, in either order, that occur with more than one label.
        conflicts: the rows of these pairs.
        equal_pairs: rows whose two sentences are the same.
        subsets: number of rows of each subset, where the data name subsets.
        overlaps: for each other data set, how many different pairs are also in it.
        shared_sentences: for each other data set, how many different sentences are also in it, in any pair.
        dropped: bad rows left out on request.
        dropped_unlabelled: rows left out because they are marked as having no label.
        warnings: what a user should look at.
        read_as: what the data were taken for, why, and what a method makes of them; empty if they were read before.
        sure: whether column names or the file's form decide the kind; otherwise it is a guess from the cells.
    """

    name: str
    sha256: str
    rows: int
    kind: Kind
    scale: Scale | None
    label_quantiles: dict[str, float]
    label_counts: dict[str, int] | None
    positive_share: float | None
    distinct_sentences: int
    length_unit: str
    words_median: float
    words_p99: float
    duplicate_pairs: int
    conflicting_pairs: int
    conflicts: list[Conflict]
    equal_pairs: int
    subsets: dict[str, int] | None
    overlaps: dict[str, int]
    shared_sentences: dict[str, int]
    dropped: int
    dropped_unlabelled: int
    warnings: list[str]
    read_as: str = ""
    sure: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types."""
        # JSON has no tuples: the scale becomes a list.
        content = asdict(self)
        content["scale"] = None if self.scale is None else list(self.scale)
        return content

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, *, all_rows: bool = False) -> list[str]:
        """Return the report as text: counts, warnings, and the rows that contradict each other (some, or all)."""
        return [*_report_lines(self), *conflict_lines(self.conflicts, all_rows=all_rows)]


def _report_lines(report: DataReport) -> list[str]:
    quantiles = {name: number_text(value) for name, value in report.label_quantiles.items()}
    kind = "inference" if report.kind == "nli" else report.kind
    lines = [
        f"{report.name}: {report.rows} {kind} pairs, labels {quantiles['min']} to {quantiles['max']} "
        f"(median {report.label_quantiles['50%']:.1f})"
    ]
    if report.read_as:
        lines.append(f"  {report.read_as}")
    lines.append(f"  labels: {_labels(report, quantiles)}")
    if report.scale is not None:
        lines.append(f"  scale: {' to '.join(map(number_text, report.scale))}")
    lines.append(texts_line(vars(report)))
    lines.append(
        f"  repeated pairs: {report.duplicate_pairs}; pairs with different labels: {report.conflicting_pairs}; "
        f"pairs of equal sentences: {report.equal_pairs}"
    )
    if report.subsets is not None:
        lines.append(f"  subsets: {_counts(report.subsets, _MOST_SUBSETS)}")
    lines += [
        f"  also in {name}: {pairs} pairs, {report.shared_sentences[name]} of {report.distinct_sentences} sentences"
        for name, pairs in report.overlaps.items()
    ]
    if report.dropped or report.dropped_unlabelled:
        lines.append(f"  left out: {report.dropped} bad rows, {report.dropped_unlabelled} without a label")
    lines += [f"  warning: {warning}" for warning in report.warnings]
    return lines


def _labels(report: DataReport, quantiles: Mapping[str, str]) -> str:
    if report.label_counts is None:
        return ", ".join(f"{name} {value}" for name, value in quantiles.items())
    fraction = report.positive_share
    positive = "" if fraction is None else f" ({100 * fraction:.1f} % positive)"
    return _counts(report.label_counts, len(report.label_counts)) + positive


def _counts(counts: Mapping[str, int], limit: int) -> str:
    listed = [f"{name or '(none)'}: {count}" for name, count in list(counts.items())[:limit]]
    hidden = len(counts) - len(listed)
    return ", ".join(listed) + (f" and {hidden} more" if hidden else "")
