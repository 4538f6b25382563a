"""``samesense encode``: lines of text in, vectors out."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import PrecisionFlag, quiet_libraries, say
from samesense.inference.backends import Backend


def encode(
    model: str,
    source: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    /,
    *,
    output: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    format: Annotated[Literal["npy", "parquet", "jsonl"] | None, Parameter(help="npy, parquet or jsonl")] = None,  # noqa: A002
    normalize: Annotated[bool, Parameter(negative="", help="scale every vector to unit length")] = False,
    backend: Backend = "auto",
    precision: PrecisionFlag = "auto",
    deterministic: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Turn lines of text into vectors, one a line, in order.

    Args:
        model: model folder, output of train or export, hub name, or default.
        source: text file with one text a line (plain or .gz), or - for standard input.
        output: .npy, .parquet or .jsonl file, or - for JSON lines on standard output.
        format: format of the output; by default that of its suffix.
        normalize: scale every vector to unit length.
        backend: auto, torch, onnx or onnx-int8, the last two for exported folders; auto is the fastest by measuring on
            this machine, where there are 5000 texts or more.
        precision: arithmetic of torch; auto is bfloat16 where the processor computes in it.
        deterministic: bits of a vector depend on its text alone, not on the texts beside it; slower.
    """
    from samesense.inference.backends_missing import let_threads_sleep
    from samesense.inference.onnx_format import is_exported
    from samesense.inference.stream import encode_with_bar, format_of, read_texts, write_embeddings

    form = format_of(output, format)
    texts = read_texts(source)
    let_threads_sleep()
    if not is_exported(model) or backend == "torch":
        quiet_libraries()
    from samesense.inference.model import load

    opened = load(model, backend=backend, precision=precision, deterministic=deterministic, sample=texts)
    embeddings = encode_with_bar(opened, texts, normalize=normalize)
    write_embeddings(embeddings, texts, output, form)
    if output != "-":
        say(f"{output}: {embeddings.shape[0]} vectors of {embeddings.shape[1]} dimensions")
        if opened.choice is not None:
            say(f"backend: {opened.choice.way}, {opened.choice.reason}")
