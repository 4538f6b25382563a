from samesense.reports import Results, markdown_table, results_table
from samesense.reports.tables import markdown
from samesense.types import Result


def result(**changes):
    names = {"task": "sts", "dataset": "stsb.test", "split": "", "subset": "all", "metric": "spearman", "model": "m"}
    return Result(**{**names, "value": 0.82034, "n": 1379, "protocol": "p", **changes})


ROWS = [
    result(low=0.801, high=0.84),
    result(subset="mean", metric="pearson", value=-0.000001, n=9),
]


def test_terminal_table():
    assert results_table(ROWS).split("\n") == [
        "dataset    subset  metric    value x100      interval     n",
        "---------  ------  --------  ----------  ------------  ----",
        "stsb.test  all     spearman       82.03  [80.1, 84.0]  1379",
        "stsb.test  mean    pearson         0.00                   9",
    ]


def test_markdown_table():
    assert markdown_table(ROWS).split("\n") == [
        "| dataset | subset | metric | value x100 | interval | n |",
        "| --- | --- | --- | ---: | ---: | ---: |",
        "| stsb.test | all | spearman | 82.03 | [80.1, 84.0] | 1379 |",
        "| stsb.test | mean | pearson | 0.00 |  | 9 |",
    ]


def test_results_show_themselves():
    results = Results([result(dataset="<i>", seed=None), result(low=0.801, high=0.84)])
    assert str(results) == repr(results) == results_table(results)
    page = results._repr_html_()
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    assert '<td style="text-align: right">[80.1, 84.0]</td>' in page
    assert results.to_dicts() == [row.to_dict() for row in results]
    frame = results.to_pandas()
    assert frame["value"].tolist() == [row.value for row in results]
    assert frame["low"].isna().tolist() == [True, False]


def test_what_differs_gets_a_column():
    header, _, first, second = results_table([result(model="a", seed=1), result(model="b")]).split("\n")
    assert header.split()[:3] == ["model", "seed", "dataset"]
    assert first.split()[:3] == ["a", "1", "stsb.test"]
    assert second.split()[:2] == ["b", "stsb.test"]


def test_wide_characters_take_two_columns():
    lines = results_table([result(dataset="数据集"), result(dataset="abcdef")]).split("\n")
    assert lines[2].startswith("数据集   all ")
    assert lines[3].startswith("abcdef   all ")


def test_a_name_cannot_break_the_layout():
    odd = [result(dataset="a|b\nc\x1b[31m")]
    assert "a|b c[31m" in results_table(odd).split("\n")[2]
    assert "| a\\|b c[31m |" in markdown_table(odd).split("\n")[2]


def test_a_bar_in_the_name_of_a_column_makes_no_further_one():
    header, rule, row = markdown(["model", "a|b"], [["m", "1"]], numeric=("a|b",)).split("\n")
    assert (header, rule, row) == ("| model | a\\|b |", "| --- | ---: |", "| m | 1 |")


def test_no_results_leave_the_header():
    assert len(results_table([]).split("\n")) == len(markdown_table([]).split("\n")) == 2
