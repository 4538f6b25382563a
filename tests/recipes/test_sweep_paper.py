"""From seeds to a table in a paper: LaTeX, figures, partial sweeps, and data whose names could be confused."""

import pytest
from pydantic import ValidationError

from samesense.errors import ConfigError, DataError
from samesense.recipes.sweep.file import SweepFile, read_sweep
from samesense.recipes.sweep.plan import make_plan
from samesense.recipes.sweep.report import write_report
from samesense.recipes.sweep.run import begin, describe
from tests.recipes.test_sweep_report import fail, leave
from tests.reports.latex import read_tables

pytest.importorskip("matplotlib")


@pytest.fixture
def file(tiny_trunk, toy_pairs):
    files = {split: str(toy_pairs / f"{split}.tsv") for split in ("train", "dev", "test")}
    base = {"model": str(tiny_trunk), "max_steps": 4}
    cases = [{"loss": "cosent"}, {"name": "softmax_5 %", "loss": "softmax", "bins": 5}]
    data = {"name": "Wörter_a", **files, "label_range": [0, 5]}
    return {"seeds": [1, 2, 3, 4, 5], "base": base, "case": cases, "data": [data]}


def plan_of(file, **overrides):
    return make_plan(SweepFile(**{**file, **overrides}))


def test_a_whole_sweep_has_a_table_with_its_protocol(file, tmp_path):
    leave(plan_of(file), tmp_path / "s")
    text, written = write_report(tmp_path / "s", latex=tmp_path / "t ü.tex", figures=tmp_path / "figs")
    latex = (tmp_path / "t ü.tex").read_text(encoding="utf-8")
    [table] = read_tables(latex)
    assert table[0] == ["model", r"Wörter\_a"]
    assert [row[0] for row in table[1:]] == ["cosent", r"softmax\_5 \%"]
    assert all(r"$\pm$" in row[1] for row in table[1:])
    for words in (
        "seeds 1, 2, 3, 4, 5",
        "learning rate 2e-05",
        "batch size 16",
        r"softmax\_5 \% is trained on scores in 5 bins of",
        "dev (of a source of their own; they choose the checkpoint)",
        "(they choose nothing)",
        "samesense 1.0.",
        "Holm over the one comparison with cosent in this table",
        r"level 0.05",
    ):
        assert words in latex, words
    assert "Partial" not in latex + text
    names = sorted(path.name for path in (tmp_path / "figs").iterdir())
    assert "seeds-Wörter-a.pdf" in names and "seeds-Wörter-a.svg" in names and "seeds-Wörter-a.png" in names
    assert set(map(str, written)) >= {str(tmp_path / "t ü.tex"), str(tmp_path / "figs" / "seeds-Wörter-a.pdf")}


def test_a_partial_sweep_says_what_is_missing_and_has_no_bold(file, tmp_path, monkeypatch):
    monkeypatch.setattr("samesense.recipes.sweep.report.shown_best", lambda *_, incomplete, **__: {"in": incomplete})
    plan = plan_of(file)
    leave(plan, tmp_path, [0, 1, 2])
    fail(plan, tmp_path, [plan.cells[3]])
    text, _ = write_report(tmp_path, latex=tmp_path / "t.tex")
    opening = text.splitlines()[0]
    assert opening.startswith(r"Partial: 3 of 10 runs finished. Missing: Wörter_a, softmax_5 %, seed 2: failed; ")
    assert "cosent, seeds 3, 4, 5: not run yet" in opening
    assert "goes on: samesense sweep FILE --output FOLDER" in opening
    assert "(2 of 5 runs)" in text and "(1 of 5 runs)" in text
    latex = (tmp_path / "t.tex").read_text(encoding="utf-8")
    [table] = read_tables(latex)
    assert r"\emph{Partial: 3 of 10 runs finished. Missing: " in latex and "Partial table; what is missing" in latex
    assert not any("textbf" in cell for row in table for cell in row)
    assert "Partial: 3 of 10" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_bold_needs_all_seeds_of_the_rivals(file, tmp_path, monkeypatch):
    requests = []
    monkeypatch.setattr(
        "samesense.recipes.sweep.report.shown_best", lambda *_, incomplete, **__: requests.append(set(incomplete)) or {}
    )
    plan = plan_of(file)
    leave(plan, tmp_path, range(9))
    write_report(tmp_path)
    leave(plan, tmp_path, [9])
    write_report(tmp_path)
    assert requests == [{"Wörter_a"}, set()]


