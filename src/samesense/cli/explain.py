"""``samesense explain``: why are two texts alike?"""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import Json, PrecisionFlag, put, put_json


def explain(
    model: Annotated[str, Parameter(allow_leading_hyphen=True)],
    text1: Annotated[str, Parameter(allow_leading_hyphen=True)],
    text2: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    by: Literal["auto", "tokens", "occlusion", "sentences"] = "auto",
    top: int = 10,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Say which words made the score of two texts; of an Origin, which contexts, and of a language model, what follows.

    samesense explain default "A man is eating." "Someone has a meal."

    Args:
        model: model folder, output of train, hub name, default, or any other name that similarity takes.
        text1: first text.
        text2: second text.
        by: tokens are exact sums over pairs of token vectors, where the embedding is their mean; occlusion is what the
            score loses without a word, for any model; auto takes tokens where it can; sentences are those of two
            documents that match.
        top: pairs of words shown, or contexts or continuations on each side.
        json: print one JSON object.
    """
    import samesense
    from samesense.inference.explain import Explanation

    found = samesense.explain(model, text1, text2, by=by, top=top, precision=precision)
    if json:
        put_json([found.to_dict()])
    else:
        put(found.table(top) if isinstance(found, Explanation) else found.table())
