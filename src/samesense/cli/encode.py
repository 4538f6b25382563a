"""``samesense encode``: lines of text in, vectors out."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import PrecisionFlag, quiet_libraries, say


def encode(
    model: str,
    source: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    /,
    *,
    output: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    format: Annotated[Literal["npy", "parquet", "jsonl"] | None, Parameter(help="npy, parquet or jsonl")] = None,  # noqa: A002
    normalize: Annotated[bool, Parameter(negative="", help="scale every vector to unit length")] = False,
    precision: PrecisionFlag = "auto",
) -> None:
    """Turn lines of text into vectors, one a line, in order.

    Args:
        model: model folder, output of train, hub name, or default.
        source: text file with one text a line (plain or .gz), or - for standard input.
        output: .npy, .parquet or .jsonl file, or - for JSON lines on standard output.
        format: format of the output; by default that of its suffix.
        normalize: scale every vector to unit length.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.
    """
    from samesense.inference.stream import encode_with_bar, format_of, read_texts, write_embeddings

    form = format_of(output, format)
    texts = read_texts(source)
    quiet_libraries()
    from samesense.inference.model import load

    embeddings = encode_with_bar(load(model, precision=precision), texts, normalize=normalize)
    write_embeddings(embeddings, texts, output, form)
    if output != "-":
        say(f"{output}: {embeddings.shape[0]} vectors of {embeddings.shape[1]} dimensions")
