"""Which method suits what was given: a file of settings says it, a teacher, or what the data are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from shlex import join
from typing import Any, cast

from samesense.data.detected_kind import DetectedKind
from samesense.data.examples import Examples
from samesense.data.kinds import detect_kind
from samesense.data.pairs.data import PairData
from samesense.data.rows.sources import Source, in_memory, short_name
from samesense.data.sentences import Sentences
from samesense.losses.registry import TUPLE_LOSSES
from samesense.recipes.methods import DATA_TYPES, METHODS, Method, method_named
from samesense.recipes.reading import Reading, read_labelled
from samesense.recipes.settings import read_settings, shipped

RAGGED = "supmpn-ragged"
"""Shipped settings for anchors with few partners: none of the paper's copies of the anchor."""


UNLABELLED = "simcse-unlabelled"
"""Shipped settings for texts without labels: a start that was tuned for sentences is kept unless a gain is shown."""


@dataclass(frozen=True)
class DetectedSource:
    """A source and what it holds."""

    source: Source  # labelled pairs are read already where there are several sources
    detected: DetectedKind

    @property
    def key(self) -> tuple[Any, ...]:
        """What two sources share that are trained on as one."""
        if isinstance(self.source, PairData):
            return "pairs", self.source.kind, self.source.scale
        columns = self.detected.columns
        if self.detected.kind == "texts":
            columns = None  # texts are texts, however their column is called
        return self.detected.kind, columns


@dataclass(frozen=True)
class Fitting:
    """A method, and how it is to be taken for the data at hand."""

    method: Method
    form: str = ""  # shipped file of what differs from the method's own
    columns: str | None = None  # columns of the data, where they are given or guessed
    messages: tuple[str, ...] = ()  # lines to print: what the data are, and how that was detected
    sources: tuple[DetectedSource, ...] = ()  # of method mixed, its sources


def fitting_method(
    data: Sequence[Source] | Examples,
    config: str,
    overrides: Mapping[str, Any],
    reading: Reading = Reading(),  # noqa: B008 - frozen
    *,
    method: str = "auto",
    ranks_triplets: bool = False,
) -> Fitting:
    """Return the method that suits what was given, or the named one.

    A shipped file of settings names its method; a teacher is for RankCSE; data that are read already go to the first
    method that takes their class. Otherwise the kind of the data decides, see
    :func:`samesense.data.kinds.detect_kind`; sources of several kinds, or labels of several scales, are for method
    mixed. With ``ranks_triplets``, or a setting that CoSENT alone has, triplets are ranked as pairs by CoSENT.

    Raises:
        ConfigError: if there is no such method.
        DataError: if a source is of no known kind, or several are labelled pairs and one of them cannot be read.
    """
    if method == "auto" and config in shipped():
        # A shipped file is called METHOD or METHOD-VARIANT, and one method may begin with the name of another.
        method = max((name for name in METHODS if config.startswith(name)), key=len)
    if method not in ("auto", "mixed"):
        requested = method_named(method)
        return Fitting(requested, _form_of_method(requested, config), columns=reading.columns)
    if isinstance(data, DATA_TYPES):
        are_triplets = isinstance(data, PairData) and data.kind == "triplet"
        if are_triplets and not ranks_triplets and _is_for_triplets(config, overrides):
            return Fitting(METHODS["supmpn"], RAGGED if config == "auto" else "", columns=reading.columns)
        suitable = next(method for method in METHODS.values() if isinstance(data, method.data))
        form = _form_of_method(suitable, config)
        if overrides.get("teacher"):
            suitable = METHODS["rankcse"]
        elif isinstance(data, Sentences) and config == "auto":
            form = UNLABELLED
        return Fitting(suitable, form, columns=reading.columns)
    return _fitting_of_sources(
        cast(Sequence[Source], data),
        config,
        overrides,
        reading,
        is_mixed=method == "mixed",
        ranks_triplets=ranks_triplets,
    )


