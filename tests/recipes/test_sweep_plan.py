import pytest

from samesense.data import read_pairs
from samesense.errors import ConfigError, DataError
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.sweep.identity import deciding
from samesense.recipes.sweep.run import describe
from samesense.recipes.sweep.splits import read_splits, sample_rows
from tests.recipes.sweeps import content, entry, quick


@pytest.fixture
def toy(tiny_trunk, toy_pairs):
    return content(tiny_trunk, toy_pairs)


def test_the_order_is_seed_by_seed_and_the_settings_are_bound(toy):
    plan = quick(toy, start=True, data=[toy["data"][0], {**toy["data"][0], "name": "again", "train_rows": 50}])
    names = [cell.name for cell in plan.cells]
    assert names[:3] == ["toy, start", "again, start", "toy, temperature 0.05, seed 1"]
    assert [cell.seed for cell in plan.cells] == [None] * 2 + [1] * 4 + [2] * 4
    assert plan.cells[3].settings.temperature == 0.1
    assert plan.cells[2].settings.weight_decay == 0.01
    assert len({cell.key for cell in plan.cells}) == len(plan.cells)


def test_a_case_beats_its_data_set_which_beats_the_base(toy, toy_pairs):
    data_entry = entry(toy_pairs, settings={"temperature": 0.3, "margin": 0.2})
    plan = quick(toy, data=[data_entry], seeds=[1], base={**toy["base"], "margin": 0.1})
    assert [(cell.settings.temperature, cell.settings.margin) for cell in plan.cells] == [(0.05, 0.2), (0.1, 0.2)]


def test_each_model_that_variants_start_from_has_a_start_of_its_own(toy, tiny_trunk):
    base = {name: value for name, value in toy["base"].items() if name != "model"}
    cases = [{"name": "one", "layers": 1}, {"name": "two", "layers": 2}, {"name": "again", "layers": 1, "loss": "mse"}]
    plan = quick(toy, start=["none", "mean"], seeds=[1], grid={"model": [str(tiny_trunk)]}, case=cases, base=base)
    starts = [cell for cell in plan.cells if cell.seed is None]
    assert [cell.variant for cell in starts] == [
        "start, layers 1",
        "start, layers 2",
        "start minus its mean, layers 1",
        "start minus its mean, layers 2",
    ]
    assert [cell.layers for cell in starts] == [1, 2, 1, 2]
    assert {cell.settings.model for cell in starts} == {str(tiny_trunk)}
    only = [{"name": "here", "pooling": "cls"}, {"name": "there", "pooling": "max", "data": ["again"]}]
    data = [toy["data"][0], {**toy["data"][0], "name": "again", "train_rows": 50}]
    plan = quick(toy, start=True, seeds=[1], grid={}, case=only, data=data, against="start, pooling cls")
    assert [cell.name for cell in plan.cells if cell.seed is None] == [
        "toy, start, pooling cls",
        "again, start, pooling cls",
        "again, start, pooling max",
    ]
    tuned = quick(toy, start=True, grid={}, tune={"pooling": ["mean", "cls"]})
    assert [cell.variant for cell in tuned.cells] == ["start, pooling mean", "start, pooling cls"]


def test_methods_that_read_a_bare_start_differently_need_a_pooling(toy):
    data = [{**toy["data"][0], "dev": "none"}]
    options = {"start": True, "seeds": [1], "grid": {}, "data": data}
    cases = [{"method": "cosent"}, {"method": "simcse"}]
    base = {"model": toy["base"]["model"], "max_steps": 2}
    with pytest.raises(ConfigError, match=r"toy, start: cosent and simcse .* mean and cls\. Give pooling"):
        quick(toy, base=base, case=cases, **options)
    plan = quick(toy, base={**base, "pooling": "mean"}, case=cases, **options)
    assert [cell.variant for cell in plan.cells] == ["start", "cosent", "simcse"]


def test_the_identity_knows_settings_data_start_and_layers_but_no_paths(toy, toy_pairs, tmp_path):
    key = quick(toy).cells[0].key
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for split in ("train", "dev", "test"):
        (elsewhere / f"{split}.tsv").write_bytes((toy_pairs / f"{split}.tsv").read_bytes())
    assert quick(toy, data=[entry(elsewhere)]).cells[0].key == key
    assert quick(toy, case=[{"name": "x"}]).cells[0].key == key
    changed = [
        {"base": {**toy["base"], "epochs": 2}},
        {"base": {**toy["base"], "layers": 2}},
        {"data": [entry(toy_pairs, train_rows=100)]},
        {"data": [entry(toy_pairs, test_rows=40)]},
        {"data": [entry(toy_pairs, label_range=(0, 10))]},
        {"test_precision": "bfloat16"},
        {"seeds": [2]},
    ]
    assert key not in {quick(toy, **change).cells[0].key for change in changed}


