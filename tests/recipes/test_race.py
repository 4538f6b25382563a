"""Races: who is promoted, what is recommended, how the budget is kept, and resuming."""

import itertools
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr

import samesense
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.execution.speed import Speed
from samesense.files import write_json
from samesense.recipes.planning.plan import plan
from samesense.recipes.race import cells, clock, end, entrants, forms, run, starts
from samesense.recipes.race.board import Line, RaceResult, cpu_of, quality_of
from samesense.recipes.race.clock import Clock, Costs, rungs, seconds_of, that_fit
from samesense.recipes.race.entrants import Entrant, Start
from samesense.recipes.race.state import Race
from samesense.recipes.reading import Reading
from samesense.results.results import Results
from samesense.types import Result
from tests.command import run_command
from tests.conftest import WORDS, random_bert
from tests.messages import listen

FORMS = run.FORMS


@pytest.fixture
def short(monkeypatch):
    """Time stands almost still, and few combinations are tried."""
    ticks = itertools.count()
    monkeypatch.setattr(clock, "now", lambda: next(ticks) / 1000)
    monkeypatch.setattr(entrants, "LOSSES", {"scored": ({"loss": "cosent"},)})
    monkeypatch.setattr(run, "FORMS", {})


@pytest.fixture
def asked(short, tiny_trunk, toy_pairs, tmp_path):
    files = {split: toy_pairs / f"{split}.tsv" for split in ("dev", "test")}
    train = samesense.read(toy_pairs / "train.tsv").take(range(48))
    return {"data": train, **files, "models": [str(tiny_trunk)], "at_hand": False, "output": tmp_path / "race"}


def score_of(model_path, pairs):
    return spearmanr(samesense.load(model_path, precision="float32").scores(pairs.pairs()), pairs.labels).statistic


@pytest.mark.slow
def test_the_best_go_on_and_the_best_of_all_wins(asked, monkeypatch):
    monkeypatch.setattr(entrants, "LOSSES", {"scored": ({"loss": "cosent"}, {"loss": "mse"})})
    held = samesense.race(**asked)
    state = json.loads((held.folder / "race.json").read_text())
    dev = {(line["name"], line["steps"]): line["dev"] for line in state["lines"] if not line["final"]}
    (bracket,) = state["brackets"]
    first, second, third = bracket
    assert [len(first), len(second), len(third)] == [4, 2, 1]
    for rung, following in itertools.pairwise(bracket):
        ranked = sorted(rung, key=lambda name: -dev[name, rung[name]])
        assert list(following) == ranked[: len(following)]
    assert held.quality.dev == max(line["dev"] for line in state["lines"])
    assert held.lines == sorted(held.lines, key=lambda line: -line.dev)
    assert all(line.low < line.dev < line.high for line in held.lines)
    assert score_of(held.model, samesense.read(asked["dev"])) == pytest.approx(held.quality.dev, abs=1e-6)
    tested = next(row for row in held.test if row.metric == "spearman")
    assert score_of(held.folder, samesense.read(asked["test"])) == pytest.approx(tested.value, abs=1e-6)
    assert held.spent <= held.budget
    assert held.quality.name in str(held) and "recommended" in str(held)
    runs = [json.loads(path.read_text()) for path in sorted((held.folder / "runs").glob("*/manifest.json"))]
    selecting = [run_record for run_record in runs if run_record["outcome"]["best_dev_spearman"] is not None]
    assert len(selecting) == len(third), "only the last rung selects within a run"
    assert not any("test" in run_record["data"] for run_record in runs)


@pytest.mark.slow
def test_a_stop_loses_nothing_and_a_second_call_does_nothing(asked, monkeypatch, tmp_path):
    calls = []
    real = cells.run_cell

    def stopped(job):
        calls.append(job.cell.name)
        return "interrupted" if len(calls) == 3 else real(job)

    monkeypatch.setattr(cells, "run_cell", stopped)
    with pytest.raises(KeyboardInterrupt):
        samesense.race(**asked)
    held = samesense.race(**asked)
    assert len(calls) == len(held.lines) + 1
    again = samesense.race(**asked)
    assert (len(calls), again.to_dict()) == (len(held.lines) + 1, held.to_dict())
    whole = samesense.race(**{**asked, "output": tmp_path / "whole"})
    assert [(line.name, line.steps, line.dev) for line in whole.lines] == [
        (line.name, line.steps, line.dev) for line in held.lines
    ]


def full(*_):
    raise OutputError("it cannot be written: No space left on device")


