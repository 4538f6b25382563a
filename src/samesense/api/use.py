"""``samesense.similarity``, ``explain``, ``encode``, ``mine``, ``rerank`` and ``whiten``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from samesense.choices import check_choice
from samesense.data.formats.memory import Source, as_sources, in_memory, names_among, short_name
from samesense.errors import ConfigError, DataError
from samesense.hashes import rows_hash

if TYPE_CHECKING:
    from samesense.context.origin.explain import Explanation as Contexts
    from samesense.encoder.maps.whitening import Whitening
    from samesense.encoder.windows import Chunk
    from samesense.inference.calibration.storage import Threshold
    from samesense.inference.explain import By, Explanation
    from samesense.inference.models.backends import BackendOption
    from samesense.inference.search.mining import MinedPair
    from samesense.inference.search.rerank import Ranked
    from samesense.inference.sentences import SentenceMatches
    from samesense.types import Embeddings, Pair, Precision, Scores

logger = logging.getLogger(__name__)


def similarity(
    model: Any,
    text1: str | Sequence[Pair] | Sequence[str],
    text2: str | Sequence[str] | None = None,
    *,
    calibrated: bool = False,
    calibration: str | Path | None = None,
    by: Literal["whole", "sentences"] = "whole",
    precision: Precision = "auto",
) -> float | Scores:
    """Score two texts, or pairs of texts: the cosine of their embeddings, or the score of a cross-encoder.

    To score more than once, open the model once: ``samesense.load(name).similarity(a, b)``.

    Args:
        model: whatever :func:`samesense.load` takes.
        text1: first text, or pairs, or the first texts of pairs.
        text2: second text, or the second texts of pairs, as many.
        calibrated: give values on the scale of the labels that the model was calibrated on.
        calibration: file of the calibration, and calibrated is meant; by default that in the model's folder.
        by: what is compared: ``"whole"`` texts, or documents by their best-matching ``"sentences"``.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.

    Returns:
        One score, or ``(pairs,)`` of them.
    """
    from samesense.inference.models.load import load

    check_choice("by", by, ("whole", "sentences"))
    pairs = _pairs(text1, text2)
    opened = load(model, precision=precision, calibration=None if calibration is None else Path(calibration))
    calibrated = calibrated or calibration is not None
    if by == "sentences":
        from samesense.inference.sentences import check_scale, sentence_scores

        check_scale(calibrated=calibrated)
        scores = sentence_scores(opened, pairs)
    else:
        scores = opened.scores(pairs, calibrated=calibrated)
    return float(scores[0]) if isinstance(text1, str) else scores


def _pairs(text1: Any, text2: Any) -> list[Pair]:
    """Return two texts, two lists of texts, or pairs, as pairs."""
    from samesense.inference.models.model import check_pairs

    if isinstance(text1, str) and isinstance(text2, str):
        return [(text1, text2)]
    if isinstance(text1, str) or isinstance(text2, str):
        raise DataError("`similarity` compares two texts; received one. Give both, or a list of pairs.")
    if text2 is None:
        pairs = list(text1)
    else:
        first, second = list(text1), list(text2)
        if len(first) != len(second):
            raise DataError(
                f"Two lists of texts are compared text by text; received {len(first)} and {len(second)}. For each "
                "with each, take the embeddings: samesense.encode."
            )
        pairs = list(zip(first, second, strict=True))
    check_pairs(pairs)
    return pairs


def explain(
    model: Any,
    text1: str,
    text2: str,
    *,
    by: By | Literal["sentences"] = "auto",
    top: int = 10,
    precision: Precision = "auto",
) -> Explanation | Contexts | SentenceMatches:
    """Say which words made the score of two texts; of an Origin, which contexts.

    Args:
        model: whatever :func:`samesense.load` takes.
        text1: first text.
        text2: second text.
        by: ``"tokens"``: exact sums over pairs of token vectors, where the embedding is their mean; ``"occlusion"``:
            what the score loses without a word, for any model; ``"auto"`` takes tokens where it can; ``"sentences"``:
            which sentences of two documents match.
        top: contexts of an Origin on each side.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.

    Returns:
        Prints as a table: the share of each word of either text, and of pairs of words.
    """
    from samesense.inference.explain import By
    from samesense.inference.models.load import load
    from samesense.inference.names import ORIGIN

    check_choice("by", by, (*get_args(By), "sentences"))
    if not isinstance(text1, str) or not isinstance(text2, str):
        raise DataError(
            f"`explain` takes two texts; received {type(text1).__name__} and {type(text2).__name__}. Explain pair by "
            "pair."
        )
    if by == "sentences":
        from samesense.inference.sentences import match_sentences

        return match_sentences(load(model, precision=precision), [(text1, text2)])[0]
    if isinstance(model, str) and model.startswith(ORIGIN):
        from samesense.context.origin.load import open_origin

        return open_origin(Path(model.removeprefix(ORIGIN)).expanduser()).explain(text1, text2, top=top)
    from samesense.inference.explain import explain as run

    return run(load(model, precision=precision), text1, text2, by=by)


def encode(  # noqa: PLR0913 - each is one flag of the command
    model: Any,
    source: Source,
    *,
    normalize: bool = False,
    columns: str | None = None,
    chunk: Chunk | None = None,
    backend: BackendOption = "auto",
    precision: Precision = "auto",
    deterministic: bool = False,
    dim: int | None = None,
    prompt: str | None = None,
) -> Embeddings:
    """Return the embeddings of texts, lines of a file or rows of a table, float32 ``(texts, dim)``, in order.

    Args:
        model: whatever :func:`samesense.load` takes and has embeddings.
        source: texts, a text file with one text a line (plain or .gz), or a table.
        columns: name of the table's column of texts, if several hold texts.
        normalize: scale every vector to unit length.
        chunk: cut texts that are longer than what the model reads into windows, and take the ``"mean"`` of their
            vectors, or the ``"max"`` of each dimension; by default the model leaves the rest of a text out.
        backend: ``"auto"``, ``"torch"``, ``"onnx"`` or ``"onnx-int8"``, the last two for exported folders.
        precision: arithmetic of torch; auto is bfloat16 where the processor computes in it.
        deterministic: bits of a vector depend on its text alone, not on the texts beside it; slower.
        dim: keep the first so many numbers of each vector, at unit length: for a model trained with ``matryoshka``.
        prompt: read before every text: one of the model's prompts by name, or a text; by default the model's own.
    """
    from samesense.encoder.windows import Chunk
    from samesense.inference.models.load import load
    from samesense.inference.stream import encode_with_bar

    if chunk is not None:
        check_choice("chunk", chunk, Chunk)
    texts = texts_of(source, columns)
    opened = load(
        model, backend=backend, precision=precision, deterministic=deterministic, sample=texts, dim=dim, prompt=prompt
    )
    return encode_with_bar(opened, texts, normalize=normalize, chunk=chunk)


def read_vectors(place: str | Path) -> Embeddings:
    """Return the vectors that ``samesense encode`` wrote, float32 ``(texts, dim)``, in order.

    Of ``--vectors int8`` a number is the middle of its step, of ``binary`` it is 1 or -1.

    Args:
        place: an ``.npy`` or ``.parquet`` file, the folder of ``--shard-size``, or the URL of either.
    """
    from samesense.encoder.vectors.stored import stored_rows
    from samesense.inference.shards.read import read_shards

    return stored_rows(place) if str(place).endswith((".npy", ".parquet")) else read_shards(place)


def texts_of(source: Source, columns: str | None) -> list[str]:
    """Return the texts of what a command or a function is given, in order, none of them empty."""
    from samesense.data.sentences import one_text_a_row
    from samesense.inference.stream import read_texts

    return one_text_a_row(source, columns) if in_memory(source) else read_texts(str(source), columns)


def _unit_vectors(model: Any, texts: list[str], precision: Precision) -> Embeddings:
    from samesense.inference.models.load import load
    from samesense.inference.stream import encode_with_bar

    return encode_with_bar(load(model, precision=precision), texts, normalize=True)


def mine(
    source: Source,
    *,
    model: Any = "default",
    top: int = 100,
    threshold: Threshold = 0.0,
    columns: str | None = None,
    precision: Precision = "auto",
) -> list[MinedPair]:
    """Find the pairs of texts that are closest in meaning, each pair once, the closest first.

    Args:
        source: texts, a text file with one text a line (plain or .gz), or a table.
        columns: name of the table's column of texts, if several hold texts.
        model: whatever :func:`samesense.load` takes and has embeddings.
        top: pairs returned at most.
        threshold: lowest cosine of a pair, from -1 to 1; ``"calibrated"`` is that of the model's calibration.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.

    Returns:
        Positions of both texts, from 0, and the cosine.
    """
    from samesense.inference.calibration.storage import threshold_of
    from samesense.inference.search.mining import check_mining
    from samesense.inference.search.mining import mine as run

    cut = threshold_of(model, threshold)
    check_mining(top, cut)
    return run(_unit_vectors(model, texts_of(source, columns), precision), top=top, threshold=cut)


def rerank(
    source: Source,
    *,
    model: Any,
    cross: Any,
    query: str,
    top: int = 10,
    columns: str | None = None,
    precision: Precision = "auto",
) -> list[Ranked]:
    """Find texts with an encoder, and order the best of them with a cross-encoder.

    Args:
        source: texts, a text file with one text a line (plain or .gz), or a table.
        columns: name of the table's column of texts, if several hold texts.
        model: encoder that finds; whatever :func:`samesense.load` takes and has embeddings.
        cross: cross-encoder that orders; whatever :func:`samesense.load` takes.
        query: what is looked for.
        top: texts that are found, scored again and returned.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.
    """
    from samesense.inference.models.load import load
    from samesense.inference.search.rerank import rerank as run

    if not query.strip():
        raise DataError('The `query` is empty. Give a text, such as "How do I get home?".')
    finder = load(model, precision=precision)
    if not finder.embeds:
        raise ConfigError(f"`model` finds texts by their embeddings, and {finder.name} has none: {finder.protocol}.")
    return run(query, texts_of(source, columns), finder.encode, load(cross, precision=precision).scores, top)


def whiten(
    model: str,
    texts: Source | Sequence[Source],
    *,
    output: str | Path,
    dim: int | None = None,
    columns: str | None = None,
    precision: Precision = "float32",
    overwrite: bool = False,
) -> Whitening:
    """Save a model with a whitening behind it, fitted on unlabelled texts: a linear layer that every reader applies.

    Of a language model, the token to which all others attend is left out of the mean first.

    Args:
        model: model folder, output of train, hub name, or ``"default"``.
        texts: files of texts, or texts.
        output: folder of the new model.
        dim: dimensions to keep, those of the largest variance; by default all that have variance.
        columns: columns of tables whose texts count, as in ``"question,answer"``.
        precision: arithmetic of the embeddings it is fitted on; float32 keeps the small variances exact.
        overwrite: replace what is in the folder.
    """
    from samesense.data.sentences import unlabelled_texts
    from samesense.encoder.assembly.build import build
    from samesense.encoder.assembly.pooling import leave_out_sink
    from samesense.encoder.encode import encode as embed
    from samesense.encoder.maps.whitening import Whitening, append_whitening
    from samesense.encoder.saving.card import Card, CardData, write_card
    from samesense.encoder.saving.storage import check_free, save
    from samesense.inference.names import place_of

    sentences = [text for source in as_sources(texts) for text in unlabelled_texts(source, columns)]
    if not sentences:
        raise ConfigError("A whitening is fitted on texts; name at least one file of them.")
    check_free(Path(output), overwrite=overwrite, inputs=[place_of(model), *names_among(texts)])
    encoder = build(model)
    if leave_out_sink(encoder):
        logger.info("a language model: the mark before each text, to which all tokens attend, is left out of the mean")
    whitening = Whitening.fit(embed(encoder, sentences, precision=precision), dim)
    save(append_whitening(encoder, whitening), Path(output), overwrite=overwrite)
    read = CardData("texts", ", ".join(map(short_name, as_sources(texts))), len(sentences), rows_hash(sentences))
    kept = f"whitened to {whitening.matrix.shape[1]} dimensions on unlabelled texts"
    write_card(Path(output), Card(name=Path(output).name, base=model, method=kept, data=[read]))
    return whitening
