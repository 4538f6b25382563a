"""``samesense train``: from whatever supervision there is to a judged model folder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from samesense.cli.flags import flags
from samesense.cli.output import Columns, DropBadRows, LabelOrder, LabelRange, put, put_json
from samesense.data import PairData, examine, read_pairs
from samesense.errors import ConfigError
from samesense.execution.ranks import finish
from samesense.recipes.methods import METHODS, READING, Reading, fitting_method, method_named

if TYPE_CHECKING:
    from samesense.data.examples import Examples
    from samesense.recipes.methods import Method
    from samesense.recipes.settings import EncoderSettings

logger = logging.getLogger(__name__)

Flags: Any = flags({name: method.settings for name, method in METHODS.items()}, without=READING)


def train(
    data: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    method: str = "auto",
    dev: str = "auto",
    test: str | None = None,
    config: str = "auto",
    settings: Annotated[Flags, Parameter(name="*")] = None,
    columns: Columns = None,
    label_order: LabelOrder = None,
    label_range: LabelRange = None,
    drop_bad_rows: DropBadRows = False,
    folds: str | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Train a model from labelled pairs, anchors with positives and negatives, unlabelled sentences, or documents.

    samesense train train.tsv --dev dev.tsv --test test.tsv --output runs/first

    Args:
        data: one or more files (TSV, CSV, JSON lines, Parquet, text; plain or .gz), saved datasets folders, or hub
            names; for surrogate a folder of samesense harvest.
        output: folder of the run; the model is in its folder model.
        method: cosent, supmpn, simcse, rankcse, sections, surrogate, or context, which goes from documents to a
            surrogate; auto is rankcse with a teacher, simcse for .txt files, else cosent.
        dev: pairs that select the best state; auto holds out a tenth of labelled pairs, or a hundredth of a harvest;
            none keeps the last state.
        test: pairs on which the model is judged before and after.
        config: TOML file of settings, or a shipped one by name; auto takes the paper's.
        settings: single settings; they win over the file.
        columns: text and label columns by name, as in: question1,question2,is_duplicate
        label_order: names of the labels 0, 1, 2 of NLI data, as in: entailment,neutral,contradiction
        label_range: lowest and highest label of the scale, as in: 0 5
        drop_bad_rows: leave out rows that break a rule, and say how many.
        folds: judge by cross-validation instead of making a model: so many random folds, or by-topic, each subset one.
        resume: go on with an interrupted run.
        overwrite: replace an earlier run in the output folder.
        dry_run: say what the data is and which settings hold, and stop.
        json: print one JSON object a result.
    """
    how = Reading(columns, label_order, label_range, drop_bad_rows)
    given = {} if settings is None else settings.model_dump(exclude_none=True)
    chosen_method = fitting_method(data, config, given) if method == "auto" else method_named(method)
    name, chosen, train_data = _opened(chosen_method, data, config, *chosen_method.taking(given, how))
    if folds is not None and not dry_run:
        _cross_validate(chosen_method, train_data, chosen, output, folds, (dev, test), resume, overwrite, json)
        return
    dev_data = None if dev == "auto" else _pairs(dev, how)
    test_data = _pairs(test, how)
    if dev == "auto":
        train_data, dev_data = chosen_method.hold_out(train_data, chosen.seed)
    _tell(train_data, dev_data, test_data)
    if dev_data is not None:
        logger.info(
            f"selection: Spearman on {len(dev_data)} pairs {'held out' if dev == 'auto' else 'of ' + dev_data.name}"
        )
    else:
        logger.info(f"selection: {chosen_method.selects}")
    logger.info(f"settings: {name}{''.join(f', {key} = {value}' for key, value in given.items())}")
    if dry_run:
        for line in chosen_method.account(train_data, chosen):
            logger.info(line)
        put_json([chosen.model_dump()])
        return
    _run(chosen_method, train_data, chosen, output, dev_data, test_data, resume, overwrite, json)


def _opened(
    method: Method, data: list[str], config: str, given: dict[str, Any], how: Reading
) -> tuple[str, EncoderSettings, Examples]:
    """Return the settings of the run, by name and as they are, and its training data."""
    early: list[Examples] = []

    def read() -> Examples:
        early.append(method.read(data, method.settings(), how))
        return early[0]

    name, chosen = method.choose(config, given, read)
    return name, chosen, early[0] if early else method.read(data, chosen, how)


def _tell(train: Examples, dev: PairData | None, test: PairData | None) -> None:
    if not isinstance(train, PairData):
        logger.info(f"data: {getattr(train, 'summary', None) or f'{train.name}, {len(train)} examples'}")
        return
    others = {part: data for part, data in (("dev", dev), ("test", test)) if data is not None}
    for line in examine(train, against=others).lines():
        logger.info(line)


def _pairs(source: str | None, how: Reading) -> PairData | None:
    return None if source in (None, "none") else read_pairs(source, **vars(how.judging(source)))


def _cross_validate(
    method: Method,
    train: Examples,
    settings: EncoderSettings,
    output: Path,
    folds: str,
    others: tuple[str, str | None],
    resume: bool,
    overwrite: bool,
    json: bool,
) -> None:
    if others[0] not in ("auto", "none") or others[1] is not None or not isinstance(train, PairData):
        raise ConfigError(
            "--folds deals labelled pairs into what teaches and what judges, and nothing selects. Leave out --dev and "
            "--test, and give labelled pairs."
        )
    from samesense.recipes.folds import cross_validate
    from samesense.reports import results_table

    results = cross_validate(method, train, settings, output, folds, resume=resume, overwrite=overwrite)
    if json:
        put_json(result.to_dict() for result in results)
    else:
        put(results_table(results))


def _run(
    method: Method,
    train: Examples,
    settings: EncoderSettings,
    output: Path,
    dev: PairData | None,
    test: PairData | None,
    resume: bool,
    overwrite: bool,
    json: bool,
) -> None:
    from samesense.reports import results_table

    trained = method.run(train, settings, output, dev=dev, test=test, resume=resume, overwrite=overwrite)
    outcome = trained.outcome
    if outcome.interrupted:
        logger.info(f"stopped at step {outcome.steps}; everything is kept. Go on with the same command and --resume.")
        raise KeyboardInterrupt
    logger.info(f"trained {outcome.steps} steps in {outcome.seconds:.0f} s in {outcome.precision}")
    if outcome.best_dev_spearman is not None:
        logger.info(f"best dev Spearman {100 * outcome.best_dev_spearman:.2f} at step {outcome.best_step}")
    logger.info(f"model: {trained.folder}")
    if json:
        put_json(result.to_dict() for result in trained.results)
    elif trained.results:
        put(results_table(trained.results))
    finish()