def test_a_full_disk_ends_a_race_and_is_no_failure_of_what_takes_part(asked, monkeypatch):
    monkeypatch.setattr(entrants, "RATES", {"transformer": (1e-4,)})
    with monkeypatch.context() as patch, pytest.raises(OutputError, match="No space left"):
        patch.setattr("samesense.recipes.sweep.cell._train", full)
        samesense.race(**asked)
    state = json.loads((asked["output"] / "race.json").read_text())
    assert (len(state["lines"]), state["notes"], state["result"]) == (1, [], None)
    held = samesense.race(**asked)
    assert [line.form for line in held.lines if line.steps] == ["trained"] and not held.notes


def test_a_full_disk_is_no_reason_to_go_without_a_form_or_a_start(asked, monkeypatch):
    monkeypatch.setattr(run, "FORMS", {"static": full})
    monkeypatch.setattr(run, "shape_of", lambda _: (2, 32))
    monkeypatch.setattr(entrants, "RATES", {"transformer": (1e-4,)})
    with pytest.raises(OutputError, match="No space left"):
        samesense.race(**asked)
    monkeypatch.setattr(starts, "_open", full)
    with pytest.raises(OutputError, match="No space left"):
        starts.open_at_hand(["a"], asked["output"], [], [], Clock(60.0, 0.0, 0.0))


def test_a_race_that_another_call_ended_meanwhile_is_not_begun_again(asked, monkeypatch):
    monkeypatch.setattr(entrants, "RATES", {"transformer": (1e-4,)})
    held = []
    open_named = run.open_named

    def while_another_call_ends(*arguments):
        if not held:
            held.append(None)
            held.append(samesense.race(**asked))
        return open_named(*arguments)

    monkeypatch.setattr(run, "open_named", while_another_call_ends)
    monkeypatch.setattr(cells, "run_cell", lambda job, real=cells.run_cell: 1 / 0 if len(held) > 1 else real(job))
    assert samesense.race(**asked).to_dict() == held[1].to_dict()


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [("90s", 90), ("1.5m", 90), (" 2 h ", 7200), ("90", 90), ("90.5", 90.5), (90, 90), (30.0, 30)],
)
def test_a_budget_is_a_time_or_a_number_of_seconds(budget, seconds):
    assert seconds_of(budget) == seconds


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"budget": "soon"}, ConfigError, "as in 90s, 30m or 2h, or a number of seconds; received 'soon'"),
        ({"budget": "1s"}, ConfigError, "30 seconds or more; received 1s"),
        ({"budget": "29"}, ConfigError, "30 seconds or more; received 29"),
        ({"budget": 29.5}, ConfigError, r"30 seconds or more; received 29\.5"),
        ({"budget": float("nan")}, ConfigError, "or a number of seconds; received 'nan'"),
        ({"cpu_drop": -1}, ConfigError, "received -1"),
        ({"cpu_drop": "2"}, ConfigError, "`cpu_drop` is a number; received '2'"),
        ({"models": ["/no/such/model"]}, ModelError, "There is no model folder at /no/such/model"),
        ({"models": []}, ConfigError, "none is at hand"),
        ({"data": ["one text", "another text"], "dev": "auto"}, ConfigError, "selects on labelled pairs"),
        ({"data": "nothing.tsv"}, DataError, "nothing.tsv"),
        ({"dev": "nothing.tsv"}, DataError, "nothing.tsv"),
    ],
)
def test_what_no_race_can_be_held_on_leaves_nothing(asked, tmp_path, change, error, message):
    with pytest.raises(error, match=message):
        samesense.race(**{**asked, **change})
    assert list(tmp_path.iterdir()) == []


def test_a_race_names_no_settings_that_it_does_not_take(toy_pairs):
    lines = listen()
    for for_race in (False, True):
        plan(toy_pairs / "train.tsv", dev=toy_pairs / "dev.tsv", for_race=for_race)
        named = [line for line in lines if line.endswith("overrides")]
        assert bool(named) is not for_race
        lines.clear()


def test_another_scale_of_labels_is_another_race(tiny_trunk, toy_pairs, tmp_path):
    def begun(**reading):
        planned = plan(toy_pairs / "train.tsv", dev=toy_pairs / "dev.tsv", reading=Reading(**reading))
        return run._cells(
            Race(
                planned=planned,
                models=[str(tiny_trunk)],
                at_hand=False,
                budget=60.0,
                output=tmp_path,
                cpu_drop=1.0,
                seed=0,
                begun=0.0,
            )
        )

    begun().save()
    begun()
    with pytest.raises(ConfigError, match="holds another race: it differs in label range"):
        begun(label_range=(0, 10))


