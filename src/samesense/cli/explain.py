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
    """Explain the score of two texts by their words; of an Origin, by the words or contexts they lead to.

    samesense explain default "A man is eating." "Someone has a meal."

    Args:
        model: model folder, output of train, hub name, default, or any other model that similarity takes.
        text1: first text.
        text2: second text.
        by: tokens are exact sums over pairs of token vectors, where the embedding is their mean; occlusion is the loss
            of score without a word, for any model; auto is tokens where possible; sentences are matching sentences of
            two documents.
        top: number of word pairs, or of words or contexts of an Origin on each side.
        json: print one JSON object.
    """
    import samesense
    from samesense.inference.explain import Explanation

    explanation = samesense.explain(model, text1, text2, by=by, top=top, precision=precision)
    if json:
        put_json([explanation.to_dict()])
    else:
        put(explanation.table(top) if isinstance(explanation, Explanation) else explanation.table())
