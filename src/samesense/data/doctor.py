"""Reports on data of any kind: counts, text lengths, contradictions, and overlaps with other data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from samesense.data.benchmarks.sentences import LabelledSentences, read_sentences
from samesense.data.conflicts import Conflict, describe_conflicts
from samesense.data.detected_kind import DataKind
from samesense.data.documents import document_sentences, read_documents
from samesense.data.kinds import detect_kind
from samesense.data.overlap import partner_pairs, read_any_pairs, read_plain_texts
from samesense.data.pairs.data import PairData
from samesense.data.pairs.doctor import MOST_COUNTED, describe_texts, examine, text_warnings
from samesense.data.pairs.keys import plain_pair, plain_text, sentences_of
from samesense.data.pairs.read import read_pairs
from samesense.data.pairs.report import DataReport, texts_line
from samesense.data.rows.sources import Source, name_of, rereadable, short_name
from samesense.data.sentences import Sentences, read_unlabelled
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.read import read_tuples
from samesense.errors import ConfigError, DataError
from samesense.results.shown import Shown


@dataclass(frozen=True, kw_only=True, repr=False)
class KindReport(Shown):
    """Report on data that are not labelled pairs.

    Attributes:
        name: short name of the data.
        kind: ``"tuples"`` (anchors with positives and negatives), ``"classes"`` (sentences with a class each),
            ``"texts"`` or ``"documents"``.
        read_as: what the data were taken for, why, and what a method makes of them.
        sure: whether column names or the file's form decide the kind; otherwise it is a guess from the cells.
        counts: number of anchors, sentences, documents and so on, by their name.
        texts: how many texts differ and how long they are; see :class:`~samesense.data.DataReport`.
        left_out: number of rows left out, by reason.
        conflicts: rows that label the same texts differently.
        overlaps: for each other source, how many pairs or texts are also in it.
        shared_sentences: for anchors, how many texts are also in each other source, in any pair.
        warnings: what a user should look at.
    """

    name: str
    kind: DataKind
    counts: dict[str, int]
    texts: dict[str, Any]
    read_as: str = ""
    sure: bool = True
    left_out: dict[str, int] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    overlaps: dict[str, int] = field(default_factory=dict)
    shared_sentences: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, *, all_rows: bool = False) -> list[str]:
        """Return the report as text: counts, warnings, and the rows that contradict each other (some, or all)."""
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        left_out = ", ".join(f"{count} {reason}" for reason, count in self.left_out.items() if count)
        lines = [f"{self.name}: {counts}"]
        if self.read_as:
            lines.append(f"  {self.read_as}")
        lines.append(texts_line(self.texts))
        lines += [f"  also in {name}: {self._overlap_text(name, count)}" for name, count in self.overlaps.items()]
        if left_out:
            lines.append(f"  left out: {left_out}")
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return [*lines, *describe_conflicts(self.conflicts, all_rows=all_rows)]

    def _overlap_text(self, name: str, count: int) -> str:
        if name not in self.shared_sentences:
            return str(count)
        return f"{count} pairs, {self.shared_sentences[name]} of {self.texts['distinct_sentences']} sentences"


def report_on(
    source: Source, against: Mapping[str, Source], *, limit_reported: int = 5, **reading_options: Any
) -> DataReport | KindReport:
    """Return a report on one source of any kind.

    Args:
        source: what :func:`samesense.read` takes, anchors with lists, sentences with classes, or documents.
        against: other data by name, such as a test set, which should share nothing with the source.
        limit_reported: how many bad rows an error shows.
        reading_options: ``columns``, ``label_order``, ``label_range`` and ``drop_bad_rows``, as for
            :func:`samesense.read`.

    Raises:
        DataError: if the source cannot be read, or is of no known kind.
    """
    columns = reading_options.get("columns")
    # It is read to detect its kind, and then again as a whole.
    source = rereadable(source)
    # The kind is detected first, because each kind has its own reader and report.
    detected = detect_kind(source, columns)
    reading_options = {**reading_options, "columns": detected.columns}
    report = _report_by_kind(source, detected.kind, against, columns, limit_reported, reading_options)
    return replace(report, read_as=detected.line, sure=detected.sure)


def _report_by_kind(
    source: Source,
    kind: DataKind,
    against: Mapping[str, Source],
    other_columns: str | None,
    limit_reported: int,
    reading_options: Mapping[str, Any],
) -> DataReport | KindReport:
    """Return the report on a source whose kind is known; ``other_columns`` are the columns of the other sources."""
    columns = reading_options["columns"]
    if kind == "pairs":
        if not isinstance(source, PairData):
            source = read_pairs(source, limit_reported=limit_reported, **reading_options)
        return examine(
            source,
            against={name: read_any_pairs(other_source, other_columns) for name, other_source in against.items()},
        )
    if kind == "tuples":
        return _report_on_tuples(_read_tuples(source, limit_reported, reading_options), against, columns)
    if kind == "classes":
        name = short_name(source)  # the name of the file, which the sentences do not keep
        if not isinstance(source, LabelledSentences):
            drop_bad_rows = reading_options.get("drop_bad_rows", False)
            source = read_sentences(source, columns=columns, drop_bad_rows=drop_bad_rows, limit_reported=limit_reported)
        return _report_on_classes(source, name, against, columns)
    if kind == "documents":
        return _report_on_documents(str(source), against)
    if not isinstance(source, Sentences):
        source = read_unlabelled(source, columns=columns)
    return _report_on_texts(source, against, columns)


def _read_tuples(source: Source, limit_reported: int, reading_options: Mapping[str, Any]) -> TupleData:
    if isinstance(source, TupleData):
        return source
    if reading_options.get("label_range") is not None:
        raise ConfigError(f"{name_of(source)}: `label_range` is for scores, and anchors with lists have none.")
    return read_tuples(
        [source],
        columns=reading_options.get("columns"),
        label_order=reading_options.get("label_order"),
        drop_bad_rows=reading_options.get("drop_bad_rows", False),
        limit_reported=limit_reported,
    )


def _report_on_tuples(data: TupleData, against: Mapping[str, Source], columns: str | None) -> KindReport:
    sides = {"positives": data.positives, "negatives": data.negatives, "neutrals": data.neutrals}
    counts = {name: sum(map(len, partners)) for name, partners in sides.items()}
    texts = [*data.anchors, *(text for partners in sides.values() for side in partners for text in side)]
    without = sum(not positives for positives in data.positives)
    anchor_pairs = {plain_pair(*pair) for pair in partner_pairs(data)}
    anchor_sentences = sentences_of(anchor_pairs)
    other_pairs = {
        name: {plain_pair(*pair) for pair in read_any_pairs(other_source, columns)}
        for name, other_source in against.items()
    }
    warnings = []
    if without:
        warnings.append(f"{without} of {len(data)} anchors have no positive")
    return _build_report(
        "pairs",
        texts,
        {name: len(anchor_pairs & pairs) for name, pairs in other_pairs.items()},
        shared_sentences={name: len(anchor_sentences & sentences_of(pairs)) for name, pairs in other_pairs.items()},
        name=data.name,
        kind="tuples",
        counts={"anchors": len(data), **{name: count for name, count in counts.items() if count}},
        left_out=data.left_out,
        conflicts=data.conflicts,
        warnings=warnings,
    )


def _report_on_classes(
    data: LabelledSentences, name: str, against: Mapping[str, Source], columns: str | None
) -> KindReport:
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, text in enumerate(data.texts):
        positions[text].append(position)
    # Data joined from several sources have no row numbers of their own.
    numbers = data.rows or range(1, len(data) + 1)
    classes = Counter(data.labels)
    return _build_report(
        "texts",
        data.texts,
        _count_shared(data.texts, against, columns),
        name=name,
        kind="classes",
        counts={
            "labelled sentences": len(data),
            "classes": len(classes),
            **{f"of class {label}": count for label, count in classes.most_common(MOST_COUNTED)},
        },
        left_out={"bad rows": data.dropped},
        conflicts=[
            Conflict([numbers[position] for position in group], [text], [data.labels[position] for position in group])
            for text, group in positions.items()
            if len({data.labels[position] for position in group}) > 1
        ],
        warnings=_repeated_warning(len(data) - len(positions), len(data)),
    )


def _report_on_texts(data: Sentences, against: Mapping[str, Source], columns: str | None) -> KindReport:
    repeated = data.left_out.get("repeated", 0)
    return _build_report(
        "texts",
        data.texts,
        _count_shared(data.texts, against, columns),
        name=data.name,
        kind="texts",
        counts={"texts": len(data)},
        left_out=data.left_out,
        warnings=_repeated_warning(repeated, len(data) + repeated),
    )


def _report_on_documents(source: str, against: Mapping[str, Source]) -> KindReport:
    documents = list(read_documents(source))
    sentences = list(document_sentences(documents))
    if not sentences:
        raise DataError(f"{source}: none of {len(documents)} documents holds a sentence. Name others.")
    empty = sum(not document for document in documents)
    warnings = []
    if empty:
        warnings.append(f"{empty} of {len(documents)} documents are empty")
    warnings += _repeated_warning(len(sentences) - len(set(sentences)), len(sentences))
    return _build_report(
        "sentences",
        sentences,
        _count_shared(sentences, against, None),
        name=short_name(source),
        kind="documents",
        counts={"documents": len(documents), "sections": sum(map(len, documents)), "sentences": len(sentences)},
        warnings=warnings,
    )


def _build_report(
    unit: str,
    texts: Sequence[str],
    overlaps: Mapping[str, int],
    *,
    warnings: Sequence[str],
    conflicts: Sequence[Conflict] = (),
    **fields: Any,
) -> KindReport:
    """Return a report that also warns of overlaps and conflicts; ``unit`` is what overlaps, such as pairs."""
    shared = [f"{n} {unit} also in {name}: a score on it would be inflated" for name, n in overlaps.items() if n]
    contradictions = []
    if conflicts:
        conflicting = unit.removesuffix("s") if len(conflicts) == 1 else unit
        contradictions.append(
            f"{len(conflicts)} {conflicting} with rows that contradict each other: decide which is right"
        )
    return KindReport(
        texts=describe_texts(texts),
        overlaps=dict(overlaps),
        conflicts=list(conflicts),
        warnings=[*shared, *contradictions, *warnings, *text_warnings(texts)],
        **fields,
    )


def _repeated_warning(repeated: int, rows: int) -> list[str]:
    # Some repetition is normal, as in questions of a support desk.
    if repeated > 0.2 * rows:
        return [f"{repeated} of {rows} texts repeat an earlier one"]
    return []


def _count_shared(texts: Iterable[str], against: Mapping[str, Source], columns: str | None) -> dict[str, int]:
    """Return how many of these texts are also in each other source."""
    distinct = set(map(plain_text, texts))
    return {name: len(distinct & read_plain_texts(other_source, columns)) for name, other_source in against.items()}