def test_a_sweep_without_a_run_has_no_table_and_says_so(file, tmp_path):
    begin(plan_of(file), tmp_path)
    text, _ = write_report(tmp_path, latex=tmp_path / "t.tex")
    assert text.startswith("Partial: 0 of 10 runs finished.")
    assert read_tables((tmp_path / "t.tex").read_text(encoding="utf-8")) == []


def test_what_cannot_be_trained_is_refused_at_once_or_left_out_where_the_file_says_so(file, tmp_path):
    cases = [{"loss": "cosent"}, {"loss": "softmax"}, {"loss": "triplet"}]
    with pytest.raises(DataError) as error:
        plan_of(file, case=cases)
    for words in (
        "Wörter_a, softmax: ",
        "Give `bins`",
        "The same holds for Wörter_a, triplet.",
        'untrainable = "skip"',
    ):
        assert words in str(error.value)
    plan = plan_of(file, case=cases, untrainable="skip")
    assert {cell.variant for cell in plan.cells} == {"cosent"}
    assert [line.partition(": ")[2][:17] for line in describe(plan) if line.startswith("left out")] == [
        "Wörter_a, softmax",
        "Wörter_a, triplet",
    ]
    leave(plan, tmp_path)
    text, _ = write_report(tmp_path, latex=tmp_path / "t.tex")
    assert "## Left out" in text and "- Wörter_a, softmax: softmax takes classes" in text
    assert r"Left out, since the loss cannot be trained on the labels: Wörter\_a, softmax; " in (
        tmp_path / "t.tex"
    ).read_text(encoding="utf-8")
    with pytest.raises(DataError, match="Give `bins`"):
        plan_of(file, case=cases[1:], untrainable="skip")  # nothing would be left


def test_a_test_set_with_the_name_of_the_training_file_is_told_from_it(file, toy_pairs, tmp_path):
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pairs.tsv").write_bytes((toy_pairs / "train.tsv").read_bytes())
    data = {**file["data"][0], "train": str(tmp_path / "old/pairs.tsv"), "test": str(tmp_path / "new/pairs.tsv")}
    warnings = plan_of(file, data=[data]).warnings
    assert any("also in test Wörter_a (new/pairs.tsv)" in line for line in warnings), warnings


def test_each_data_set_is_read_by_its_own_options(file, toy_pairs, tmp_path):
    rows = (toy_pairs / "train.tsv").read_text(encoding="utf-8").splitlines()
    table = "\n".join(row.replace("\t", ";") for row in rows) + "\n4.5;ä;ö\n"
    (tmp_path / "odd.txt.csv").write_text(table, encoding="cp1252")
    reading = {"delimiter": "semicolon", "encoding": "cp1252", "quoting": "none", "header": "yes"}
    odd = {**file["data"][0], "train": str(tmp_path / "odd.txt.csv"), **reading}
    odd["test"] = {"own": {"source": odd["test"], "delimiter": "tab", "encoding": "utf-8"}}
    odd["dev"] = "hold 0.2"
    splits = next(iter(plan_of(file, data=[odd]).splits.values()))
    texts = {*splits.train.sentences1, *splits.dev.sentences1}
    assert "ä" in texts and len(splits.train) + len(splits.dev) == len(rows)
    for name, value in (("delimiter", ";;"), ("quoting", "x"), ("encoding", "none such"), ("header", "maybe")):
        with pytest.raises((ConfigError, ValidationError), match=name):
            SweepFile(**{**file, "data": [{**file["data"][0], name: value}]})


def test_the_file_may_give_bins_and_options(tmp_path, toy_pairs, tiny_trunk):
    path = tmp_path / "s.toml"
    path.write_text(
        f"""
untrainable = "skip"
[base]
model = "{tiny_trunk}"
[grid]
bins = [2, [0, 1, 5]]
[[case]]
loss = "softmax"
[[data]]
name = "a"
train = "{toy_pairs / "train.tsv"}"
test = "{toy_pairs / "test.tsv"}"
delimiter = "tab"
""",
        encoding="utf-8",
    )
    file = read_sweep(path, {})
    assert [variant.name for variant in file.variants()] == ["softmax, bins 2", "softmax, bins [0, 1, 5]"]
    assert [variant.settings["bins"] for variant in file.variants()] == [2, [0, 1, 5]]
    assert file.data[0].table_options().delimiter == "\t"
