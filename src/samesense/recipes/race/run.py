"""A race: start models evaluated, entrants trained in rungs of rising length, smaller forms of the winner, and the end.

race.json  runs/  starts/  forms/  model/ (the best)  cpu/ (the one for a CPU, if it is another)  leaderboard.md

Each rung trains the remaining entrants from scratch, for longer, and passes on one in three. Every rung has the same
time, and every entrant of it the same share. Where runs end early, as those of static models do, the next combinations
take part in another bracket of rungs. Selection sees dev alone; test is evaluated once, at the end, for what is
recommended.

Source: Jamieson and Talwalkar 2016, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", for
    successive halving.
Differs: the resource is time, not steps, so that small models have more steps in it. An entrant starts again in each
    rung, as its learning rate falls to 0 at the end of a run. The best score of all rungs wins, and an untrained start
    takes part.
"""

from __future__ import annotations

import logging
from dataclasses import asdict

from samesense.choices import check_number
from samesense.data.sampling import spread_over
from samesense.errors import ConfigError, ModelError, OutputError, SamesenseError
from samesense.locks import only_writer
from samesense.places import check_folder
from samesense.recipes.planning.dev_split import iterate_texts
from samesense.recipes.race.board import RaceResult, quality_of
from samesense.recipes.race.cells import LOOKS, LOOKS_SHARE, Cells
from samesense.recipes.race.clock import FEW_STEPS, KEPT, Clock, rungs, that_fit
from samesense.recipes.race.end import finish
from samesense.recipes.race.entrants import Entrant, check_selecting, entrants
from samesense.recipes.race.forms import FORMS, Form, Winner, shape_of
from samesense.recipes.race.starts import TIMED, at_hand, open_at_hand, open_named
from samesense.recipes.race.state import Race, Rung, State
from samesense.recipes.sweep.identity import fingerprint_of
from samesense.recipes.sweep.splits import sample_rows

logger = logging.getLogger(__name__)

DEV_PAIRS_A_SECOND = 2.0
"""Pairs of dev that are used for each second of the budget, as every run is evaluated on them."""

LEAST_DEV = 200
"""Pairs of dev that are used, however short the budget is."""

MOST_DEV = 2000
"""Pairs of dev that are used, however long the budget is."""


def race(request: Race) -> RaceResult:
    """Hold a race, or go on with it; see :func:`samesense.race`."""
    local_models = _checked(request)
    cells = _cells(request)
    sample = _sample(cells)
    # Opened before anything is written, so that a wrong name leaves nothing behind.
    named_starts = [] if cells.state.starts else open_named(request.models, sample)
    with only_writer(request.output):
        cells = _reopened(cells)  # another call may have gone on with it, and ended
        try:
            cells.save()
            if not cells.state.starts:
                # Those that are named have been opened above.
                other_models = [name for name in local_models if name not in request.models]
                texts = _texts(cells)
                static = request.output / "starts" / "static-of-default"
                starts = [*named_starts, *open_at_hand(other_models, static, texts, sample, cells.clock)]
                if not starts:
                    raise ModelError("No start model could be opened in the time. Give a larger `budget`.")
                cells.state.starts = starts
                cells.save()
            _run(cells)
            return finish(cells)
        finally:
            cells.save()


def _checked(request: Race) -> list[str]:
    """Return the models at hand; raises for what no race can be held on, before anything is opened."""
    planned = request.planned
    check_selecting(planned)
    check_number("cpu_drop", request.cpu_drop)
    if not 0 <= request.cpu_drop <= 100:
        raise ConfigError(f"`cpu_drop` is points of Spearman x100, from 0 to 100; received {request.cpu_drop:g}.")
    assert planned.dev is not None  # noqa: S101 - checked
    tests = [] if planned.test is None else [planned.test.source]
    check_folder(request.output, [planned.train.source, planned.dev.source, *tests, *request.models])
    local_models = at_hand() if request.at_hand else []
    if not local_models and not request.models:
        raise ConfigError("A race needs a start model, and none is at hand. Name one: `models`")
    return local_models


def _reopened(cells: Cells) -> Cells:
    """Return the race as it is in its folder now."""
    state = State.open(cells.request.output, cells.state.identity)
    return Cells(cells.request, state, Clock(cells.request.budget, state.spent, cells.request.begun), cells.dev)


def _cells(request: Race) -> Cells:
    """Return the race in its folder, or a new one."""
    train = request.planned.train
    dev = request.planned.dev
    assert dev is not None  # noqa: S101 - checked
    fingerprints: dict[str, str] = {}
    identity = {
        "train": train.sha256,
        "dev": dev.sha256,
        "label range": [list(getattr(data, "scale", None) or ()) for data in (train, dev)],  # decides targets
        "models": {name: fingerprint_of(name, fingerprints) for name in request.models},
        "at hand": request.at_hand,
        "seed": request.seed,
        "budget": request.budget,
    }
    state = State.open(request.output, identity)
    count = min(MOST_DEV, max(LEAST_DEV, int(DEV_PAIRS_A_SECOND * request.budget)))
    return Cells(request, state, Clock(request.budget, state.spent, request.begun), sample_rows(dev, count, 0))


def _texts(cells: Cells) -> list[str]:
    """Return the different texts of the training data."""
    return list(dict.fromkeys(iterate_texts(cells.request.planned.train)))


def _sample(cells: Cells) -> list[str]:
    return [cells.dev_texts[index] for index in spread_over(len(cells.dev_texts), TIMED)]


