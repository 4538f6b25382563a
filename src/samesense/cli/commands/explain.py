"""``samesense explain``: why are two texts alike?"""

from __future__ import annotations

from typing import Any

from samesense.api import similarity as api
from samesense.cli.command import command_of
from samesense.cli.output import Json, Text, put, put_json


@command_of(api.explain)
def explain(model: Text, text1: Text, text2: Text, /, *, json: Json = False, **options: Any) -> None:
    """samesense explain default "A man is eating." "Someone has a meal."

    Args:
        json: print one JSON object.
    """
    from samesense.inference.explain import Explanation

    explanation = api.explain(model, text1, text2, **options)
    if json:
        put_json([explanation.to_dict()])
    else:
        put(explanation.table(options["top"]) if isinstance(explanation, Explanation) else explanation.table())