def test_what_is_written_of_a_run_does_not_decide_its_figures(toy):
    key = quick(toy).cells[0].key
    for overrides in (
        {"report": False},
        {"license": "mit"},
        {"language": "en,de"},
        {"report_to": ["tensorboard"]},
        {"trainer": {"logging_steps": 7}},
    ):
        assert quick(toy, base={**toy["base"], **overrides}).cells[0].key == key, overrides
    betas = {"trainer": {"adam_beta1": 0.8, "logging_steps": 7}}
    assert quick(toy, base={**toy["base"], **betas}).cells[0].key != key


def test_a_paraphraser_counts_by_its_content(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text("1")

    def key(name):
        return deciding(SupmpnSettings(augment="paraphrase", paraphraser=str(tmp_path / name)), {})

    assert key("a") == key("b")
    (tmp_path / "b" / "weights").write_text("2")
    assert key("a") != key("b")


def test_rows_are_a_fixed_part_in_the_order_of_the_source(toy_pairs):
    data = read_pairs(toy_pairs / "train.tsv")
    subset = sample_rows(data, 50, 0)
    assert len(subset) == 50
    assert subset.sha256 == sample_rows(data, 50, 0).sha256 != sample_rows(data, 50, 1).sha256
    positions = [data.pairs().index(pair) for pair in subset.pairs()]
    assert positions == sorted(positions)
    assert sample_rows(data, 500, 0) is data
    same = data.take([index for index, label in enumerate(data.labels) if label == data.labels[0]])
    with pytest.raises(DataError, match="nothing to rank"):
        sample_rows(same, 5, 0)


def test_held_out_pairs_select_and_are_not_trained_on(toy_pairs):
    from samesense.recipes.sweep.data_entry import DataEntry

    splits = read_splits(DataEntry(**{**entry(toy_pairs), "dev": "hold 0.25", "dev_rows": 20, "train_rows": 100}), 0)
    assert (len(splits.train), len(splits.dev)) == (100, 20)
    assert not set(splits.train.pairs()) & set(splits.dev.pairs())
    assert read_splits(DataEntry(**{**entry(toy_pairs), "dev": "none"}), 0).dev is None


def test_a_test_set_may_have_columns_of_its_own(toy, toy_pairs, tmp_path):
    text = (toy_pairs / "test.tsv").read_text()
    header, *rows = text.replace("score", "judged", 1).splitlines()
    lines = "".join(f"{line}\t{number % 7}\n" for number, line in enumerate(rows))
    (tmp_path / "other.tsv").write_text(f"{header}\tby\n{lines}")
    tests = {"same": str(toy_pairs / "test.tsv"), "other": str(tmp_path / "other.tsv")}
    with pytest.raises(DataError, match="a label column could not be found"):
        quick(toy, data=[entry(toy_pairs, test=tests)])
    tests["other"] = {"source": tests["other"], "columns": "sentence1,sentence2,judged"}
    same, judged = quick(toy, data=[entry(toy_pairs, test=tests)]).splits.popitem()[1].tests.values()
    assert (judged.label_column, judged.sha256) == ("judged", same.sha256)


def test_a_test_set_that_is_not_the_published_one_is_pointed_out(toy, toy_pairs, tmp_path):
    path = tmp_path / "sickr.test.tsv"
    path.write_text((toy_pairs / "test.tsv").read_text())
    rows = len(read_pairs(path))
    tests = {"sickr": str(path), "own": str(toy_pairs / "test.tsv")}
    messages = [line for line in describe(quick(toy, data=[entry(toy_pairs, test=tests)])) if "published" in line]
    assert messages == [
        f"warning: toy/sickr: not comparable with published figures: sickr.test has {rows} rows instead of 4927"
    ]
    plan = quick(toy, data=[entry(toy_pairs, test=tests, test_rows=9)])
    assert plan.warnings[-1] == "toy: not comparable with published figures: 9 rows at most of toy/sickr"


def test_nothing_runs_if_a_cell_could_not(toy):
    with pytest.raises(ConfigError, match=r"toy, temprature 1: There is no setting 'temprature'"):
        quick(toy, grid={"temprature": [1]})
    with pytest.raises(DataError, match=r"toy, softmax: .*Give `bins`.*write a case with data"):
        quick(toy, grid={"loss": ["cosent", "softmax"]})
    with pytest.raises(ConfigError, match="layers is a whole number from 1 on; received 0"):
        quick(toy, base={**toy["base"], "layers": 0})
    with pytest.raises(ConfigError, match="these are the same run"):
        quick(toy, grid={"temperature": [0.05], "margin": [0, 0.0]}, case=[{"name": "a"}, {"name": "b"}])
