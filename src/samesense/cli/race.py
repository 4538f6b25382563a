"""``samesense race``: finds the best method, start model and settings within a budget of time."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import (
    DEFAULT_FORMAT,
    DEFAULT_PAIRS,
    RERUN,
    Json,
    Output,
    PairFlags,
    Several,
    TableFlags,
    on_interrupt,
    put,
    put_json,
    reads_tables,
)


@reads_tables
def race(
    data: Several,
    /,
    *,
    output: Output,
    budget: str = "30m",
    models: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    at_hand: bool = True,
    dev: str = "auto",
    test: str | None = None,
    cpu_drop: float = 2.0,
    seed: int = 42,
    pair_options: PairFlags = DEFAULT_PAIRS,
    reading: TableFlags = DEFAULT_FORMAT,
    json: Json = False,
) -> None:
    """Find the best model for some data within a budget of time: methods, start models and settings by halving on dev.

    samesense race train.tsv --budget 30m --output races/mine

    The same command resumes a race that was stopped.

    Args:
        data: files, folders or hub names, as train takes them: labelled pairs, anchors with positives, sentences with
            classes, or unlabelled sentences with --dev.
        output: folder of the race; the best model is in its folder model, the one for a CPU in cpu.
        budget: time of all calls together, as in 90s, 30m or 2h.
        models: start models, by folder or hub name.
        at_hand: add start models that need no download: the default, a static model made of it, and
            sentence-transformers models in the hub's cache.
        dev: pairs that select; auto holds out a tenth of labelled pairs.
        test: pairs on which the recommended models are evaluated once, at the end.
        cpu_drop: points of Spearman x100 on dev that the model for a CPU may lose against the best.
        seed: seed of every run.
        json: print leaderboard, recommended models and figures on test as one JSON object.
    """
    import samesense
    from samesense.recipes.race.state import FILE

    with on_interrupt(RERUN, output / FILE):
        result = samesense.race(
            data,
            output=output,
            budget=budget,
            models=models,
            at_hand=at_hand,
            dev=dev,
            test=test,
            cpu_drop=cpu_drop,
            seed=seed,
            **vars(pair_options),
        )
    if json:
        put_json([result.to_dict()])
    else:
        put(str(result))