@pytest.mark.slow
def test_a_folder_that_holds_something_else_is_left_alone(asked, monkeypatch):
    monkeypatch.setattr(entrants, "RATES", {"transformer": (1e-4,)})
    asked["output"].mkdir()
    (asked["output"] / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="is not empty and holds no race"):
        samesense.race(**asked)
    (asked["output"] / "notes.txt").unlink()
    samesense.race(**asked)
    with pytest.raises(ConfigError, match="it differs in seed, budget"):
        samesense.race(**{**asked, "budget": "20m", "seed": 1})


def test_the_command_prints_what_the_function_gives(asked, capsys, monkeypatch):
    monkeypatch.setattr(entrants, "RATES", {"transformer": (1e-4,)})
    words = ["--dev", asked["dev"], "--models", *asked["models"], "--no-at-hand", "--output", asked["output"]]
    train = asked["dev"].parent / "test.tsv"
    code, out, _ = run_command(capsys, "race", train, *words)
    assert code == 0
    assert out.startswith("| model")
    code, out, _ = run_command(capsys, "race", train, *words, "--json")
    printed = json.loads(out)
    assert printed["quality"]["dev"] == max(line["dev"] for line in printed["lines"])


START = Start(name="m", model="m", static=False, speed=500.0, megabytes=90.0)


def line(name, dev, speed, form="trained", place="there", rounds=()):
    return Line(
        name=name, form=form, dev=dev, low=0, high=1, speed=speed, megabytes=1, steps=1, place=place, rounds=rounds
    )


