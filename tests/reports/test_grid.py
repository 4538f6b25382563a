import statistics

import pytest

from samesense.evaluation import SUITES, Failure
from samesense.reports.grid import grids
from samesense.reports.headline import headlines
from samesense.reports.significance import paired_comparisons
from samesense.reports.tables import escape, latex_grids, markdown_grids
from samesense.results.measures import MEASURES, measure_of
from tests.reports.latex import read_tables
from tests.reports.made import evidence, result, scored


def texts(grid):
    return {
        model: [cell.text(column.measure) for cell, column in zip(cells, grid.columns, strict=True)]
        for model, cells in grid.rows.items()
    }


def test_a_row_a_model_a_column_a_data_set_and_their_mean():
    rows = [result("a", 0.8), result("a", 0.6, dataset="two.test"), result("b", 0.7)]
    [grid] = grids(rows)
    assert [column.label for column in grid.columns] == ["one.test", "two.test", "mean of 2"]
    assert texts(grid) == {"a": ["80.00", "60.00", "70.00"], "b": ["70.00", "-", "-"]}
    assert [[cell.best for cell in cells] for cells in grid.rows.values()] == [[True, False, False], [False] * 3]


def test_given_averages_take_the_place_of_the_mean():
    rows = [result("a", 0.8), result("a", 0.6, dataset="two.test")]
    [grid] = grids(rows, averages=[result("a", 0.7123, dataset="sts-avg-2 of 7")])
    assert [column.label for column in grid.columns] == ["one.test", "two.test", "sts-avg-2 of 7"]
    assert texts(grid) == {"a": ["80.00", "60.00", "71.23"]}


def test_seeds_are_mean_and_sample_deviation_and_the_mean_is_taken_seed_by_seed():
    values = {"one.test": (0.80, 0.84, 0.81), "two.test": (0.50, 0.58, 0.57)}
    rows = [
        result("a", value, dataset=name, seed=seed)
        for name, figures in values.items()
        for seed, value in enumerate(figures)
    ]
    [grid] = grids(rows)
    means = [statistics.mean(pair) for pair in zip(*values.values(), strict=True)]
    assert texts(grid)["a"] == [
        f"{100 * statistics.mean(figures):.2f} ± {100 * statistics.stdev(figures):.2f}"
        for figures in [*values.values(), means]
    ]


def test_an_undefined_figure_says_so_and_never_is_a_zero():
    rows = [result("a", 0.8), result("a", 0.6, dataset="two.test"), result("b", 0.7)]
    failed = Failure(model="b", task="sts", dataset="two.test", reason="constant scores")
    [grid] = grids(rows, failures=[failed])
    assert texts(grid)["b"] == ["70.00", "undefined", "-"]
    assert grid.rows["b"][1].undefined == "constant scores"


def test_a_model_that_fails_everywhere_has_a_row():
    failed = Failure(model="broken", task="sts", dataset="one.test", reason="NaN")
    [grid] = grids([result("a", 0.8)], failures=[failed])
    assert texts(grid) == {"a": ["80.00"], "broken": ["undefined"]}


def test_a_training_that_failed_counts_in_its_cells_and_in_their_mean():
    rows = [result("a", 0.8, dataset=name, seed=1) for name in ("one.test", "two.test")]
    rows += [result("b", 0.7, dataset=name, seed=seed) for name in ("one.test", "two.test") for seed in (1, 2)]
    failures = [
        Failure(model=model, task="sts", dataset=name, reason="no room", trained=False)
        for model in ("a", "c")
        for name in ("one.test", "two.test")
    ]
    [grid] = grids(rows, failures=failures)
    assert texts(grid)["a"] == ["80.00 (1 of 2 runs)"] * 3
    assert texts(grid)["b"][2] == "70.00 ± 0.00"
    assert texts(grid)["c"] == ["failed", "failed", "-"]
    [grid] = grids([row for row in rows if (row.dataset, row.seed) != ("two.test", 2)])
    assert texts(grid)["b"] == ["70.00 ± 0.00", "70.00", "70.00 (1 of 2 runs)"]


def test_what_is_as_good_as_the_best_is_marked():
    results, behind = scored(200)
    comparisons, _ = paired_comparisons(behind, results)
    [grid] = grids(results, comparisons=comparisons)
    marks = {model: (cells[0].best, cells[0].as_good) for model, cells in grid.rows.items()}
    assert sorted(marks[name] for name in "ab") == [(False, True), (True, False)]
    assert marks["c"] == (False, False)


def test_equal_bests_are_all_marked_and_a_single_model_is_not():
    [grid] = grids([result("a", 0.8), result("b", 0.8)])
    assert all(cells[0].best for cells in grid.rows.values())
    [alone] = grids([result("a", 0.8)])
    assert not alone.rows["a"][0].best


