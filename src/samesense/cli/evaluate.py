"""``samesense evaluate``: how well do a model's similarities agree with labels?"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import (
    Columns,
    DropBadRows,
    LabelOrder,
    LabelRange,
    PrecisionFlag,
    put,
    put_json,
)

logger = logging.getLogger(__name__)


def evaluate(
    model: str,
    /,
    *,
    data: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    output: Path | None = None,
    columns: Columns = None,
    label_order: LabelOrder = None,
    label_range: LabelRange = None,
    drop_bad_rows: DropBadRows = False,
    precision: PrecisionFlag = "float32",
    intervals: bool = True,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Evaluate a model on labelled pairs: Spearman and Pearson correlation, with 95 % confidence intervals.

    samesense evaluate default --data stsb.test.tsv sts12.test.tsv

    Args:
        model: sentence-transformers folder, output of train, hub name, or default; or a cross-encoder, vectors:FILE,
            words:FILE, origin:FOLDER, python:module:function or python-score:module:function.
        data: one or more files with pairs and labels.
        output: results.jsonl to which the results are added.
        columns: text and label columns by name, as in: question1,question2,is_duplicate
        label_order: names of the labels 0, 1, 2 of NLI data, as in: entailment,neutral,contradiction
        label_range: lowest and highest label of the scale, as in: 0 5
        drop_bad_rows: leave out rows that break a rule, and say how many.
        precision: arithmetic; float32 keeps the figures comparable between machines.
        intervals: compute bootstrap intervals.
        json: print one JSON object a result.
    """
    from samesense.data import read_pairs

    sets = [
        read_pairs(f, columns=columns, label_order=label_order, label_range=label_range, drop_bad_rows=drop_bad_rows)
        for f in data
    ]
    from samesense.evaluation.pairs import evaluate_pairs
    from samesense.inference.models.load import load
    from samesense.reports import append_results
    from samesense.results import Results

    opened = load(model, precision=precision, cache=True)
    results = Results()
    for pairs in sets:
        if pairs.dropped or pairs.dropped_unlabelled:
            logger.info(f"{pairs.name}: left out {pairs.dropped} bad and {pairs.dropped_unlabelled} unlabelled rows")
        results += evaluate_pairs(opened, pairs, intervals=intervals)
    if output is not None:
        append_results(output, results)
    if json:
        put_json(result.to_dict() for result in results)
    else:
        put(str(results))
        logger.info(f"protocol: {results[0].protocol}")
