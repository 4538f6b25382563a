"""``samesense evaluate``: how well do a model's similarities agree with labels?"""

from __future__ import annotations

from pathlib import Path

from samesense.cli.output import AS_THEY_ARE, Json, PrecisionFlag, ReadFlags, Several, logger, put, put_json


def evaluate(
    model: str,
    /,
    *,
    data: Several,
    output: Path | None = None,
    how: ReadFlags = AS_THEY_ARE,
    precision: PrecisionFlag = "float32",
    intervals: bool = True,
    json: Json = False,
) -> None:
    """Evaluate a model on labelled pairs: Spearman and Pearson correlation, with 95 % confidence intervals.

    samesense evaluate default --data stsb.test.tsv sts12.test.tsv

    Args:
        model: sentence-transformers folder, output of train, hub name, or default; or a cross-encoder, vectors:FILE,
            words:FILE, origin:FOLDER, python:module:function or python-score:module:function.
        data: one or more files with pairs and labels.
        output: results.jsonl to which the results are added.
        precision: arithmetic; float32 keeps the figures comparable between machines.
        intervals: compute bootstrap intervals.
        json: print one JSON object a result.
    """
    import samesense

    results = samesense.evaluate(model, data, output=output, **vars(how), precision=precision, intervals=intervals)
    if json:
        put_json(results.to_dicts())
    else:
        put(str(results))
        logger.info(f"protocol: {results[0].protocol}")