def test_geometry_is_one_table_in_its_own_units_without_a_best():
    metrics = {"alignment": 0.2214, "uniformity": -2.5, "anisotropy": 0.1, "effective_rank": 101.26}
    rows = [
        result(name, value, task="geometry", metric=metric, dataset="stsb.dev")
        for name in "ab"
        for metric, value in metrics.items()
    ]
    [grid] = grids(rows)
    assert texts(grid)["a"] == ["0.221", "-2.500", "0.100", "101.3"]
    assert not any(cell.best for cells in grid.rows.values() for cell in cells)


def test_the_whole_of_a_data_set_is_all_else_mean():
    rows = [
        result("a", 0.5, subset="mean"),
        result("a", 0.6),
        result("a", 0.4, subset="x"),
        result("a", 0.3, dataset="two.test", subset="mean"),
        result("a", 0.2, dataset="two.test", subset="wmean"),
    ]
    assert [runs["a", None].value for runs in headlines(rows).values()] == [0.6, 0.3]


def test_an_unknown_metric_is_shown_as_it_is():
    [grid] = grids([result("a", 0.123456, metric="speed"), result("b", 0.2, metric="speed")])
    assert texts(grid)["a"] == ["0.1235"]
    assert not grid.rows["b"][0].best
    assert measure_of("speed").label == "speed"


def test_every_metric_that_a_suite_shows_first_has_a_measure_and_none_is_idle():
    assert {metric for suite in SUITES.values() for metric in suite.metrics} == set(MEASURES)


def marked():
    results, behind = scored(200)
    second = evidence("b_1", behind[1].values, behind[1].labels)
    results = [results[0], result("b_1", results[1].value, low=0.1, high=0.9), results[2]]
    comparisons, _ = paired_comparisons([behind[0], second, behind[2]], results)
    return grids(results, comparisons=comparisons), results


def test_markdown():
    marked_grids, results = marked()
    lines = markdown_grids(marked_grids).splitlines()
    a, b, c = (f"{100 * row.value:.2f}" for row in results)
    assert results[0].value > results[1].value
    assert lines[0] == "## sts: Spearman"
    assert lines[2:] == [
        "| model | one.test |",
        "| --- | ---: |",
        f"| a | **{a}** |",
        f"| b_1 | {b} ≈ |",
        f"| c | {c} |",
    ]


def test_latex():
    marked_grids, results = marked()
    text = latex_grids(
        marked_grids, captions=["sts: Spearman. Bold: best. ≈: 5 % level."], legend=["All of\nit.", "And more."]
    )
    a, b, c = (f"{100 * row.value:.2f}" for row in results)
    assert text.startswith("% All of it.\n% And more.\n\n\\begin{table}\n")
    assert r"\caption{sts: Spearman. Bold: best. $\approx$: 5 \% level.}" in text
    assert rf"a & \textbf{{{a}}} \\" in text
    assert rf"b\_1 & {b}$^{{\approx}}$ \\" in text
    assert rf"c & {c} \\" in text
    assert text.count("\\begin{tabular}{lr}") == text.count("\\bottomrule") == 1


def test_latex_negative_numbers_and_deviations():
    rows = [result("a", value, seed=seed) for seed, value in enumerate((-0.1, -0.2))]
    assert r"a & $-$15.00 $\pm$ 7.07 \\" in latex_grids(grids(rows), captions=[""], legend=[])


def test_latex_of_any_names_is_read_by_a_strict_reader():
    names = ["[x] 100 % ü", "a_b & c#1", "$5^2~{}\\", "--model <a|b>", "“中文”", "*"]
    rows = [result(name, index / 10, dataset=f"sts_b {index % 2} %") for index, name in enumerate(names)]
    text = latex_grids(grids(rows), captions=["50 % of a_b: ± 1"], legend=["x"], note="Partial: [1 of 2] runs_x.")
    [table] = read_tables(text)
    assert table[0] == ["model", r"sts\_b 0 \%", r"sts\_b 1 \%", "mean of 2"]
    assert [row[0] for row in table[1:]] == [escape(name) for name in names]
    assert r"\par\smallskip\emph{Partial: {[}1 of 2{]} runs\_x.}" in text


def test_runs_that_wait_are_named_in_their_cells():
    rows = [result("a", 0.5, seed=1), result("a", 0.6, seed=2), result("b", 0.7, seed=1)]
    [table] = grids(rows, waiting={("b", "one.test"): 1, ("c", "one.test"): 2}, shown_best={})
    cells_shown = {model: cells[0].text(table.columns[0].measure) for model, cells in table.rows.items()}
    assert cells_shown == {"a": "55.00 ± 7.07", "b": "70.00 (1 of 2 runs)", "c": "not run"}
    assert not any(cell.best for cells in table.rows.values() for cell in cells)
    [table] = grids(rows, shown_best={("sts", "one.test", "spearman"): "b"})
    assert [model for model, cells in table.rows.items() if cells[0].best] == ["b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b&c%d#e$f", r"a\_b\&c\%d\#e\$f"),
        ("{~^\\}", r"\{\textasciitilde{}\textasciicircum{}\textbackslash{}\}"),
        ("a\nb<c>|", r"a b\textless{}c\textgreater{}\textbar{}"),
    ],
)
def test_latex_sees_no_command_in_a_name(text, expected):
    assert escape(text) == expected
