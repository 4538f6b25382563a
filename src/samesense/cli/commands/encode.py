"""``samesense encode``: lines of text in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from samesense.api import use
from samesense.choices import Chunk
from samesense.cli.command import command_of
from samesense.cli.hyphens import HYPHENS
from samesense.cli.output import DropTexts, Flag, logger
from samesense.encoder.vectors.quantize import VectorType
from samesense.errors import ConfigError
from samesense.types import TaskName
from samesense.urls import Name

if TYPE_CHECKING:
    from samesense.execution.shards.tasks import Executor

_SHARDS = Group("Many files by many workers", sort_key=1)


@command_of(use.encode, without=("source",))
def encode(
    model: str,
    sources: Annotated[list[Name] | None, HYPHENS, Parameter(negative="")] = None,
    /,
    *,
    output: Annotated[str, HYPHENS] = "-",
    format: Literal["npy", "parquet", "jsonl"] | None = None,  # noqa: A002 - the name of the flag
    overwrite: Flag = False,
    keep: str | None = None,
    vectors: VectorType = "float32",
    device: str | None = None,
    shard_size: Annotated[int | None, Parameter(group=_SHARDS)] = None,
    workers: Annotated[int | None, Parameter(group=_SHARDS)] = None,
    executor: Annotated[Literal["embedded", "ray"] | None, Parameter(group=_SHARDS)] = None,
    address: Annotated[str | None, Parameter(group=_SHARDS)] = None,
    drop_bad_rows: DropTexts = False,
    **options: Any,
) -> None:
    """samesense encode default sentences.txt --output vectors.npy

    Args:
        sources: text files with one text a line (plain or compressed), tables (TSV, CSV, JSON lines, Parquet), patterns
            of their names in quotes, URLs such as s3://bucket/texts.parquet; or - for lines of standard input [-].
        output: .npy, .parquet or .jsonl file, or - for JSON lines on standard output; with --shard-size, a folder; or
            the URL of either.
        format: format of the output; by default that of its suffix, npy for shards.
        overwrite: replace an existing file.
        keep: columns of tables that Parquet and JSON lines have beside text and embedding, as in id,title, or all [id,
            if there is one].
        vectors: how vectors are stored in npy and Parquet: 4, 2 or 1 byte per dimension, or one bit.
        device: torch device, as in cuda, on a Ray cluster one for each worker [a GPU, if there is one, for one file;
            cpu for shards, whose bytes are then the same on every machine].
        shard_size: texts per file. The output is then a folder of npy or Parquet files, made by workers of one thread
            each; the same command resumes a job that was stopped.
        workers: processes on this machine [one per processor; one on a GPU].
        executor: embedded, processes on this machine [default], or ray, a Ray cluster.
        address: of a running Ray cluster, auto or HOST:PORT [started on this machine].
    """
    dim = options.pop("dim")
    # In the name, because workers open the model by its name alone.
    if dim is not None:
        model = f"{model}+dim:{dim}"
    names = sources or [Name("-")]
    options |= {"keep": keep, "vectors": vectors}
    if shard_size is None:
        # They would be ignored, and the user wait for the speed of many workers.
        _check_no_shards(workers=workers, executor=executor, address=address)
        options |= {"overwrite": overwrite, "drop_bad_rows": drop_bad_rows, "device": device}
        _one_file(model, names, output, format, **options)
        return
    for flag, is_set in (("--drop-bad-rows", drop_bad_rows), ("--overwrite", overwrite)):
        if is_set:
            raise ConfigError(f"{flag} is for one output; received it with --shard-size. Leave one of them out.")
    settings = {
        **options,
        "shard_size": shard_size,
        "format": _shard_format(output, format),
        "device": device or "cpu",
    }
    _shards(model, names, output, settings, _executor(workers, executor, address, settings["device"]))


def _one_file(
    model: str,
    sources: Sequence[str],
    output: str,
    requested_format: Any,
    *,
    overwrite: bool,
    columns: str | None,
    drop_bad_rows: bool,
    keep: str | None,
    vectors: VectorType,
    chunk: Chunk | None,
    normalize: bool,
    task: TaskName | None,
    **model_options: Any,
) -> None:
    from samesense.encoder.vectors.quantize import Quantizer
    from samesense.inference.columns import check_parquet, expand_patterns, read_texts_with_columns
    from samesense.inference.encode import encode_with_bar
    from samesense.inference.names import place_of
    from samesense.inference.output import Encoded, check_format, format_of, write_encoded
    from samesense.places import check_absent, writing_outputs
    from samesense.urls import is_url, local

    form = format_of(output, requested_format)
    # All that can be wrong is checked before torch is loaded.
    check_format(form, vectors, keep)
    names = expand_patterns(sources)
    files = [local(output)]
    if is_url(output):
        check_absent(output, overwrite=overwrite)
        files = []
    with writing_outputs(files, [*names, place_of(model)], overwrite=overwrite):
        texts, kept_columns = read_texts_with_columns(
            names, columns, "" if form == "npy" else keep, drop_bad_rows=drop_bad_rows
        )
        if kept_columns is not None and form == "parquet":
            check_parquet(kept_columns.schema, ", ".join(names))
        # Loads torch, so only after the texts were read.
        from samesense.execution.unread import name_rows
        from samesense.inference.models.load import load

        name_rows(texts)
        encoder = load(model, sample=texts, **model_options)
        rows = encode_with_bar(encoder, texts, normalize=normalize, chunk=chunk, task=task)
        quantizer = Quantizer.fit(vectors, rows)
        write_encoded(Encoded(texts, quantizer.apply(rows), quantizer, kept_columns), output, form)
    if output != "-":
        logger.info(f"{output}: {rows.shape[0]} vectors of {rows.shape[1]} dimensions{_stored(vectors)}")
        if encoder.choice is not None:
            logger.info(f"backend: {encoder.choice.backend}, {encoder.choice.reason}")


def _stored(vectors: VectorType) -> str:
    if vectors == "float32":
        return ""
    return f" in {vectors}"


def _check_no_shards(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"--{name} is for shards; received {value!r} without --shard-size. Give --shard-size.")


def _shard_format(output: str, requested: str | None) -> str:
    from samesense.inference.output import FORMATS

    if output == "-" or Path(output).suffix in FORMATS:
        raise ConfigError(f"With --shard-size, --output is a folder; received {output!r}.")
    if requested == "jsonl":
        raise ConfigError("With --shard-size, --format is npy or parquet; received jsonl.")
    # NumPy opens it as it is, and without a copy in memory.
    return requested or "npy"


def _executor(
    workers: int | None, name: Literal["embedded", "ray"] | None, address: str | None, device: str
) -> Executor:
    from samesense.execution.shards.executors import choose_executor
    from samesense.execution.threads import cores

    # Workers share a GPU badly: each would load the model.
    gpus = 0 if device == "cpu" else 1
    return choose_executor(
        name or "embedded", workers=workers, address=address, default_workers=1 if gpus else cores(), gpus=gpus
    )


def _shards(model: str, sources: Sequence[str], output: str, options: dict[str, Any], executor: Executor) -> None:
    from samesense.encoder.windows import describe_windows
    from samesense.inference.shards.encode import ShardSettings, encode_shards
    from samesense.recipes.settings import bind

    settings = bind(ShardSettings, options)
    done = encode_shards(model, sources, output, settings, executor)
    if settings.chunk is not None:
        logger.info(describe_windows(done.figures, done.rows, settings.chunk))
    stored = _stored(settings.vectors)
    logger.info(f"{output}: {done.rows} vectors of {done.dim} dimensions{stored} in {done.shards} shards")
