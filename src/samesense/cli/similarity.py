"""``samesense similarity``: how alike are two texts?"""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import PrecisionFlag, put, put_json, quiet_libraries
from samesense.errors import DataError
from samesense.types import Pair


def similarity(
    model: str,
    text1: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    text2: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    precision: PrecisionFlag = "auto",
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Score pairs of texts: the cosine of their embeddings, from -1 to 1, or the score of a cross-encoder.

    Args:
        model: model folder, output of train, hub name, or default; or any other name that evaluate takes.
        text1: first text; without texts, pairs are read from standard input, two texts a line with a tab between.
        text2: second text.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.
        json: print JSON lines with both texts and the score.
    """
    pairs = _from_stdin() if text1 is None else [_given(text1, text2)]
    quiet_libraries()
    from samesense.recipes.opening import open_named

    scores = open_named(model, precision=precision).score(pairs)
    if json:
        put_json({"text1": a, "text2": b, "score": round(float(s), 6)} for (a, b), s in zip(pairs, scores, strict=True))
        return
    for score in scores:
        put(f"{score:.4f}")


def _given(text1: str, text2: str | None) -> Pair:
    if text2 is None:
        raise DataError('similarity compares two texts; received one. Give both: samesense similarity MODEL "a" "b"')
    if not text1.strip() or not text2.strip():
        raise DataError("similarity compares two texts; one of them is empty.")
    return text1, text2


def _from_stdin() -> list[Pair]:
    pairs = []
    for number, line in enumerate(sys.stdin, 1):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != 2 or not fields[0].strip() or not fields[1].strip():
            raise DataError(
                f"Each line must hold two texts with one tab between them; "
                f"standard input, row {number}, has {len(fields)} fields: {line.rstrip()[:80]!r}."
            )
        pairs.append((fields[0], fields[1]))
    if not pairs:
        raise DataError("No pairs were given: neither two texts nor lines on standard input.")
    return pairs
