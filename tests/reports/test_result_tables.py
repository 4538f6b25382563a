from samesense.reports import Results, markdown_table
from samesense.reports.tables import markdown
from samesense.types import Result


def result(**changes):
    names = {"task": "sts", "dataset": "stsb.test", "split": "", "subset": "all", "metric": "spearman", "model": "m"}
    return Result(**{**names, "value": 0.82034, "n": 1379, "protocol": "p", **changes})


ROWS = Results(
    [
        result(low=0.801, high=0.84),
        result(subset="images", value=0.5, n=9, low=0.4, high=0.6),
        result(subset="mean", value=0.7),
        result(metric="pearson", value=-0.000001),
        result(metric="pearson", subset="images", value=0.25, n=9),
        result(dataset="sts-avg", value=0.7, low=0.68, high=0.72, n=2000),
    ]
)


def test_a_line_a_data_set():
    assert str(ROWS).split("\n") == [
        "dataset    Spearman x100  95 % interval  Pearson x100     n",
        "---------  -------------  -------------  ------------  ----",
        "stsb.test          82.03   [80.1, 84.0]          0.00  1379",
        "sts-avg            70.00   [68.0, 72.0]                2000",
    ]


def test_a_line_a_subset_on_request():
    assert ROWS.table(subsets=True).split("\n")[2:] == [
        "stsb.test  all             82.03   [80.1, 84.0]          0.00  1379",
        "stsb.test  images          50.00   [40.0, 60.0]         25.00     9",
        "stsb.test  mean            70.00                               1379",
        "sts-avg    all             70.00   [68.0, 72.0]                2000",
    ]


def test_what_has_no_figure_for_the_whole_is_shown_as_it_is():
    means = Results([result(subset="mean"), result(subset="wmean", value=0.1)])
    assert str(means).split("\n")[2].split() == ["stsb.test", "mean", "82.03", "1379"]
    results = Results(result(subset=name) for name in ("images", "news"))
    assert [line.split()[1] for line in str(results).split("\n")[2:]] == ["images", "news"]


def test_each_suite_has_its_table_and_what_is_no_share_is_not_multiplied():
    results = Results([result(), result(task="geometry", metric="uniformity", value=-2.5, dataset="stsb.dev")])
    assert str(results).split("\n") == [
        "suite  dataset    Spearman x100     n",
        "-----  ---------  -------------  ----",
        "sts    stsb.test          82.03  1379",
        "",
        "suite     dataset   uniformity     n",
        "--------  --------  ----------  ----",
        "geometry  stsb.dev      -2.500  1379",
    ]


def test_markdown_table():
    assert markdown_table(ROWS).split("\n") == [
        "| dataset | Spearman x100 | 95 % interval | Pearson x100 | n |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| stsb.test | 82.03 | [80.1, 84.0] | 0.00 | 1379 |",
        "| sts-avg | 70.00 | [68.0, 72.0] |  | 2000 |",
    ]


def test_results_show_themselves():
    results = Results([result(dataset="<i>", seed=None), result(low=0.801, high=0.84)])
    assert repr(results) == f"<Results>\n{results}"
    assert repr(Results(results * 9)).splitlines()[-1].endswith("more lines: print it")
    page = results._repr_html_()
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    assert '<td style="text-align: right">[80.1, 84.0]</td>' in page
    assert results.to_dicts() == [row.to_dict() for row in results]
    frame = results.to_pandas()
    assert frame["value"].tolist() == [row.value for row in results]
    assert frame["low"].isna().tolist() == [True, False]


def test_what_differs_gets_a_column():
    header, _, first, second = str(Results([result(model="a", seed=1), result(model="b")])).split("\n")
    assert header.split()[:2] == ["model", "dataset"]
    assert first.split()[:2] == ["a", "stsb.test"]
    assert second.split()[:2] == ["b", "stsb.test"]
    header, _, first, second = str(Results([result(model="a", seed=1), result(model="a", seed=2)])).split("\n")
    assert header.split()[:2] == ["dataset", "seed"]
    assert (first.split()[1], second.split()[1]) == ("1", "2")


def test_two_results_alike_in_all_that_is_shown_are_two_lines():
    assert [line.split()[1] for line in str(Results([result(), result(value=0.5)])).split("\n")[2:]] == [
        "82.03",
        "50.00",
    ]


def test_wide_characters_take_two_columns():
    lines = str(Results([result(dataset="数据集"), result(dataset="abcdefg")])).split("\n")
    assert lines[2].index("82.03") + 3 == lines[3].index("82.03")


def test_a_name_cannot_break_the_layout():
    odd = Results([result(dataset="a|b\nc\x1b[31m")])
    assert "a|b c[31m" in str(odd).split("\n")[2]
    assert "| a\\|b c\\[31m |" in markdown_table(odd).split("\n")[2]


def test_a_bar_in_the_name_of_a_column_makes_no_further_one():
    header, rule, row = markdown(["model", "a|b"], [["m", "1"]], numeric=("a|b",)).split("\n")
    assert (header, rule, row) == ("| model | a\\|b |", "| --- | ---: |", "| m | 1 |")


def test_no_results_leave_the_header():
    assert len(str(Results()).split("\n")) == len(markdown_table([]).split("\n")) == 2
