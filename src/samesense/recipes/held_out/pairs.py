"""Pairs of a run that did not train its model: written beside the model, and read again to calibrate it.

Nothing here needs torch, so that a calibration of scores that were kept does not wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from samesense.data import PairData, read_pairs
from samesense.data.pairs.read import holds_scores
from samesense.data.rows.sources import leads_to
from samesense.data.rows.table_options import table_options
from samesense.errors import ConfigError, DataError
from samesense.files import write_json_lines, write_lines
from samesense.recipes.held_out.scores import HeldOutScores, read_held_out
from samesense.training import manifest

logger = logging.getLogger(__name__)

MODEL = "model"
"""Folder of the model in that of its run."""

DEV = ("dev.tsv", "dev.jsonl")
TEST = ("test.tsv", "test.jsonl")
"""Pairs held out of the training data; JSON lines where a text has a tab or a line break, which TSV cannot hold."""

HELD_OUT_TUPLES = "held-out.jsonl"
"""Anchors held out of the training data, with their positives and negatives, or texts with their classes."""


def write_pairs(output: Path, dev: PairData, files: tuple[str, str] = DEV) -> Path:
    """Keep the pairs that were held out of the training data, so that ``samesense.read`` gives them again."""
    if dev.kind == "nli":
        names = ["premise", "hypothesis", "label"]
    else:
        names = ["sentence1", "sentence2", "score"]
    subsets = []
    if dev.subsets is not None:
        names.append("subset")
        subsets.append(dev.subsets)

    def rows() -> Iterator[tuple[str, ...]]:
        labels = (_written(label, dev) for label in dev.labels)
        return zip(dev.sentences1, dev.sentences2, labels, *subsets, strict=True)

    if any(_needs_json(text) for row in rows() for text in row):
        return write_json_lines(output / files[1], (dict(zip(names, row, strict=True)) for row in rows()))
    return write_lines(output / files[0], ("\t".join(row) + "\n" for row in chain([tuple(names)], rows())))


def _needs_json(text: str) -> bool:
    """Return whether TSV cannot hold a text; nor one in quotes of its own, which a reader may take for a program's."""
    return any(mark in text for mark in "\t\n\r") or text[:1] == text[-1:] == '"'


def _written(label: float, dev: PairData) -> str:
    if dev.kind == "nli":
        return dev.label_name(label)
    # repr has as many digits as it takes to read the same float again.
    return repr(label).removesuffix(".0")


def read_held_out_scores(model: str) -> HeldOutScores | None:
    """Return the scores that a run has kept of pairs in which its model had no part; ``None`` if there are none.

    ``model`` is a run folder or its ``model``.
    """
    run = _run_of(model)
    if not (run / manifest.FILE).is_file():
        return None
    return read_held_out(run)


def read_dev(model: str, reading_options: Mapping[str, Any]) -> PairData:
    """Return the pairs that chose the state of a run: those held out, or else those of the file that was given.

    ``model`` is a run folder or its ``model``; for ``reading_options`` see :func:`~samesense.data.read_pairs`.

    Raises:
        ConfigError: if there is no such run, or it had no such pairs.
        DataError: if the file is gone or holds something else.
    """
    run = _run_of(model)
    fix = "Give labelled pairs that the model was not trained on: `data` FILE"
    if not (run / manifest.FILE).is_file():
        raise ConfigError(f"{model} is no run of samesense train, which would have pairs of its own. {fix}")
    about = manifest.read(run)["data"].get("dev")
    if about is None:
        raise ConfigError(f"The run in {run} had no dev pairs. {fix}")
    held_out = next((run / name for name in DEV if (run / name).is_file()), None)
    if held_out is not None:
        logger.info(f"data: {held_out}, {about['rows']} pairs held out of the training data")
        with table_options():  # the file is one of this library
            scale = tuple(about["scale"]) if about["scale"] and holds_scores(held_out) else None
            return read_pairs(held_out, label_range=scale)
    source = about["source"]
    if not leads_to(source, Path.exists):
        raise DataError(f"The run in {run} was selected on {source}, which is not there. {fix}")
    pairs = read_pairs(source, **reading_options)
    if pairs.sha256 != about["sha256"]:
        raise DataError(
            f"The run in {run} was selected on {source}, which was another file then, or was read with other flags. "
            f"{fix}"
        )
    logger.info(f"data: {source}, {len(pairs)} pairs on which the run was selected")
    return pairs


def _run_of(model: str) -> Path:
    """Return the folder of a run, by its name or that of its model."""
    folder = Path(model).expanduser()
    if folder.name == MODEL:
        return folder.parent
    return folder
