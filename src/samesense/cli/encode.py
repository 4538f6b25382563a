"""``samesense encode``: lines of text in, vectors out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from samesense.cli.output import Flag, PrecisionFlag, TextColumns, logger
from samesense.errors import ConfigError
from samesense.inference.models.backends import BackendOption

if TYPE_CHECKING:
    from samesense.execution.tasks import Executor


_SHARDS = Group("Many files by many workers", sort_key=1)


def encode(
    model: str,
    source: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    /,
    *,
    output: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    format: Annotated[Literal["npy", "parquet", "jsonl"] | None, Parameter(help="npy, parquet or jsonl")] = None,  # noqa: A002
    normalize: Annotated[bool, Parameter(negative="", help="scale every vector to unit length")] = False,
    columns: TextColumns = None,
    backend: BackendOption = "auto",
    precision: PrecisionFlag = "auto",
    deterministic: Flag = False,
    dim: int | None = None,
    prompt: str | None = None,
    shard_size: Annotated[int | None, Parameter(group=_SHARDS)] = None,
    workers: Annotated[int | None, Parameter(group=_SHARDS)] = None,
    executor: Annotated[Literal["embedded", "ray"] | None, Parameter(group=_SHARDS)] = None,
    address: Annotated[str | None, Parameter(group=_SHARDS)] = None,
) -> None:
    """Turn lines of text into vectors, one a line, in order.

    samesense encode default sentences.txt --output vectors.npy

    Args:
        model: model folder, output of train or export, hub name, or default.
        source: text file with one text a line (plain or .gz), a table (TSV, CSV, JSON lines, Parquet), or - for
            lines of standard input; with --shard-size, a plain text file.
        output: .npy, .parquet or .jsonl file, or - for JSON lines on standard output; with --shard-size, a folder.
        format: format of the output; by default that of its suffix, npy for shards.
        normalize: scale every vector to unit length.
        backend: auto, torch, onnx or onnx-int8, the last two for exported folders; auto is the fastest by measuring on
            this machine, where there are 5000 texts or more and one file is written.
        precision: arithmetic of torch; auto is bfloat16 where the processor computes in it.
        deterministic: bits of a vector depend on its text alone, not on the texts beside it; slower.
        dim: keep the first so many numbers of each vector, at unit length: for a model trained with --matryoshka.
        prompt: read before every text: one of the model's prompts by name, or a text [the model's default].
        shard_size: texts of a file. The output is then a folder of npy or Parquet files, made by workers of one thread
            each; the same command goes on where an earlier one was stopped.
        workers: processes on this machine [one a processor].
        executor: embedded, processes on this machine [default], or ray, a Ray cluster.
        address: of a running Ray cluster, auto or HOST:PORT [started on this machine].
    """
    how: dict[str, Any] = {"backend": backend, "precision": precision, "deterministic": deterministic, "prompt": prompt}
    model = model if dim is None else f"{model}+dim:{dim}"
    if shard_size is None:
        _check_no_shards(workers=workers, executor=executor, address=address)
        _one_file(model, source, output, format, columns=columns, normalize=normalize, **how)
    else:
        if columns is not None:
            raise ConfigError("With --shard-size, a plain text file is read; received --columns. Leave out one.")
        settings = {**how, "shard_size": shard_size, "format": _shard_format(output, format), "normalize": normalize}
        _shards(model, Path(source), Path(output), settings, _executor(workers, executor, address))


def _one_file(
    model: str, source: str, output: str, wanted: Any, *, columns: str | None, normalize: bool, **how: Any
) -> None:
    from samesense.inference.names import place_of
    from samesense.inference.stream import encode_with_bar, format_of, read_texts, write_embeddings
    from samesense.places import check_place

    form = format_of(output, wanted)
    if output != "-":
        check_place(output, [source, place_of(model)])
    texts = read_texts(source, columns)
    from samesense.inference.models.load import load

    opened = load(model, sample=texts, **how)
    embeddings = encode_with_bar(opened, texts, normalize=normalize)
    write_embeddings(embeddings, texts, output, form)
    if output != "-":
        logger.info(f"{output}: {embeddings.shape[0]} vectors of {embeddings.shape[1]} dimensions")
        if opened.choice is not None:
            logger.info(f"backend: {opened.choice.backend}, {opened.choice.reason}")


def _check_no_shards(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"--{name} is for shards; received {value!r} without --shard-size. Give --shard-size.")


def _shard_format(output: str, wanted: str | None) -> str:
    from samesense.inference.stream import FORMATS

    if output == "-" or Path(output).suffix in FORMATS:
        raise ConfigError(f"With --shard-size, --output is a folder; received {output!r}.")
    if wanted == "jsonl":
        raise ConfigError("With --shard-size, --format is npy or parquet; received jsonl.")
    return wanted or "npy"


def _executor(workers: int | None, name: Literal["embedded", "ray"] | None, address: str | None) -> Executor:
    from samesense.execution.executors import choose_executor
    from samesense.execution.threads import cores

    return choose_executor(name or "embedded", workers=workers, address=address, default_workers=cores())


def _shards(model: str, source: Path, output: Path, given: dict[str, Any], executor: Executor) -> None:
    from samesense.inference.shards.encode import ShardSettings, encode_shards
    from samesense.recipes.settings import bind

    settings = bind(ShardSettings, given)
    done = encode_shards(model, source, output, settings, executor)
    logger.info(f"{output}: {done.rows} vectors of {done.dim} dimensions in {done.shards} shards")
