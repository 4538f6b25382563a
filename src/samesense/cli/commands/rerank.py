"""``samesense rerank``: retrieves with an encoder, and reranks with a cross-encoder."""

from __future__ import annotations

from typing import Any

from samesense.api import use
from samesense.cli.command import command_of
from samesense.cli.output import FileOrInput, Json, Text, put_json, put_row


@command_of(use.rerank)
def rerank(
    source: FileOrInput = "-",
    /,
    *,
    query: Text,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense rerank texts.txt --model default --cross runs/cross --query "How do I get home?" --top 10

    Args:
        json: print JSON lines with number of line or row, text, cosine and score.
    """
    ranked = use.rerank(source, query=query, **options)
    if json:
        put_json(
            {"row": r.position + 1, "text": r.text, "cosine": round(r.cosine, 6), "score": round(r.score, 6)}
            for r in ranked
        )
        return
    for r in ranked:
        put_row(f"{r.score:.4f}", r.text)
