"""``samesense.encode``, ``read_vectors``, ``mine``, ``rerank``, ``whiten`` and ``drift``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.api.data import labelled_pairs, texts_of
from samesense.api.library_function import library_function
from samesense.choices import BackendOption, Chunk, Threshold, check_count, check_named
from samesense.data.rows.sources import Source, as_sources, names_among, short_name
from samesense.data.rows.table_options import Header, Quoting
from samesense.errors import ConfigError, DataError, ModelError, UnwrittenError
from samesense.execution.progress import stage
from samesense.failures import DAMAGED
from samesense.hashes import rows_hash
from samesense.types import Precision, TaskName

if TYPE_CHECKING:
    from samesense.encoder.maps.whitening import Whitening
    from samesense.inference.drift import Drift
    from samesense.inference.search.mining import MinedPairs
    from samesense.results.shown import RowList
    from samesense.types import Embeddings

logger = logging.getLogger(__name__)


@library_function
def encode(  # noqa: PLR0913 - each is one flag of the command
    model: Any,
    source: Source,
    *,
    normalize: bool = False,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    chunk: Chunk | None = None,
    backend: BackendOption = "auto",
    precision: Precision = "auto",
    deterministic: bool = False,
    device: str | None = None,
    dim: int | None = None,
    prompt: str | None = None,
    task: TaskName | None = None,
) -> Embeddings:
    """Encode texts, the lines of a file or the rows of a table as vectors, in order.

    Args:
        model: model folder, output of ``train``, hub name or ``"default"``; see :func:`samesense.load`.
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or
            ``"-"`` for lines of standard input; see :func:`samesense.read` for texts in memory.
        normalize: scale every vector to unit length.
        columns: name of the table's column of texts, if several hold texts.
        chunk: split texts longer than the model's maximum length into windows, and take the ``"mean"`` of their
            vectors, or the ``"max"`` of each dimension; by default the model ignores the rest of a text.
        backend: ``"auto"``, ``"torch"``, or for exported folders ``"onnx"``, ``"onnx-int8"``, ``"openvino"``,
            ``"openvino-bfloat16"`` or ``"openvino-int8"``; ``"auto"`` measures which is fastest on this machine, for
            5000 texts or more.
        precision: arithmetic of torch; ``"auto"`` is bfloat16 where the processor supports it.
        deterministic: the bits of a vector depend on its text alone, not on the batch; slower.
        device: torch device, as in ``"cuda"``; by default a GPU if there is one.
        dim: number of dimensions of each vector to keep, the first ones, at unit length: for a model trained with
            ``matryoshka``.
        prompt: prefix of every text: one of the model's prompts by name, a text, or a template with ``{text}`` in it;
            by default the model's own.
        task: ``"query"`` or ``"document"``, for models with different routes or prompts for them.

    Returns:
        The embeddings, float32 ``(texts, dim)``.
    """
    from samesense.inference.encode import encode_with_bar
    from samesense.inference.models.load import load

    texts = texts_of(source, columns)
    encoder = load(
        model,
        backend=backend,
        precision=precision,
        device=device,
        deterministic=deterministic,
        # The texts say whether measuring the backends is worth its time.
        sample=texts,
        dim=dim,
        prompt=prompt,
    )
    return encode_with_bar(encoder, texts, normalize=normalize, chunk=chunk, task=task)


def read_vectors(place: str | Path) -> Embeddings:
    """Return the vectors that ``samesense encode`` wrote, float32 ``(texts, dim)``, in order.

    With ``--vectors int8`` a value is the middle of its quantization step, with ``binary`` it is 1 or -1.

    Args:
        place: an ``.npy`` or ``.parquet`` file, the folder of ``--shard-size``, or the URL of either.

    Raises:
        DataError: if there is no such file, or it holds no vectors.
    """
    from samesense.encoder.vectors.stored import stored_rows
    from samesense.inference.shards.read import read_shards

    if not str(place).endswith((".npy", ".parquet")):
        return read_shards(place)
    try:
        return stored_rows(place)
    except DAMAGED as error:
        reason = ""
        # Other messages, such as those of NumPy, only help programmers.
        if isinstance(error, OSError):
            reason = f" ({error})"
        raise DataError(
            f"{place} cannot be read as {Path(place).suffix} of vectors{reason}. Give a file that samesense encode "
            "wrote."
        ) from error


def _unit_vectors(model: Any, texts: list[str], precision: Precision, chunk: Chunk | None) -> Embeddings:
    from samesense.inference.encode import encode_with_bar
    from samesense.inference.models.load import load

    return encode_with_bar(load(model, precision=precision, texts=texts), texts, normalize=True, chunk=chunk)


@library_function
def mine(  # noqa: PLR0913 - the flags of the command
    source: Source,
    *,
    model: Any = "default",
    top: int = 100,
    threshold: Threshold = 0.0,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    chunk: Chunk | None = None,
    precision: Precision = "auto",
) -> MinedPairs:
    """Find the pairs of texts that are closest in meaning, each pair once, the closest first.

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or
            ``"-"`` for lines of standard input; see :func:`samesense.read` for texts in memory.
        model: model folder, output of ``train``, hub name or ``"default"``; see :func:`samesense.load`.
        top: most pairs to find.
        threshold: lowest cosine of a pair, from -1 to 1; ``"calibrated"`` is that of the model's calibration.
        columns: name of the table's column of texts, if several hold texts.
        chunk: see :func:`samesense.encode`.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.

    Returns:
        A list of ``first`` and ``second``, the positions of both texts from 0, and ``score``, the cosine. It prints as
        a table with the texts; ``to_pandas()`` returns a frame.
    """
    from samesense.inference.calibration.storage import threshold_of
    from samesense.inference.search.mining import MinedPairs, check_mining
    from samesense.inference.search.mining import mine as run

    # The calibration is a small file, read before the texts and the model.
    lowest = threshold_of(model, threshold)
    check_mining(top, lowest)
    texts = texts_of(source, columns)
    return MinedPairs(run(_unit_vectors(model, texts, precision, chunk), top=top, threshold=lowest), texts)


@library_function
def rerank(  # noqa: PLR0913 - the flags of the command
    source: Source,
    *,
    model: Any,
    cross: Any,
    query: str,
    top: int = 10,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    precision: Precision = "auto",
) -> RowList:
    """Retrieve texts with an encoder, and rerank the best of them with a cross-encoder.

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or
            ``"-"`` for lines of standard input; see :func:`samesense.read` for texts in memory.
        model: encoder that retrieves: any model with embeddings; see :func:`samesense.load`.
        cross: cross-encoder that reranks: any model; see :func:`samesense.load`.
        query: text to search for.
        top: number of texts to retrieve, rerank and return.
        columns: name of the table's column of texts, if several hold texts.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.

    Returns:
        A list of ``position``, ``text``, ``cosine`` and ``score``, the best first. It prints as a table;
        ``to_pandas()`` returns a frame.
    """
    from samesense.inference.models.load import load
    from samesense.inference.search.rerank import rerank as run
    from samesense.inference.search.ties import noise_of
    from samesense.results.shown import RowList

    if not isinstance(query, str):
        raise DataError(f"The `query` is one text; received {type(query).__name__}.")
    if not query.strip():
        raise DataError('The `query` is empty. Give a text, such as "How do I get home?".')
    check_count("top", top)
    texts = texts_of(source, columns)  # before the models are loaded, which takes seconds
    finder = load(model, precision=precision)
    if not finder.embeds:
        raise ConfigError(f"`model` finds texts by their embeddings, and {finder.name} has none: {finder.protocol}.")
    scorer = load(cross, precision=precision)
    noise = (noise_of(finder.protocol), noise_of(scorer.protocol))
    if finder.tells_tasks_apart:
        encode_document = partial(finder.encode, task="document")
        encode_query = partial(finder.encode, task="query")
        return RowList(run(query, texts, encode_document, scorer.scores, top, noise=noise, encode_query=encode_query))
    return RowList(run(query, texts, finder.encode, scorer.scores, top, noise=noise))


@library_function
def whiten(  # noqa: PLR0913 - the flags of the command
    model: str | Path,
    texts: Source | Sequence[Source],
    *,
    output: str | Path,
    dim: int | None = None,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    precision: Precision = "float32",
    overwrite: bool = False,
) -> Whitening:
    """Save a model with a whitening, fitted on unlabelled texts: a linear layer that every library applies.

    The sink token of a language model, to which all others attend, is left out of the mean first.

    Args:
        model: model folder, output of ``train``, hub name or ``"default"``; see :func:`samesense.load`.
        texts: text files with one text a line (plain or compressed), or tables with text columns; see
            :func:`samesense.read` for texts in memory.
        output: folder of the new model.
        dim: number of dimensions to keep, those of the largest variance; by default all with variance.
        columns: columns of tables whose texts count, as in ``"question,answer"``.
        precision: arithmetic of the embeddings for the fit; float32 keeps the small variances exact.
        overwrite: replace what is in the folder.
    """
    from samesense.data.sentences import unlabelled_texts
    from samesense.encoder.assembly.build import build_named
    from samesense.encoder.assembly.cross import is_cross_encoder
    from samesense.encoder.encode import encode as embed
    from samesense.encoder.forward.routes import refuse_routes
    from samesense.encoder.maps.sink import leave_out_sink
    from samesense.encoder.maps.whitening import Whitening, append_whitening, check_whole
    from samesense.encoder.names import resolve, split_options
    from samesense.encoder.saving.card import Card, CardData, write_card
    from samesense.encoder.saving.storage import check_free, save
    from samesense.inference.names import place_of
    from samesense.locks import only_writer_of

    model = check_named(model)
    sentences = [text for source in as_sources(texts) for text in unlabelled_texts(source, columns)]
    if len(sentences) < 2:
        raise ConfigError(f"A whitening is fitted on two texts or more; received {len(sentences)}. Name more of them.")
    # Before the encoding, which may take long.
    check_free(Path(output), overwrite=overwrite, inputs=[place_of(model), *names_among(texts)])
    if is_cross_encoder(resolve(split_options(model).base)):
        raise ModelError(f"{model} is a cross-encoder: it scores pairs and has no embeddings to whiten.")
    with only_writer_of(Path(output).resolve()):
        encoder = build_named(model)
        # One layer at the end cannot be right for both routes of a model.
        refuse_routes(encoder, "A whitening")
        check_whole(encoder)
        # Before the fit, as the vectors change with it.
        leave_out_sink(encoder)
        whitening = Whitening.fit(embed(encoder, sentences, precision=precision), dim)
        width, dimensions = whitening.matrix.shape
        different = len(set(sentences))
        # So many directions hold that many points at equal distances.
        if dimensions >= different - 1:
            logger.warning(
                f"{different} texts are too few to whiten {dimensions} dimensions: any two of them are equally far "
                f"apart, whatever they mean. Give many times as many as the model's {width} dimensions, or keep fewer "
                "by `dim`"
            )
        save(append_whitening(encoder, whitening), Path(output), overwrite=overwrite)
        read = CardData("texts", ", ".join(map(short_name, as_sources(texts))), len(sentences), rows_hash(sentences))
        method = f"whitened to {dimensions} dimensions on unlabelled texts"
        write_card(Path(output), Card(name=Path(output).name, base=model, method=method, data=[read]))
    return whitening


@library_function
def drift(  # noqa: PLR0913 - the flags of the command
    old: Any,
    new: Any,
    texts: Source,
    *,
    pairs: Source | None = None,
    threshold: Threshold | None = None,
    top: int = 10,
    queries: int = 1000,
    map: str | Path | None = None,  # noqa: A002 - the flag's name
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    precision: Precision = "auto",
) -> Drift:
    """Report what a new model changes: neighbours, scores, the threshold, and the texts that moved most.

    Args:
        old: the model in use: model folder, output of ``train``, hub name or ``"default"``; see
            :func:`samesense.load`.
        new: the model that would replace it.
        texts: typical texts: a text file with one text a line (plain or compressed), a table, or ``"-"`` for lines of
            standard input; see :func:`samesense.read` for texts in memory.
        pairs: pairs labelled 1 for a yes, 0 for a no. As many of them reach the new threshold as the old one, and the
            precision and recall of both are reported.
        threshold: threshold of the old model, ``"calibrated"`` for that of its calibration; with ``pairs``, by default
            that of best F1. Without them, as many pairs of neighbours reach the new threshold.
        top: number of nearest texts to compare.
        queries: number of texts whose neighbours are searched among all, sampled with a fixed seed.
        map: file for two maps of these texts, by the old and the new model, on one self-contained HTML page; of more
            than 2,000 it shows a sample.
        columns: name of the table's column of texts, if several hold texts.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.

    Returns:
        Prints as a table; ``drift`` is the share of the nearest texts that changed.
    """
    from samesense.inference.calibration.storage import threshold_of
    from samesense.inference.drift import check_drift
    from samesense.inference.drift import drift as run
    from samesense.inference.models.load import load
    from samesense.inference.names import place_of
    from samesense.reports.maps import check_mapped, holding_map, map_drift, save_map

    models = [place_of(name) for name in (*names_among(old), *names_among(new))]
    with holding_map(map, [*names_among(texts), *names_among(pairs), *models]):
        # Both before the texts are read: a wrong option shows at once.
        old_threshold = None if threshold is None else threshold_of(old, threshold)
        labelled = None if pairs is None else labelled_pairs(pairs)
        check_drift(top, queries, labelled, old_threshold)
        listed = texts_of(texts, columns)  # before the models are loaded, which takes seconds
        if map is not None:
            check_mapped(listed)
        before = load(old, precision=precision)
        after = load(new, precision=precision)
        report, neighbours = run(
            before, after, listed, top=top, queries=queries, pairs=labelled, threshold=old_threshold
        )
        if map is not None:
            with stage("drawing the map"):
                text_map = map_drift(
                    neighbours.texts,
                    (neighbours.before, neighbours.after),
                    neighbours.overlaps,
                    (neighbours.nearest_before, neighbours.nearest_after),
                    names=(before.name, after.name),
                    summary=f"{100 * report.overlap:.1f} % of the {top} nearest texts are the same by both models",
                    total=report.texts,
                    top=top,
                )
                with UnwrittenError.holding(report):
                    save_map(text_map, map)
        return report
