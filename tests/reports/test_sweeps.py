from dataclasses import replace

import numpy as np
import pytest

from samesense.errors import DataError
from samesense.reports.figures.curves import Curve
from samesense.reports.figures.plot import style_of
from samesense.reports.significance import Comparison
from samesense.reports.store import Run
from samesense.reports.sweeps import (
    comparison_figure,
    curve_figure,
    difference_table,
    setting_figures,
    steps_table,
    steps_to_reach,
    steps_to_scores,
)
from samesense.types import Result


def curve(*values, every=10):
    return Curve("run", tuple(every * (index + 1) for index in range(len(values))), values)


def naive(steps, values, level):
    for step, value in zip(steps, values, strict=True):
        if not value < level:
            return step
    return None


def test_the_first_look_at_or_above_the_level_counts():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.choice([0.1, 0.2, 0.3, 0.4], size=rng.integers(1, 30))
        dev_curve = curve(*map(float, values))
        for level in (0.05, 0.2, 0.25, 0.4, 0.5):
            assert steps_to_reach(dev_curve, level) == naive(dev_curve.steps, dev_curve.values, level)


def test_arrivals_are_counted_seed_by_seed():
    curves = {
        "mse": {1: curve(0.1, 0.2, 0.4, 0.3), 2: curve(0.2, 0.3, 0.3, 0.5)},
        "cosent": {1: curve(0.4, 0.5, 0.5, 0.5), 2: curve(0.2, 0.3, 0.4, 0.45), 3: curve(0.9)},
        "alone": {9: curve(0.3)},
    }
    by_models = {(comparison.variant, comparison.baseline): comparison for comparison in steps_to_scores(curves)}
    assert set(by_models) == {("cosent", "mse"), ("mse", "cosent")}
    comparison = by_models["cosent", "mse"]
    assert (comparison.baseline_steps, comparison.variant_steps) == ((30, 40), (10, None))
    assert comparison.level == pytest.approx(0.45)
    assert comparison.saved is None  # seed 2 never arrives: a share over the others alone would be a gain
    assert comparison.text() == "10 (1 of 2 seeds)"
    reverse = by_models["mse", "cosent"]
    assert (reverse.baseline_steps, reverse.variant_steps) == ((20, 40), (None, 40))
    assert reverse.text() == "40 (1 of 2 seeds)"
    both = {"mse": {1: curve(0.1, 0.2, 0.4), 2: curve(0.4)}, "cosent": {1: curve(0.4), 2: curve(0.4)}}
    quicker = steps_to_scores(both)[0]
    assert (quicker.saved, quicker.text()) == (pytest.approx(1 - 20 / 40), "10 (-50 %)")


def test_the_untouched_start_is_drawn_and_is_nobodys_best():
    falling = Curve("a", (0, 10, 20), (0.6, 0.4, 0.5))
    rising = Curve("b", (0, 10, 20), (0.6, 0.3, 0.7))
    assert (falling.best, rising.best) == ((20, 0.5), (20, 0.7))
    by_baseline = {
        comparison.baseline: comparison for comparison in steps_to_scores({"a": {1: falling}, "b": {1: rising}})
    }
    assert (by_baseline["a"].level, by_baseline["a"].variant_steps) == (0.5, (20,))  # the start is nobody's arrival
    assert not steps_to_scores({"a": {1: Curve("a", (0,), (0.6,))}, "b": {1: Curve("b", (0,), (0.6,))}})


def compared(model):
    return Comparison(
        task="sts",
        dataset="stsb",
        metric="spearman",
        model=model,
        reference="cosent",
        difference=-0.05,
        low=-0.07,
        high=-0.03,
        p_value=0.001,
        adjusted=0.004,
        n=100,
        seeds=3,
    )


def test_tables():
    curves = {"mse": {1: curve(0.1, 0.4)}, "cosent": {1: curve(0.5, 0.45)}}
    assert steps_table(steps_to_scores(curves), "stsb").markdown().splitlines()[2:] == [
        "| mse | 40.00 | 20 | - | 10 (-50 %) |",
        "| cosent | 50.00 | 10 | not reached | - |",
    ]
    assert difference_table([compared("mse")]).splitlines()[2] == (
        "| stsb | Spearman | mse - cosent | -5.00 | [-7.00, -3.00] | 0.004 | of these runs |"
    )


def test_means_alone_are_drawn_where_there_are_any_and_no_untrained_start():
    base = compared("mse")
    of_mean = replace(base, dataset="mean of 3")
    start = replace(base, model="start")
    plot = comparison_figure([of_mean, base, start], name="differences", untrained=["start"])
    assert len(plot.figure.axes) == 1
    assert plot.figure.axes[0].get_title(loc="left") == "mean of 3, Spearman x100"
    singles = comparison_figure([base, start], name="differences", untrained=["start"])
    assert [label.get_text() for label in singles.figure.axes[0].get_yticklabels()] == ["mse"]
    with pytest.raises(DataError, match="needs a panel"):
        comparison_figure([start], name="differences", untrained=["start"])


def test_the_caption_of_a_learning_curve_says_who_arrives_when():
    pytest.importorskip("matplotlib")
    curves = {"mse": {1: curve(0.1, 0.4)}, "cosent": {1: curve(0.5, 0.45)}}
    curves["simcse"] = {1: curve(0.2, 0.46)}
    styles = {"mse": style_of(3)}
    drawn = curve_figure(curves, "stsb", "learning-stsb", reference="mse", styles=styles)
    assert drawn.figure.axes[0].lines[0].get_color() == style_of(3).colour
    assert drawn.caption.startswith("stsb: ")
    assert drawn.caption.partition("several. ")[2] == (
        "cosent reaches the best dev score of mse (40.0 at step 20) at step 10 (-50 %). "
        "simcse reaches the best dev score of mse (40.0 at step 20) at step 20 (+0 %)."
    )


def run(name, seed, value, **settings):
    result = Result(
        task="sts",
        dataset="toy",
        split="",
        subset="all",
        metric="spearman",
        value=value,
        n=9,
        protocol="",
        model=name,
        seed=seed,
    )
    return Run(name, {"seed": seed, **settings}, None, [result])


def test_a_figure_for_each_number_that_was_varied():
    pytest.importorskip("matplotlib")
    runs = {
        '"one" 1/2': [
            run("a", seed, 0.1 * index, temperature=t, loss="cosent")
            for seed in (1, 2)
            for index, t in enumerate((1, 2))
        ],
        "two": [run("a", 1, 0.5, temperature=1, loss="cosent")],
    }
    plots = setting_figures(runs, ["temperature", "loss", "absent"])
    assert [plot.name for plot in plots] == ["sweep-temperature--one--1-2"]  # it is written into attributes
    crossed = [run("a", 1, 0.1, temperature=1, margin=0), run("a", 1, 0.2, temperature=2, margin=1)]
    assert setting_figures({"x": crossed}, ["temperature"]) == []
    [line] = plots[0].figure.axes[0].lines[:1]
    assert list(line.get_xdata()) == [1, 2]
    np.testing.assert_allclose(line.get_ydata(), [0, 10])
