"""``samesense train``: from labelled pairs to a judged model folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from samesense.cli.output import Columns, DropBadRows, LabelOrder, LabelRange, put, put_json, quiet_libraries, say
from samesense.recipes.settings import CosentSettings, as_config_error, choose
from samesense.training.ranks import finish

if TYPE_CHECKING:
    from samesense.data import PairData


def _flags(settings: type[BaseModel]) -> type[BaseModel]:
    """Return the settings with nothing required and nothing set, so that only flags that were given count."""
    fields: dict[str, Any] = {}
    for name, field in settings.model_fields.items():
        default = "" if field.default is None else f" [{field.default}]"
        optional = field.annotation if field.default is None else field.annotation | None  # type: ignore[operator]
        note = Parameter(show_default=False, help=f"{field.description}{default}")
        fields[name] = (Annotated[optional, note], Field(default=None))
    config = ConfigDict(protected_namespaces=(), extra="forbid")
    one_line: Any = model_validator(mode="wrap")(_in_one_line)
    return create_model(f"{settings.__name__}Flags", __config__=config, __validators__={"one_line": one_line}, **fields)


def _in_one_line(cls: Any, values: Any, check: Any) -> Any:
    """Check flags as pydantic does, and say what is wrong as everywhere else."""
    try:
        return check(values)
    except ValidationError as error:
        raise as_config_error(error) from error


Flags: Any = _flags(CosentSettings)


def train(
    data: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    dev: str = "auto",
    test: str | None = None,
    config: str = "auto",
    settings: Annotated[Flags, Parameter(name="*", group="Settings")] = None,
    columns: Columns = None,
    label_order: LabelOrder = None,
    label_range: LabelRange = None,
    drop_bad_rows: DropBadRows = False,
    resume: Annotated[bool, Parameter(negative="")] = False,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Train a model from labelled pairs, scored, binary or NLI, with CoSENT or another loss.

    Args:
        data: one or more files (TSV, CSV, JSON lines, Parquet; plain or .gz), saved datasets folders, or hub names.
        output: folder of the run; the model is in its folder model.
        dev: pairs that select the best state; auto holds out a tenth of the training pairs; none keeps the last state.
        test: pairs on which the model is judged before and after.
        config: TOML file of settings, or a shipped one by name; auto takes the paper's for the kind of labels.
        settings: single settings; they win over the file.
        columns: text and label columns by name, as in: question1,question2,is_duplicate
        label_order: names of the labels 0, 1, 2 of NLI data, as in: entailment,neutral,contradiction
        label_range: lowest and highest label of the scale, as in: 0 5
        drop_bad_rows: leave out rows that break a rule, and say how many.
        resume: go on with an interrupted run.
        overwrite: replace an earlier run in the output folder.
        dry_run: say what the data is and which settings hold, and stop.
        json: print one JSON object a result.
    """
    from samesense.data import concat, examine, read_pairs

    def read(source: str) -> PairData:
        return read_pairs(
            source, columns=columns, label_order=label_order, label_range=label_range, drop_bad_rows=drop_bad_rows
        )

    pairs = concat([read(source) for source in data])
    given = {} if settings is None else settings.model_dump(exclude_none=True)
    name, chosen = choose(config, given, kind=pairs.kind)
    dev_data, test_data = _selection(dev, read), None if test is None else read(test)
    if dev == "auto":
        from samesense.recipes.holdout import hold_out

        pairs, dev_data = hold_out(pairs, chosen.seed)
    others = {part: d for part, d in (("dev", dev_data), ("test", test_data)) if d is not None}
    for line in examine(pairs, against=others).lines():
        say(line)
    if dev_data is not None:
        say(f"selection: Spearman on {len(dev_data)} pairs {'held out' if dev == 'auto' else 'of ' + dev_data.name}")
    say(f"settings: {name}{''.join(f', {key} = {value}' for key, value in given.items())}")
    if dry_run:
        say(chosen.targets(pairs).account)
        put_json([chosen.model_dump()])
        return
    _run(pairs, chosen, output, dev_data, test_data, resume, overwrite, json)


def _selection(dev: str, read: Any) -> PairData | None:
    return None if dev in ("auto", "none") else read(dev)


def _run(
    pairs: PairData,
    settings: CosentSettings,
    output: Path,
    dev: PairData | None,
    test: PairData | None,
    resume: bool,
    overwrite: bool,
    json: bool,
) -> None:
    quiet_libraries()
    from samesense.reports import results_table

    if settings.encoder == "cross":
        from samesense.recipes.cosent_cross import run
    else:
        from samesense.recipes.cosent import run
    trained = run(pairs, settings, output, dev=dev, test=test, resume=resume, overwrite=overwrite, say=say)
    outcome = trained.outcome
    if outcome.interrupted:
        say(f"stopped at step {outcome.steps}; everything is kept. Go on with the same command and --resume.")
        raise KeyboardInterrupt
    say(f"trained {outcome.steps} steps in {outcome.seconds:.0f} s in {outcome.precision}")
    if outcome.best_dev_spearman is not None:
        say(f"best dev Spearman {100 * outcome.best_dev_spearman:.2f} at step {outcome.best_step}")
    say(f"model: {trained.folder}")
    if json:
        put_json(result.to_dict() for result in trained.results)
    elif trained.results:
        put(results_table(trained.results))
    finish()
