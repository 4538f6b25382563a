"""``samesense.race``: finds the best method, start model and settings within a budget of time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from samesense.api.data import Scale
from samesense.api.library_function import library_function
from samesense.choices import check_list
from samesense.data.rows.sources import Source
from samesense.data.rows.table_options import Header, Quoting

if TYPE_CHECKING:
    from samesense.recipes.race.board import RaceResult


@library_function
def race(  # noqa: PLR0913 - the flags of the command
    data: Source,
    *,
    output: str | Path,
    budget: str | float = "30m",
    models: Sequence[str] = (),
    at_hand: bool = True,
    dev: Source | Literal["auto"] = "auto",
    test: Source | None = None,
    cpu_drop: float = 2.0,
    seed: int = 42,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
) -> RaceResult:
    """Find the best model for some data within a budget of time: methods, start models and settings by halving on dev.

    Run again, a race that was stopped is resumed, and a finished one gives its result again.

    Args:
        data: files, folders or hub names: labelled pairs, anchors with positives, sentences with classes, or unlabelled
            sentences with ``dev``; see :func:`samesense.train`.
        output: folder of the race; the best model is in its folder ``"model"``, the one for a CPU in ``"cpu"``.
        budget: time of all calls together, as in ``"90s"``, ``"30m"`` or ``"2h"``; a number counts seconds. At least
            30 seconds.
        models: start models, by folder or hub name.
        at_hand: add start models that need no download: the default, a static model made of it, and
            sentence-transformers models in the hub's cache.
        dev: labelled pairs that select; ``"auto"`` holds out a tenth of labelled pairs.
        test: labelled pairs on which the recommended models are evaluated once, at the end.
        cpu_drop: points of Spearman x100 on dev that the model for a CPU may lose against the best.
        seed: seed of every run.
        columns, label_order, label_range, drop_bad_rows: see :func:`samesense.read`.

    Returns:
        Prints as the leaderboard; ``model`` and ``cpu_model`` are folders.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before anything is written, if the race cannot run.
        KeyboardInterrupt: after Ctrl-C; everything finished is kept.
    """
    from samesense.execution.torch_import import loading_torch
    from samesense.recipes.planning.plan import plan
    from samesense.recipes.race.clock import now, seconds_of
    from samesense.recipes.race.entrants import check_selecting
    from samesense.recipes.reading import Reading

    # The budget counts from the call: reading and the import of torch use it up too.
    begun = now()
    seconds = seconds_of(budget)
    check_list("models", models)
    reading = Reading(columns, label_order, label_range, drop_bad_rows)
    # Before torch is imported, so that mistakes in data and settings show at once.
    planned = plan(data, dev=dev, test=test, settings={"seed": seed}, reading=reading, for_race=True)
    check_selecting(planned)
    with loading_torch():
        from samesense.recipes.race.run import race as run
        from samesense.recipes.race.state import Race

    request = Race(
        planned=planned,
        models=models,
        at_hand=at_hand,
        budget=seconds,
        output=Path(output),
        cpu_drop=cpu_drop,
        seed=seed,
        begun=begun,
    )
    return run(request)