def timed(name, dev, *rounds, form="trained", place="there"):
    return line(name, dev, sorted(rounds)[len(rounds) // 2], form, place, rounds)


def result_of(lines, cpu, folder="x", **fields):
    return RaceResult(folder=Path(folder), lines=lines, quality=lines[0], cpu=cpu, spent=61, budget=90, **fields)


def test_speeds_have_ranges_and_those_that_were_not_measured_in_turns_are_marked():
    best = timed("best", 0.9, 90, 100, 110)
    small = timed("small", 0.89, 280, 310, 300)
    third_line = line("other", 0.8, 700)
    held = result_of([best, small, third_line], small)
    assert "about 3.0 times as fast (300 (280 to 310) against 100 (90 to 110)" in "\n".join(held.describe())
    (*_, first, second, third) = held.table().splitlines()
    assert " 100 (90 to 110) " in first and " 300 (280 to 310) " in second and " ~700 " in third
    assert "timed in turns" in str(held) and "~ was timed by itself" in str(held)
    assert "~" not in str(result_of([best, small], small))
    assert "not quiet while speeds were measured (busy): compare ranges" in str(
        result_of([best], best, disturbed="busy")
    )


def test_no_model_is_called_faster_where_ranges_overlap():
    best = timed("best", 0.9, 90, 100, 110)
    near = timed("near", 0.895, 105, 150, 160)
    fast = timed("fast", 0.89, 155, 200, 220)
    assert cpu_of([best, near], 2) == best
    assert cpu_of([best, near, fast], 2) == fast, "near may be as slow as the best"
    sure = timed("sure", 0.895, 150, 160, 170)
    noisy = timed("noisy", 0.89, 165, 200, 300)
    assert cpu_of([best, sure, noisy], 2) == sure, "of those that may be equally fast the best on dev"
    assert cpu_of([best, line("quick", 0.89, 1e6)], 2) == best, "one that was not timed in turns is not taken"
    large = replace(timed("large", 0.9, 900, 910, 920), megabytes=2)
    assert quality_of([best, large]) == quality_of([large, best]) == best, "of equal ones the smallest"


def test_names_in_the_leaderboard_are_no_markup():
    evil = "<img src=x onerror=alert(1)>|[a](b) `c`"
    best = timed(evil, 0.9, 90, 100, 110)
    result = Result(
        task="sts",
        dataset=evil,
        split="",
        subset="all",
        metric="spearman",
        value=0.5,
        n=9,
        protocol="cosine",
        model=evil,
    )
    tested = Results([result])
    page = result_of([best], best, notes=[f"failed: {evil}"], test=tested, folder="<b>").markdown()
    assert not re.search(r"(?<!\\)<\w|(?<!\\)\]\(|(?<!\\)`", page), page
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table
    assert evil in str(result_of([best], best)), "people read names as they are"


def test_models_are_timed_in_turns_once(monkeypatch):
    loaded = []
    monkeypatch.setattr(end, "load", lambda path, **options: loaded.append(path) or path)
    monkeypatch.setattr(
        end,
        "measure_costs",
        lambda models, texts: [SimpleNamespace(speed=Speed((1.0, 2.0, 3.0)), disturbed="busy") for _ in models],
    )
    lines = [line(str(number), 0.9 - number / 1000, float(number), place=f"place {number}") for number in range(30)]
    state = SimpleNamespace(
        request=SimpleNamespace(cpu_drop=2, budget=60), dev_texts=["a text"], state=SimpleNamespace()
    )
    rounds, disturbed = end.time_models(state, lines, {})
    assert loaded == ["place 0", "place 20", "place 19"], "the best, and the fastest of those that lose little"
    assert (rounds["place 20"], disturbed) == ([1.0, 2.0, 3.0], "busy")
    assert end.time_models(state, lines, {"speeds": rounds, "disturbed": "then"}) == (rounds, "then")
    assert len(loaded) == 3


def test_what_is_recommended():
    best = timed("a", 0.8, 9, 10, 11)
    small = timed("b", 0.79, 80, 90, 95)
    fast = timed("c", 0.7, 800, 900, 950)
    gone = line("d", 0.9, 1, place=None)
    eight = timed("a, int8", 0.81, 35, 40, 45, form="int8")
    board = [best, small, fast, gone, eight]
    assert quality_of(board) == best
    assert [cpu_of(board, drop).name for drop in (0.0, 0.5, 1.5, 20)] == ["a, int8", "a, int8", "b", "c"]
    table = RaceResult(folder="x", lines=board, quality=best, cpu=small, spent=61, budget=90).table().split("\n")
    assert len({len(row) for row in table}) == 1


def test_rungs_and_who_takes_part():
    assert [rungs(count) for count in (1, 2, 3, 4, 9, 10, 27)] == [1, 2, 2, 3, 3, 4, 4]
    costs = Costs(texts_a_step=32, dev_texts=1000)
    every = [Entrant(start=START, overrides={"learning_rate": 10.0**-exponent}) for exponent in range(30)]
    counts = [len(that_fit(every, costs, seconds)) for seconds in (1, 30, 100, 1000, 10_000)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 30)
    assert [seconds_of(text) for text in ("90s", "30m", "1.5h", 45)] == [90, 1800, 5400, 45]


def test_costs_are_guessed_and_then_known():
    costs = Costs(texts_a_step=32, dev_texts=1000)
    entrant = Entrant(start=START, overrides={"loss": "mse"})
    other_entrant = Entrant(start=START, overrides={"loss": "cosent"})
    guess = costs.step_of(entrant)
    costs.learn(entrant.name, "m", 10, 20.0, 25.0)
    assert costs.step_of(entrant) == costs.step_of(other_entrant) == 2.0 != guess
    assert costs.steps_in(entrant, 5.9 + 20.0) == 10


@pytest.mark.parametrize("budget", [60, 180, 600, 3600])
@pytest.mark.parametrize("slower", [0.3, 1, 3])
def test_the_budget_is_kept_though_guesses_are_wrong(tiny_trunk, toy_pairs, tmp_path, monkeypatch, budget, slower):
    """Runs are simulated: each takes the time of a true cost that is some times the guess."""
    time = SimpleNamespace(now=0.0)
    monkeypatch.setattr(clock, "now", lambda: time.now)
    monkeypatch.setattr(cells.Cells, "most_steps", lambda self, entrant: 20_000)
    state = run.State(
        folder=tmp_path, identity={}, starts=[replace(START, name=name, speed=speed) for name, speed in SPEEDS]
    )
    planned = plan(toy_pairs / "train.tsv", dev=toy_pairs / "dev.tsv")
    race = cells.Cells(SimpleNamespace(planned=planned, output=tmp_path), state, Clock(budget), planned.dev)

    def simulated(self, entrant, steps, *, final=False):
        true = Costs(texts_a_step=32, dev_texts=len(self.dev_texts))
        took = {"training": slower * steps * true.step_of(entrant), "seconds": slower * true.overhead_of(entrant)}
        took["seconds"] += took["training"] + (slower * 5 * true.evaluation_of(entrant) if final else 0)
        time.now += took["seconds"]
        dev = 0.5 + 0.4 * np.tanh(steps / 500)
        self.state.lines.append(
            {**asdict(line(entrant.name, dev, 1)), **took, "steps": steps, "start": entrant.start.name, "final": final}
        )

    monkeypatch.setattr(cells.Cells, "run", simulated)
    run._evaluate_starts(race)
    starts = time.now
    while run._enter(race):
        run._run_rungs(race)
    assert any(line_record["steps"] for line_record in state.lines)
    last = max(line_record["seconds"] for line_record in state.lines if line_record["steps"])
    assert time.now <= max(0.8 * budget, starts) + last
    entered = [name for bracket in state.brackets for name in bracket[0]]
    assert len(entered) == len(set(entered)) == len(state.entrants) >= 1
    if budget == 3600:
        assert len(state.entrants) == 18
        assert time.now > 0.3 * budget


def test_time_that_is_left_goes_to_the_next_combinations(toy_pairs, tmp_path, monkeypatch):
    """Static models end after the epochs of the recipe, long before their share of the time."""
    time = SimpleNamespace(now=0.0)
    monkeypatch.setattr(clock, "now", lambda: time.now)
    monkeypatch.setattr(cells.Cells, "most_steps", lambda self, entrant: 20 if entrant.start.static else 1000)
    starts = [replace(START, name="static", speed=9000.0, static=True), replace(START, speed=100.0)]
    state = run.State(
        folder=tmp_path, identity={}, starts=starts, lines=[asdict(line(name, 0.5, 1)) for name in ("static", "m")]
    )
    planned = plan(toy_pairs / "train.tsv", dev=toy_pairs / "dev.tsv")
    race = cells.Cells(SimpleNamespace(planned=planned, output=tmp_path), state, Clock(300), planned.dev)

    def simulated(self, entrant, steps, *, final=False):
        time.now += 1 if entrant.start.static else steps * self.costs().step_of(entrant)
        self.state.lines.append({**asdict(line(entrant.name, 0.6, 1)), "steps": steps, "final": final})

    monkeypatch.setattr(cells.Cells, "run", simulated)
    while run._enter(race):
        run._run_rungs(race)
    assert len(state.brackets) > 1 and time.now < 0.8 * 300
    assert 6 < len(state.entrants) < 12
    combinations = "combinations of start model, loss and learning rate"
    assert f"there was time for {len(state.entrants)} of 12 {combinations}" in state.notes


def test_time_is_kept_for_the_evaluation_on_test(toy_pairs, tmp_path):
    planned = plan(toy_pairs / "train.tsv", dev=toy_pairs / "dev.tsv", test=toy_pairs / "test.tsv")
    state = run.State(folder=tmp_path, identity={}, lines=[asdict(line("slow", 0.9, 2)), asdict(line("fast", 0.1, 50))])
    race = cells.Cells(SimpleNamespace(planned=planned), state, Clock(600, begun=clock.now()), planned.dev)
    before = race.clock.for_rungs, race.clock.for_forms
    race.keep_time_for_test()
    texts = {text for pair in planned.test.pairs() for text in pair}
    assert np.subtract(before, (race.clock.for_rungs, race.clock.for_forms)) == pytest.approx(len(texts) / 2, abs=0.1)


def test_a_finished_race_has_in_its_folders_what_is_asked_for_now(toy_pairs, tmp_path, monkeypatch):
    put = {}
    tested = []
    monkeypatch.setattr(end, "_put", lambda line, target: put.update({target.name: line.name}))
    monkeypatch.setattr(end, "_test", lambda line, test: tested.append((line.name, test.name)) or [])
    monkeypatch.setattr(
        end,
        "time_models",
        lambda cells, lines, cached: (
            {
                line_record.name: [line_record.speed, line_record.speed + 0.1, line_record.speed + 0.2]
                for line_record in lines
            },
            "",
        ),
    )
    lines = [
        asdict(line(name, dev, speed, place=name))
        for name, dev, speed in (("good", 0.9, 1), ("mid", 0.89, 5), ("tiny", 0.8, 9))
    ]
    state = run.State(folder=tmp_path, identity={}, lines=lines)

    def finish(drop, test):
        planned = SimpleNamespace(test=samesense.read(toy_pairs / f"{test}.tsv"), held_out=False)
        request = SimpleNamespace(cpu_drop=drop, planned=planned, output=tmp_path, budget=9)
        return end.finish(
            SimpleNamespace(state=state, request=request, clock=SimpleNamespace(spent=1), save=lambda: None)
        )

    for drop, cpu in ((2, "mid"), (20, "tiny"), (2, "mid")):
        assert (finish(drop, "test").cpu.name, put) == (cpu, {"model": "good", "cpu": cpu})
    assert tested[-2:] == [("good", "test.tsv"), ("mid", "test.tsv")]
    tested.clear()
    finish(2, "test")
    assert not tested
    finish(2, "dev")
    assert tested == [("good", "dev.tsv"), ("mid", "dev.tsv")]


@pytest.mark.parametrize(("held_out", "form"), [(True, "trained"), (True, "start"), (False, "trained")])
def test_the_best_start_is_to_be_trained_on_all_pairs_where_dev_was_held_out(tmp_path, held_out, form):
    entrant = Entrant(start=START, overrides={"loss": "cosent"})
    state = run.State(folder=tmp_path, identity={}, entrants=[entrant])
    race = SimpleNamespace(state=state, request=SimpleNamespace(planned=SimpleNamespace(held_out=held_out)))
    message = end._next_step(race, line(entrant.name, 0.9, 1, form))
    assert (f"samesense train DATA --model {START.model} --output RUN" in message) == (held_out and form == "trained")


SPEEDS = (("fast", 20_000.0), ("small", 2000.0), ("large", 300.0))


def test_a_form_that_cannot_be_made_is_noted_and_the_others_are(monkeypatch, tmp_path):
    module = run

    def fails(*_):
        raise ModelError("no vocabulary")

    notes = []
    best = SimpleNamespace(place="p", name="best", speed=1.0)
    state = SimpleNamespace(board=lambda: [], note=notes.append, lines=[], save=lambda: None)
    cells = SimpleNamespace(
        state=state, request=SimpleNamespace(output=tmp_path, seed=1), clock=None, save=lambda: None
    )
    monkeypatch.setattr(module, "FORMS", {"static": fails, "int8": lambda *_: "int8: no time"})
    for name, value in (("quality_of", best), ("shape_of", (2, 32)), ("_texts", []), ("_sample", [])):
        monkeypatch.setattr(module, name, lambda *_, value=value: value)
    module._make_forms(cells)
    assert notes == ["not made: static: no vocabulary", "not made: int8: no time"]


def test_a_form_that_was_begun_goes_on_as_it_was(monkeypatch, tmp_path):

    jobs = []
    monkeypatch.setattr(forms, "run_or_resume", lambda folder, run: jobs.append(run.args[0]))
    winner = forms.Winner(
        place="p", name="w", speed=1e6, depth=2, width=32, texts=[f"text {i}" for i in range(9000)], sample=[], seed=1
    )
    for seconds in (100.0, 50.0):
        assert forms._distilled("static:32", winner, tmp_path / "form", seconds, step=0.1) is None
        job = jobs[-1]
        manifest = {"settings": job.settings.model_dump(), "data": {"train": {"rows": len(job.data)}}}
        (tmp_path / "form").mkdir(exist_ok=True)
        write_json(tmp_path / "form" / "manifest.json", manifest)
    first, again = jobs
    assert (again.data.texts, again.settings) == (first.data.texts, first.settings)


@pytest.mark.slow
def test_smaller_forms_of_the_winner(asked, monkeypatch, toy_pairs, tmp_path):
    pytest.importorskip("onnxruntime")
    two_layers = str(random_bert(tmp_path / "two-layers", WORDS, layers=2))
    monkeypatch.setattr(run, "FORMS", FORMS)
    monkeypatch.setattr(entrants, "RATES", {"transformer": (1e-3,)})
    held = samesense.race(**{**asked, "data": toy_pairs / "train.tsv", "models": [two_layers], "cpu_drop": 100})
    assert {line_record.form for line_record in held.lines} == {"start", "trained", "int8", "layers", "static"}
    clear = [
        line_record
        for line_record in held.lines
        if line_record.timed and not line_record.timed.overlaps(held.quality.timed)
    ]
    assert held.cpu in [
        held.quality,
        *(line_record for line_record in clear if line_record.timed.median > held.quality.timed.median),
    ]
    assert held.cpu_model == held.folder / ("model" if held.cpu == held.quality else "cpu")
    backend = held.cpu.backend
    assert (backend == "auto") == (held.cpu.form != "int8")
    model = samesense.load(held.cpu_model, backend=backend, precision="auto" if backend != "auto" else "float32")
    dev = samesense.read(asked["dev"])
    assert spearmanr(model.scores(dev.pairs()), dev.labels).statistic == pytest.approx(held.cpu.dev, abs=1e-4)
