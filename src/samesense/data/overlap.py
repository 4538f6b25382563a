"""Reads the pairs and texts of sources of any kind, to look for overlap with other data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import numpy as np

from samesense.data.benchmarks.sentences import LabelledSentences
from samesense.data.columns.text_columns import SNIFFED_ROWS
from samesense.data.conventions.column_names import normalize_name, spelled_names
from samesense.data.conventions.named_columns import split_columns
from samesense.data.detected_kind import DetectedKind
from samesense.data.documents import document_sentences, read_documents
from samesense.data.kinds import detect_kind, holds_documents_of_text
from samesense.data.pairs.data import PairData
from samesense.data.pairs.keys import Keys, pair_keys, plain_keys, plain_text
from samesense.data.pairs.read import read_bare_pairs
from samesense.data.rows.load import load_rows, names_in
from samesense.data.rows.sources import Source, holds_lines, name_of
from samesense.data.sentences import Sentences, all_texts
from samesense.data.table_kinds import hold_lists
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.read import read_tuples
from samesense.types import Pair


def read_any_pairs(source: Source, columns: str | None) -> list[Pair]:
    """Return the pairs of a source, even if its labels cannot be read; ``columns`` apply if the source has them."""
    if isinstance(source, PairData):
        return source.pairs()
    if not isinstance(source, TupleData):
        present = _columns_present(source, columns)
        if present is None:
            detected = detect_kind(source)
        elif len(split_columns(present)) < 3 or _has_lists(source):
            # Two text columns without a label are an anchor and a positive.
            detected = DetectedKind("tuples", "", columns=present)
        else:
            detected = DetectedKind("pairs", "", columns=present)
        if detected.kind != "tuples":
            return read_bare_pairs(source, columns=detected.columns if detected.kind == "pairs" else None)
        source = read_tuples([source], columns=detected.columns, drop_bad_rows=True)
    return list(partner_pairs(source))


def _columns_present(source: Source, columns: str | None) -> str | None:
    """Return ``columns`` if the source has all of them, else ``None``."""
    if columns is None:
        return None
    spelled = spelled_names(names_in(list(islice(load_rows(source), SNIFFED_ROWS))))
    if all(normalize_name(name) in spelled for name in split_columns(columns)):
        return columns
    return None


def _has_lists(source: Source) -> bool:
    return hold_lists(list(islice(load_rows(source), SNIFFED_ROWS)), name_of(source))


def partner_pairs(data: TupleData) -> Iterator[Pair]:
    """Yield each anchor with each of its positives, negatives and neutrals."""
    for anchor, *partners in zip(data.anchors, data.positives, data.negatives, data.neutrals, strict=True):
        yield from ((anchor, text) for texts in partners for text in texts)


def count_trained_pairs(data: PairData, train: object) -> int:
    """Return how many of these pairs are in the training data, ignoring sentence order, case and punctuation.

    ``train`` are pairs, anchors with partners, or data of several kinds joined; other data have no pairs.
    """
    return int(np.isin(_pair_keys(data), _pair_keys(train)).sum())


def count_trained_anchors(data: TupleData, train: object) -> int:
    """Return how many of these anchors, or texts with classes, are among those trained on, compared as pairs are."""
    if not isinstance(train, TupleData):
        return 0
    return int(np.isin(plain_keys(data.anchors), plain_keys(train.anchors)).sum())


def _pair_keys(data: object) -> Keys:
    if isinstance(data, PairData):
        return pair_keys(plain_keys(data.sentences1), plain_keys(data.sentences2))
    pairs = list(partner_pairs(data)) if isinstance(data, TupleData) else []
    keys = pair_keys(plain_keys(first for first, _ in pairs), plain_keys(second for _, second in pairs))
    # The mixture of several kinds is a class of the recipes, which this layer does not know.
    components = getattr(data, "parts", ())
    return np.concatenate([keys, *(_pair_keys(component.data) for component in components)])


def read_plain_texts(source: Source, columns: str | None) -> set[str]:
    """Return the texts of a source of any kind; the first of ``columns`` is read if the source has it."""
    return {plain_text(text) for text in _texts_in(source, columns) if text.strip()}


def _texts_in(source: Source, columns: str | None) -> Iterable[str]:
    """Return the texts of a source of any kind as they are."""
    if isinstance(source, Sentences | LabelledSentences):
        return source.texts
    if holds_documents_of_text(source):
        return document_sentences(read_documents(source))
    if isinstance(source, PairData | TupleData):
        return chain.from_iterable(read_any_pairs(source, None))
    if holds_lines(source):
        return all_texts(source)
    # Lists are looked for in a table alone, as that reads its rows.
    if _has_lists(source):
        return chain.from_iterable(read_any_pairs(source, None))
    return all_texts(source, _column_of_texts(source, columns))


def _column_of_texts(source: Source, columns: str | None) -> str | None:
    """Return the first of ``columns`` if the source has it, else a detected column; ``None`` for all texts."""
    column = _columns_present(source, columns and split_columns(columns)[0])
    if column is not None:
        return column
    detected = detect_kind(source)
    if detected.columns and detected.kind in ("texts", "classes"):
        return split_columns(detected.columns)[0]
    return None