def _run(cells: Cells) -> None:
    """Make the runs that are not made yet."""
    state = cells.state
    if state.result is not None:
        return
    if not state.brackets:
        _evaluate_starts(cells)
    cells.keep_time_for_test()
    # A bracket that an earlier call began is ended first.
    if state.brackets:
        _run_rungs(cells)
    while _enter(cells):
        _run_rungs(cells)
    if not state.forms:
        _make_forms(cells)
        state.forms = True
        cells.save()


def _evaluate_starts(cells: Cells) -> None:
    """Evaluate the untrained starts, the fastest first while there is time, and put the best ones first."""
    state = cells.state
    for start in sorted(state.starts, key=lambda start: -start.speed):
        if cells.clock.for_starts < 0 and state.lines:
            state.note(f"no time was left for the start model {start.name}")
        else:
            cells.run(Entrant(start=start, overrides={}), 0)
    scores = {line["name"]: line["dev"] for line in state.lines}
    evaluated = [start for start in state.starts if start.name in scores]
    if not evaluated:
        raise ModelError(f"No start model could be evaluated: {'; '.join(state.notes)}")
    state.starts = sorted(evaluated, key=lambda start: -scores[start.name])


def _enter(cells: Cells) -> bool:
    """Let the next combinations take part, as many as a first rung has time for; returns whether there are any."""
    state = cells.state
    candidates = entrants(cells.request.planned, state.starts)
    if not candidates:
        raise ConfigError("The data fit none of the losses that a race tries. Train on them: samesense train")
    entered = {name for bracket in state.brackets for name in bracket[0]}
    remaining = [entrant for entrant in candidates if entrant.name not in entered]
    selected = that_fit(remaining, cells.costs(), cells.clock.for_rungs)
    if not selected and state.brackets:
        if remaining:
            kinds = "combinations of start model, loss and learning rate"
            state.note(f"there was time for {len(entered)} of {len(candidates)} {kinds}")
        return False
    # However short the time is, one entrant takes part.
    selected = selected or remaining[:1]
    logger.info(f"{len(selected)} of {len(remaining)} combinations take part; rungs: {rungs(len(selected))}")
    state.entrants += selected
    state.brackets.append([{entrant.name: None for entrant in selected}])
    cells.save()
    return True


def _run_rungs(cells: Cells) -> None:
    """Run the newest bracket, or go on with it."""
    clock = cells.clock
    bracket = cells.state.brackets[-1]
    count = rungs(len(bracket[0]))
    for number in range(count):
        if number == len(bracket):
            bracket.append(dict.fromkeys(_best_of(cells, bracket[-1])))
            cells.save()
        rung = bracket[number]
        # Computed in each rung, so that time left over goes to the later ones.
        deadline = clock.spent + clock.for_rungs / (count - number)
        for position, name in enumerate(rung):
            seconds = (deadline - clock.spent) / (len(rung) - position)
            if _bind_steps(cells, rung, name, seconds, final=number == count - 1):
                cells.run(cells.state.entrant(name), int(rung[name] or 0), final=number == count - 1)


def _bind_steps(cells: Cells, rung: Rung, name: str, seconds: float, *, final: bool) -> bool:
    """Decide how many steps an entrant has, unless that is decided; returns whether there is time for them."""
    if rung[name] is not None:
        return True
    entrant = cells.state.entrant(name)
    costs = cells.costs()
    evaluation_seconds = costs.evaluation_of(entrant)
    reserved_seconds = 0.0
    # In the last rung, dev is also evaluated within the run.
    if final:
        reserved_seconds = evaluation_seconds + min(LOOKS * evaluation_seconds, LOOKS_SHARE * seconds)
    steps = min(costs.steps_in(entrant, seconds - reserved_seconds), cells.most_steps(entrant))
    # All epochs of little data may have fewer steps than that.
    if steps < min(FEW_STEPS, cells.most_steps(entrant)):
        cells.state.note(f"no time was left for {name}" + (" in the last rung" if final else ""))
        return False
    # Saved before the run: resumed, it must have as many steps.
    rung[name] = steps
    cells.save()
    return True


def _best_of(cells: Cells, rung: Rung) -> list[str]:
    """Return the names that go on: the best third, rounded up."""
    scored = {name: line["dev"] for name, steps in rung.items() if steps and (line := cells.state.line(name, steps))}
    return sorted(scored, key=lambda name: -scored[name])[: -(-len(rung) // KEPT)]


def _make_forms(cells: Cells) -> None:
    """Make smaller forms of the best model, as far as there is time."""
    state = cells.state
    best = quality_of(cells.state.board())
    location = str(best.place)
    depth, width = shape_of(location)
    if not depth:
        state.note("no smaller forms were made: the best model is a static one")
        return
    texts = _texts(cells)
    winner = Winner(
        place=location,
        name=best.name,
        speed=best.speed,
        depth=depth,
        width=width,
        texts=texts,
        sample=_sample(cells),
        seed=cells.request.seed,
    )
    for form, make in FORMS.items():
        # An earlier call may have made it.
        if not any(line["form"] == form for line in state.lines):
            logger.info(f"smaller form of the best: {form}")
            try:
                form_or_reason = make(winner, cells.request.output / "forms" / form, cells.clock)
            except OutputError:  # the next call goes on
                raise
            except SamesenseError as error:  # such as of a model without vocabulary
                form_or_reason = f"{form}: {error}"
            _take(cells, form_or_reason)


def _take(cells: Cells, form: Form | str | None) -> None:
    """Put a form on the board, or note why it was not made."""
    if form is None:
        raise KeyboardInterrupt
    if isinstance(form, str):
        cells.state.note(f"not made: {form}")
    else:
        scores = form.model.scores(cells.dev.pairs())
        line = cells.line(
            form.name, form.form, scores, form.speed, form.megabytes, form.steps, form.place, form.backend
        )
        cells.state.lines.append(asdict(line))
    cells.save()
