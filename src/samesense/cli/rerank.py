"""``samesense rerank``: retrieves with an encoder, and reranks with a cross-encoder."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import (
    DEFAULT_FORMAT,
    Json,
    PrecisionFlag,
    TableFlags,
    TextColumns,
    put_json,
    put_row,
    reads_tables,
)


@reads_tables
def rerank(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    /,
    *,
    model: str,
    cross: str,
    query: Annotated[str, Parameter(allow_leading_hyphen=True)],
    top: int = 10,
    columns: TextColumns = None,
    reading: TableFlags = DEFAULT_FORMAT,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Retrieve texts with an encoder, and rerank the best of them with a cross-encoder.

    samesense rerank texts.txt --model default --cross runs/cross --query "How do I get home?" --top 10

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or - for
            lines of standard input.
        model: encoder that retrieves; any model with embeddings that evaluate takes.
        cross: cross-encoder that reranks; any model that evaluate takes.
        query: text to search for.
        top: number of texts to retrieve, rerank and print.
        json: print JSON lines with number of line or row, text, cosine and score.
    """
    import samesense
    from samesense.data.texts import read_texts

    texts = read_texts(source, columns)
    ranked = samesense.rerank(texts, model=model, cross=cross, query=query, top=top, precision=precision)
    if json:
        put_json(
            {"row": r.position + 1, "text": r.text, "cosine": round(r.cosine, 6), "score": round(r.score, 6)}
            for r in ranked
        )
        return
    for r in ranked:
        put_row(f"{r.score:.4f}", r.text)
