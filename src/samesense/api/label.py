"""``samesense.label``: labels for informative pairs, by a model, a function or a person."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.api.library_function import library_function
from samesense.choices import PairsBy, ScaleName, check_count
from samesense.data.conventions.named_columns import split_columns
from samesense.data.rows.sources import Source, in_memory, name_of, names_among, rereadable
from samesense.data.rows.table_options import Header, Quoting
from samesense.encoder.names import DEFAULT
from samesense.errors import ConfigError, DataError, MissingExtraError
from samesense.execution.unread import log_unread_now
from samesense.inference.names import place_of, split_kind
from samesense.results.shown import Shown
from samesense.types import Precision

if TYPE_CHECKING:
    import numpy as np

    from samesense.data.detected_kind import DetectedKind
    from samesense.data.tuples.data import TupleData
    from samesense.inference.models.model import Model
    from samesense.types import Pair, Score

logger = logging.getLogger(__name__)

DEFAULT_SCALE: ScaleName = "0-5"
DEFAULT_PORT = 8000


@dataclass(frozen=True, repr=False)
class Labelled(Shown):
    """Progress of a file of labels. Prints as a line.

    Attributes:
        path: the file.
        requested: number of pairs chosen.
        labelled: number of them that have a label now.
        cost: cost of a chat endpoint, in words.
    """

    path: Path
    requested: int
    labelled: int
    cost: str = ""

    def __str__(self) -> str:
        """Return the counts, and how to continue."""
        line = f"{self.labelled} of {self.requested} pairs have a label in {self.path}"
        if self.cost:
            line += f", {self.cost}"
        if self.labelled != self.requested:
            line += "; the same command resumes"
        return line


@library_function
def label(  # noqa: PLR0913 - the flags of the command
    source: Source,
    *,
    output: str | Path,
    scorer: Any = None,
    scale: ScaleName | None = None,
    pairs: int = 200,
    pairs_by: PairsBy = "bands",
    model: Any = None,
    other: Any = None,
    max_calls: int | None = None,
    port: int | None = None,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    seed: int = 0,
    precision: Precision = "auto",
) -> Labelled:
    """Choose informative pairs, and label them: by yourself on a page, or by a better model.

    Run again, it goes on with the pairs that have no label yet.

    Args:
        source: texts to make pairs of (a text file with one text a line, a table, documents), or pairs, whose labels
            are ignored; see :func:`samesense.read` for data in memory.
        output: file of the labels, ``.tsv`` or ``.jsonl``, which ``train`` takes; every label is on disk before the
            next pair. One file holds the labels of one scorer, or of people on one scale.
        scorer: labels the pairs: a cross-encoder, ``origin:FOLDER``, ``python-score:module:function``, ``chat:MODEL``
            (an OpenAI-compatible endpoint, ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``), or any other model; see
            :func:`samesense.load`, or a function from pairs to scores. Without one, a page is shown on this machine,
            where a person labels until Ctrl-C.
        scale: the labels that a person or a chat model gives, ``"0-5"`` by default; other scorers have their own.
        pairs: number of pairs to choose.
        pairs_by: ``"bands"``: evenly over the scores of ``model``; ``"neighbours"``: texts near each other by
            ``model``; ``"disagreement"``: as bands, and in each band the pairs on which
            ``model`` and ``other`` differ most; ``"random"``.
        model: chooses the pairs, ``"default"`` unless they are random: model folder, output of ``train``, hub name or
            ``"default"``, with embeddings if pairs are made of texts; see :func:`samesense.load`.
        other: the model to compare with, for disagreement.
        max_calls: most requests to a chat endpoint, retries included.
        port: port of the page, 8000 by default; 0 takes a free one.
        columns: columns of a table: of texts, as in ``"question,answer"``, or of pairs, as in ``"left,right,label"``.
        seed: seed of the random choices; the same call chooses the same pairs.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.

    Raises:
        ConfigError: if options contradict each other, or the file holds the labels of another scorer.
        ModelError: if the scorer gives no score; finished labels are kept.
        OutputError: if the file is no file of labels, or another process writes to it.
    """
    import numpy as np

    from samesense.inference.labelling.file import open_labels

    _check(pairs, pairs_by, model, other)
    _check_for_scorer(scorer, scale, max_calls, port)
    scale = scale or DEFAULT_SCALE
    port = DEFAULT_PORT if port is None else port
    score, by = _scorer(scorer, scale, max_calls, precision)
    if score is None:
        # Checked now, as reading texts and choosing pairs comes before the page.
        _check_page(port)
    read = [
        *names_among(source),
        *(place_of(str(name)) for name in (scorer, model, other) if isinstance(name, str | Path)),
    ]
    # The file is taken before pairs are chosen, so that a second writer is refused at once.
    with open_labels(Path(output), by, read) as labels:
        load_model = partial(_open_model, precision=precision)
        chosen = _chosen(source, columns, pairs, pairs_by, load_model, model, other, np.random.default_rng(seed))
        labels.check(chosen)
        if score is None:
            # Only the page needs the extra `serve`.
            from samesense.inference.labelling.app import run
            from samesense.inference.labelling.desk import Desk

            log_unread_now()  # the page runs until it is stopped
            run(Desk(chosen, labels, scale), port)
        else:
            from samesense.inference.labelling.score import label_all

            label_all(chosen, score, labels)
        return Labelled(labels.path, len(chosen), sum(pair in labels for pair in chosen), getattr(score, "cost", ""))


def _check(pairs: int, pairs_by: PairsBy, model: Any, other: Any) -> None:
    check_count("pairs", pairs)
    if pairs_by == "random" and model is not None:
        raise ConfigError(
            "Random pairs are chosen without a model; received `model` with `pairs_by` random. Leave `model` out, or "
            "choose other `pairs_by`."
        )
    if (pairs_by == "disagreement") != (other is not None):
        raise ConfigError(
            f"Disagreement is between `model` and `other`; received `pairs_by` {pairs_by} "
            f"{'without' if other is None else 'with'} `other`."
        )


def _check_for_scorer(scorer: Any, scale: ScaleName | None, max_calls: int | None, port: int | None) -> None:
    """Raise ConfigError for an option that this scorer, or a person, would not follow."""
    if max_calls is not None and not _is_chat(scorer):
        raise ConfigError("`max_calls` is for a chat endpoint, `scorer` chat:MODEL. Leave it out.")
    if max_calls is not None:
        check_count("max_calls", max_calls)
    if scale is not None and scorer is not None and not _is_chat(scorer):
        raise ConfigError(
            f"`scale` is for a person or a chat model, and this scorer has a scale of its own; received {scale}. "
            "Leave it out."
        )
    if port is not None and scorer is not None:
        raise ConfigError(
            f"`port` is for the page on which a person labels; received {port} with `scorer`. Leave it out."
        )


def _check_page(port: int) -> None:
    MissingExtraError.check("serve", "fastapi", "uvicorn", "prometheus-client")
    from samesense.inference.serve.run import check_port

    check_port(port)


def _is_chat(scorer: Any) -> bool:
    return isinstance(scorer, str) and split_kind(scorer)[0] == "chat"


def _scorer(scorer: Any, scale: ScaleName, max_calls: int | None, precision: Precision) -> tuple[Score | None, str]:
    """Return the function that scores, ``None`` for a person, and its name in the file of labels."""
    from samesense.inference.labelling.score import name_scorer
    from samesense.inference.models.chat import SCALES, Chat
    from samesense.inference.models.functions import is_function

    if scorer is None:
        return None, f"person, {SCALES[scale].name}"
    if _is_chat(scorer):
        return Chat(split_kind(scorer)[1], scale=scale, max_calls=max_calls), f"{scorer}, {SCALES[scale].name}"
    if is_function(scorer):
        return scorer, getattr(scorer, "__qualname__", type(scorer).__name__)
    model = _open_model(scorer, precision=precision)
    return model.scores, name_scorer(model)


def _open_model(model: Any, *, precision: Precision) -> Model:
    from samesense.inference.models.load import load

    # Choosing pairs and scoring them encode the same texts.
    return load(model, precision=precision, cache=True)


def _chosen(
    source: Source,
    columns: str | None,
    count: int,
    by: PairsBy,
    load_model: Callable[[Any], Model],
    model: Any,
    other: Any,
    rng: np.random.Generator,
) -> list[Pair]:
    """Return the chosen pairs, in the order of labelling."""
    from samesense.inference.labelling import choose

    texts, pairs = _read(rereadable(source), columns)
    if texts is None and by == "neighbours":
        raise ConfigError("Neighbours are found among texts; the source holds pairs. Choose other `pairs_by`.")
    encode = None
    scores = None
    if by != "random":
        first = load_model(DEFAULT if model is None else model)
        encode = first.encode
        scores = first.scores
    if texts is None:
        candidates = choose.some_of(pairs, count, rng)
        if not candidates:
            raise DataError(f"{name_of(source)} holds no pair of two different texts. Check that it is the right file.")
    else:
        candidates = choose.pairs_of(texts, by, encode, count, rng)
    second = None if other is None else load_model(other).scores
    chosen = choose.ordered(candidates, by, scores, second, rng)[:count]
    if len(chosen) < count:
        logger.info(f"there are {len(chosen)} pairs to choose from, {count} were asked for")
    return chosen


def _pairs_of(data: TupleData) -> list[Pair]:
    """Return each anchor with each of its positives, negatives and neutral texts."""
    sides = zip(data.anchors, data.positives, data.negatives, data.neutrals, strict=True)
    return [(anchor, text) for anchor, *texts_of_sides in sides for texts in texts_of_sides for text in texts]


def _read(source: Source, columns: str | None) -> tuple[list[str] | None, list[Pair]]:
    """Return the texts of a source; or ``None`` and its pairs, where a row holds two or more texts."""
    from samesense.data.documents import document_sentences, read_documents
    from samesense.data.kinds import detect_kind
    from samesense.data.pairs.data import PairData
    from samesense.data.pairs.read import read_bare_pairs
    from samesense.data.sentences import Sentences, unlabelled_texts
    from samesense.data.tuples.data import TupleData

    if isinstance(source, PairData):
        return None, list(zip(source.sentences1, source.sentences2, strict=True))
    if isinstance(source, TupleData):
        return None, _pairs_of(source)
    if isinstance(source, Sentences):
        return list(source.texts), []
    try:
        detected = detect_kind(source, columns)
    except DataError as error:
        if columns is not None:
            raise
        # Pairs that are to be labelled have no label yet, or one that is not read.
        try:
            return None, read_bare_pairs(source)
        except DataError:
            raise error from None
    if detected.kind == "documents" and not in_memory(source):
        return list(document_sentences(read_documents(source))), []
    if detected.kind not in ("pairs", "tuples"):
        return unlabelled_texts(source, columns), []
    return None, _read_pairs(source, detected)


def _read_pairs(source: Source, detected: DetectedKind) -> list[Pair]:
    from samesense.data.pairs.read import read_bare_pairs
    from samesense.data.tuples.read import read_tuples

    names = detected.columns
    if detected.kind == "tuples" and names is None:
        return _pairs_of(read_tuples(source, drop_bad_rows=True))
    # Pairs are read by three names; that of the label need not exist.
    if names is not None and len(split_columns(names)) == 2:
        names += ",label"
    return read_bare_pairs(source, columns=names)