def _fitting_of_sources(
    sources: Sequence[Source],
    config: str,
    overrides: Mapping[str, Any],
    reading: Reading,
    *,
    is_mixed: bool,
    ranks_triplets: bool,
) -> Fitting:
    """Return the method that suits the kinds of the sources; ``is_mixed`` if it was chosen to be method mixed."""
    detected = _detect_kinds(sources, reading, read=is_mixed or len(sources) > 1)
    has_triplets = any(item.detected.triplets for item in detected)
    if has_triplets and (ranks_triplets or not _is_for_triplets(config, overrides)):
        detected = tuple(replace(item, detected=replace(item.detected, triplets=False)) for item in detected)
    lines = tuple(
        f"{short_name(source)}: {item.detected.line}; `method` overrides"
        for source, item in zip(sources, detected, strict=True)
    )
    lines += _parallel_files(sources, detected)
    if is_mixed or len({item.key for item in detected}) > 1:
        return Fitting(METHODS["mixed"], messages=lines, sources=detected)
    if overrides.get("teacher"):
        return Fitting(METHODS["rankcse"], columns=reading.columns)
    first = detected[0].detected
    if first.kind in ("documents", "texts") and config == "auto":
        form = UNLABELLED
    else:
        form = form_of(first)
    return Fitting(METHODS[first.info.method], form, first.columns, lines)


_LANGUAGE = re.compile(r"\.[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
"""The ending of a file of texts in one language, such as ``.de`` and ``.pt-BR``."""


def _parallel_files(sources: Sequence[Source], detected: Sequence[DetectedSource]) -> tuple[str, ...]:
    """Return a line on two text files whose names differ by a language alone: their lines may be translations."""
    by_stem: dict[str, list[str]] = {}
    for source, item in zip(sources, detected, strict=True):
        if item.detected.kind != "texts" or in_memory(source):
            continue
        name = str(source)
        language = PurePath(name).suffix
        if language != ".txt" and _LANGUAGE.fullmatch(language):
            by_stem.setdefault(name.removesuffix(language), []).append(name)
    files = next((names[:2] for names in by_stem.values() if len(names) > 1), [])
    if not files:
        return ()
    return (
        f"{' and '.join(map(short_name, files))}: each line is a text of its own. If lines of one number are "
        f"translations, train on a table of both: (printf 'anchor\\tpositive\\n'; paste {join(files)}) > pairs.tsv",
    )


def _is_for_triplets(config: str, overrides: Mapping[str, Any]) -> bool:
    """Return whether triplets are SupMPN's: a setting or a loss of CoSENT alone has them ranked as pairs."""
    stated = dict(overrides)
    if config != "auto" and config not in shipped():
        stated = {**read_settings(config), **stated}
    cosent, supmpn = (METHODS[name].settings.model_fields.keys() for name in ("cosent", "supmpn"))
    return not stated.keys() & (cosent - supmpn) and stated.get("loss", "supmpn") in TUPLE_LOSSES.names()


def _detect_kinds(data: Sequence[Source], reading: Reading, *, read: bool) -> tuple[DetectedSource, ...]:
    """Return what the sources hold, labelled pairs read where their labels decide what is trained on as one."""
    detected = [DetectedSource(source, detect_kind(source, reading.columns)) for source in data]
    if not read:
        return tuple(detected)
    return tuple(
        replace(item, source=_read(item, reading)) if item.detected.kind == "pairs" else item for item in detected
    )


def _read(item: DetectedSource, reading: Reading) -> PairData:
    if isinstance(item.source, PairData):
        return item.source
    pair_reading = replace(reading, columns=item.detected.columns).for_evaluation(item.source)
    return read_labelled([item.source], None, pair_reading)


def _form_of_method(method: Method, config: str) -> str:
    """Return the shipped file of what differs for a method without a file of settings."""
    if method.name == "supmpn" and config == "auto":
        return RAGGED
    return ""


def form_of(detected: DetectedKind) -> str:
    """Return the shipped file of what differs for a kind of data from the settings of its method."""
    if detected.triplets or detected.kind in ("tuples", "classes"):
        return RAGGED
    return ""
