"""``samesense mine``: the closest pairs of texts in a file."""

from __future__ import annotations

import logging
from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import PrecisionFlag, put_json, put_row
from samesense.inference.models.optional_deps import let_threads_sleep

logger = logging.getLogger(__name__)


def mine(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    model: str = "default",
    top: int = 100,
    threshold: Annotated[float, Parameter(allow_leading_hyphen=True)] = 0.0,
    precision: PrecisionFlag = "auto",
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Find the pairs of texts that are closest in meaning, each pair once.

    samesense mine texts.txt --top 20 --threshold 0.8

    Args:
        source: text file with one text a line (plain or .gz), or - for standard input.
        model: model folder, output of train, hub name, or default.
        top: pairs shown.
        threshold: lowest cosine of a pair, from -1 to 1.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.
        json: print JSON lines with both line numbers, both texts and the score.
    """
    from samesense.inference.search.mining import check_arguments
    from samesense.inference.search.mining import mine as run
    from samesense.inference.stream import encode_with_bar, read_texts

    check_arguments(top, threshold)
    texts = read_texts(source)
    let_threads_sleep()
    from samesense.inference.models.load import load

    pairs = run(encode_with_bar(load(model, precision=precision), texts, normalize=True), top=top, threshold=threshold)
    for first, second, score in pairs:
        if json:
            rows = {"row1": first + 1, "row2": second + 1, "score": round(score, 6)}
            put_json([{**rows, "text1": texts[first], "text2": texts[second]}])
        else:
            put_row(f"{score:.4f}", texts[first], texts[second])
    logger.info(f"{len(pairs)} pairs of {len(texts)} texts")
