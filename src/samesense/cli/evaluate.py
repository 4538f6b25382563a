"""``samesense evaluate``: how well do a model's similarities agree with labels?"""

from __future__ import annotations

from pathlib import Path

from samesense.cli.output import AS_THEY_ARE, Flag, Json, PrecisionFlag, ReadFlags, Several, logger, put, put_json


def evaluate(
    model: str,
    /,
    *,
    data: Several,
    output: Path | None = None,
    how: ReadFlags = AS_THEY_ARE,
    precision: PrecisionFlag = "float32",
    intervals: bool = True,
    subsets: Flag = False,
    json: Json = False,
) -> None:
    """Evaluate a model on labelled pairs: Spearman and Pearson correlation, with 95 % confidence intervals.

    samesense evaluate default --data stsb.test.tsv sts12.test.tsv

    Args:
        model: sentence-transformers folder, output of train, hub name, or default; or a cross-encoder, vectors:FILE,
            words:FILE, origin:FOLDER, python:module:function, python-score:module:function or chat:MODEL.
        data: one or more files with pairs and labels.
        output: results.jsonl to which the results are added.
        precision: arithmetic; float32 keeps the figures comparable between machines.
        intervals: compute bootstrap intervals.
        subsets: show each subset too, and not only what stands for the whole; a file and JSON always have them.
        json: print one JSON object a result.
    """
    import samesense

    results = samesense.evaluate(model, data, output=output, **vars(how), precision=precision, intervals=intervals)
    if json:
        put_json(results.to_dicts())
    else:
        shown = results if subsets else results.whole()
        put(str(shown))
        if len(shown) < len(results):
            logger.info(f"{len({row.subset for row in results} - {row.subset for row in shown})} subsets: --subsets")
        logger.info(f"protocol: {results[0].protocol}")
