import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.covariance import LedoitWolf

from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.errors import ConfigError, DataError, OutputError
from samesense.evaluation.binary import BinaryTask
from samesense.evaluation.sts import StsTask
from samesense.files import read_json, write_json
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.sweep import cell as cells
from samesense.recipes.sweep.cell import read_record, status_of, write_scores
from samesense.recipes.sweep.file import SweepFile, read_sweep
from samesense.recipes.sweep.gather import _evidence, gather, rows
from samesense.recipes.sweep.identity import deciding
from samesense.recipes.sweep.plan import make_plan
from samesense.recipes.sweep.report import write_report
from samesense.recipes.sweep.run import describe, run
from samesense.recipes.sweep.splits import read_splits, sample_rows
from tests.evaluation.toy import pair_data
from tests.messages import listen

pytest.importorskip("matplotlib")


def entry(folder, **more):
    files = {part: str(folder / f"{part}.tsv") for part in ("train", "dev", "test")}
    return {"name": "toy", **files, **more}


def content(trunk, folder, **more):
    base = {"model": str(trunk), "learning_rate": 2e-3, "max_steps": 6, "eval_steps": 2, "precision": "float32"}
    return {"seeds": [1, 2], "base": base, "grid": {"temperature": [0.05, 0.1]}, "data": [entry(folder)], **more}


@pytest.fixture
def toy(tiny_trunk, toy_pairs):
    return content(tiny_trunk, toy_pairs)


def quick(toy, **more):
    return make_plan(SweepFile(**{**toy, **more}))


# ---- the file


def test_cases_are_multiplied_with_the_grid_and_named(toy):
    file = SweepFile(
        **{
            **toy,
            "grid": {"literal": [False, True], "threshold": [0, 0.5]},
            "case": [{"loss": "contrastive"}, {"name": "old", "loss": "contrastive", "positive_above": 2.5}],
        }
    )
    assert [variant.name for variant in file.variants()][:5] == [
        "contrastive, literal false, threshold 0",
        "contrastive, literal false, threshold 0.5",
        "contrastive, literal true, threshold 0",
        "contrastive, literal true, threshold 0.5",
        "old, literal false, threshold 0",
    ]
    assert file.variants()[7].settings == {
        "loss": "contrastive", "positive_above": 2.5, "literal": True, "threshold": 0.5,
    }  # fmt: skip
    assert [variant.name for variant in SweepFile(**{**toy, "grid": {}}).variants()] == ["base"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": [1, 1]}, "The seeds of a sweep must differ; 1 stands there twice."),
        ({"case": [{"loss": "mse"}, {"loss": "mse"}], "grid": {}}, "The variants of a sweep must differ; mse stands"),
        ({"base": {"seed": 3}}, "Seeds of a sweep stand in its list seeds"),
        ({"grid": {"loss": []}}, "needs a value or more; loss has none"),
        ({"against": "start, layers 1", "start": True}, "against names a variant, one of start; temperature 0.05;"),
        (
            {"keep": "best", "data": [{"name": "a", "train": "t", "test": "u", "dev": "none"}]},
            'keep = "best" is chosen on dev, and a has dev = "none". Give it a dev set, or keep "all" or "none".',
        ),
        ({"against": "nothing"}, "against names a variant, one of temperature 0.05; temperature 0.1; received"),
        ({"case": [{"data": ["other"]}]}, "A case is run on data sets of the sweep, toy; received 'other'."),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(toy, change, message):
    with pytest.raises(ConfigError) as error:
        SweepFile(**{**toy, **change})
    assert message in str(error.value)


def test_placeholders_need_values_and_values_need_placeholders(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        'base.model = "${START}/x"\n[[data]]\nname = "a"\ntrain = "${DATA}/t"\ntest = {one = "${DATA}/u"}\n'
    )
    file = read_sweep(path, {"START": "here", "DATA": "there"})
    assert (file.base["model"], file.data[0].train, file.data[0].tests()) == (
        "here/x", "there/t", {"a/one": "there/u"},
    )  # fmt: skip
    with pytest.raises(ConfigError, match="needs a value for START"):
        read_sweep(path, {"DATA": "there"})
    with pytest.raises(ConfigError, match=r"has no \$\{MORE\}"):
        read_sweep(path, {"START": "a", "DATA": "b", "MORE": "c"})
    path.write_text("sedes = [1]\n")
    with pytest.raises(ConfigError, match="data: field required"):
        read_sweep(path, {})
    with pytest.raises(ConfigError, match=r"none\.toml: there is no such file\. Check the spelling"):
        read_sweep(tmp_path / "none.toml", {})
    path.write_text("=")
    with pytest.raises(ConfigError, match="is no TOML file that can be read"):
        read_sweep(path, {})


# ---- the plan


def test_the_order_is_seed_by_seed_and_the_settings_are_bound(toy):
    plan = quick(toy, start=True, data=[toy["data"][0], {**toy["data"][0], "name": "again", "train_rows": 50}])
    names = [cell.name for cell in plan.cells]
    assert names[:3] == ["toy, start", "again, start", "toy, temperature 0.05, seed 1"]
    assert [cell.seed for cell in plan.cells] == [None] * 2 + [1] * 4 + [2] * 4
    assert plan.cells[3].settings.temperature == 0.1
    assert plan.cells[2].settings.weight_decay == 0.01
    assert len({cell.key for cell in plan.cells}) == len(plan.cells)


def test_a_case_beats_its_data_set_which_beats_the_base(toy, toy_pairs):
    own = entry(toy_pairs, settings={"temperature": 0.3, "margin": 0.2})
    plan = quick(toy, data=[own], seeds=[1], base={**toy["base"], "margin": 0.1})
    assert [(cell.settings.temperature, cell.settings.margin) for cell in plan.cells] == [(0.05, 0.2), (0.1, 0.2)]


def test_each_model_that_variants_start_from_has_a_start_of_its_own(toy, tiny_trunk):
    base = {name: value for name, value in toy["base"].items() if name != "model"}
    cases = [{"name": "one", "layers": 1}, {"name": "two", "layers": 2}, {"name": "again", "layers": 1, "loss": "mse"}]
    plan = quick(toy, start=["none", "mean"], seeds=[1], grid={"model": [str(tiny_trunk)]}, case=cases, base=base)
    starts = [cell for cell in plan.cells if cell.seed is None]
    assert [cell.variant for cell in starts] == [
        "start, layers 1", "start, layers 2", "start less its mean, layers 1", "start less its mean, layers 2",
    ]  # fmt: skip
    assert [cell.layers for cell in starts] == [1, 2, 1, 2]
    assert {cell.settings.model for cell in starts} == {str(tiny_trunk)}
    only = [{"name": "here", "pooling": "cls"}, {"name": "there", "pooling": "max", "data": ["again"]}]
    data = [toy["data"][0], {**toy["data"][0], "name": "again", "train_rows": 50}]
    plan = quick(toy, start=True, seeds=[1], grid={}, case=only, data=data, against="start, pooling cls")
    assert [cell.name for cell in plan.cells if cell.seed is None] == [
        "toy, start, pooling cls", "again, start, pooling cls", "again, start, pooling max",
    ]  # fmt: skip
    tuned = quick(toy, start=True, grid={}, tune={"pooling": ["mean", "cls"]})
    assert [cell.variant for cell in tuned.cells] == ["start, pooling mean", "start, pooling cls"]


def test_methods_that_read_a_bare_start_differently_need_a_pooling(toy):
    data = [{**toy["data"][0], "dev": "none"}]
    more = {"start": True, "seeds": [1], "grid": {}, "data": data}
    cases = [{"method": "cosent"}, {"method": "simcse"}]
    base = {"model": toy["base"]["model"], "max_steps": 2}
    with pytest.raises(ConfigError, match=r"toy, start: cosent and simcse .* mean and cls\. Give pooling"):
        quick(toy, base=base, case=cases, **more)
    plan = quick(toy, base={**base, "pooling": "mean"}, case=cases, **more)
    assert [cell.variant for cell in plan.cells] == ["start", "cosent", "simcse"]


def test_the_identity_knows_settings_data_start_and_layers_but_no_paths(toy, toy_pairs, tmp_path):
    key = quick(toy).cells[0].key
    other = tmp_path / "elsewhere"
    other.mkdir()
    for part in ("train", "dev", "test"):
        (other / f"{part}.tsv").write_bytes((toy_pairs / f"{part}.tsv").read_bytes())
    assert quick(toy, data=[entry(other)]).cells[0].key == key
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
    for more in (
        {"report": False}, {"license": "mit"}, {"language": "en,de"}, {"report_to": ["tensorboard"]},
        {"trainer": {"logging_steps": 7}},
    ):  # fmt: skip
        assert quick(toy, base={**toy["base"], **more}).cells[0].key == key, more
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
    part = sample_rows(data, 50, 0)
    assert len(part) == 50
    assert part.sha256 == sample_rows(data, 50, 0).sha256 != sample_rows(data, 50, 1).sha256
    places = [data.pairs().index(pair) for pair in part.pairs()]
    assert places == sorted(places)
    assert sample_rows(data, 500, 0) is data
    same = data.take([at for at, label in enumerate(data.labels) if label == data.labels[0]])
    with pytest.raises(DataError, match="nothing to rank"):
        sample_rows(same, 5, 0)


def test_held_out_pairs_select_and_are_not_trained_on(toy_pairs):
    from samesense.recipes.sweep.file import DataEntry

    parts = read_splits(DataEntry(**{**entry(toy_pairs), "dev": "hold 0.25", "dev_rows": 20, "train_rows": 100}), 0)
    assert (len(parts.train), len(parts.dev)) == (100, 20)
    assert not set(parts.train.pairs()) & set(parts.dev.pairs())
    assert read_splits(DataEntry(**{**entry(toy_pairs), "dev": "none"}), 0).dev is None


def test_a_test_set_may_have_columns_of_its_own(toy, toy_pairs, tmp_path):
    text = (toy_pairs / "test.tsv").read_text()
    header, *rows = text.replace("score", "judged", 1).splitlines()
    more = "".join(f"{line}\t{at % 7}\n" for at, line in enumerate(rows))
    (tmp_path / "other.tsv").write_text(f"{header}\tby\n{more}")
    tests = {"same": str(toy_pairs / "test.tsv"), "other": str(tmp_path / "other.tsv")}
    with pytest.raises(DataError, match="a label column could not be found"):
        quick(toy, data=[entry(toy_pairs, test=tests)])
    tests["other"] = {"source": tests["other"], "columns": "sentence1,sentence2,judged"}
    same, other = quick(toy, data=[entry(toy_pairs, test=tests)]).splits.popitem()[1].tests.values()
    assert (other.label_column, other.sha256) == ("judged", same.sha256)


def test_a_test_set_that_is_not_the_published_one_is_pointed_out(toy, toy_pairs, tmp_path):
    path = tmp_path / "sickr.test.tsv"
    path.write_text((toy_pairs / "test.tsv").read_text())
    rows = len(read_pairs(path))
    tests = {"sickr": str(path), "own": str(toy_pairs / "test.tsv")}
    said = [line for line in describe(quick(toy, data=[entry(toy_pairs, test=tests)])) if "published" in line]
    assert said == [
        f"  warning: toy/sickr: not comparable with published figures: sickr.test has {rows} rows instead of 4927"
    ]
    assert not any(
        "published" in line for line in describe(quick(toy, data=[entry(toy_pairs, test=tests, test_rows=9)]))
    )


def test_nothing_runs_if_a_cell_could_not(toy):
    with pytest.raises(ConfigError, match=r"toy, temprature 1: There is no setting 'temprature'"):
        quick(toy, grid={"temprature": [1]})
    with pytest.raises(DataError, match=r"toy, softmax, seed 1: .*write a case with data"):
        quick(toy, grid={"loss": ["cosent", "softmax"]})
    with pytest.raises(ConfigError, match="layers is a whole number from 1 on; received 0"):
        quick(toy, base={**toy["base"], "layers": 0})
    with pytest.raises(ConfigError, match="these are the same run"):
        quick(toy, grid={"temperature": [0.05], "margin": [0, 0.0]}, case=[{"name": "a"}, {"name": "b"}])


# ---- running


def test_the_start_is_whitened_by_the_training_texts(toy, toy_pairs, tmp_path):
    data, test = read_pairs(toy_pairs / "train.tsv"), read_pairs(toy_pairs / "test.tsv")
    plan = quick(toy, start=["none", "whiten"], seeds=[1], grid={}, base={**toy["base"], "standardize": "mean"})
    assert [cell.name for cell in plan.cells] == ["toy, start", "toy, start whitened", "toy, base, seed 1"]
    assert [cell.settings.standardize for cell in plan.cells] == ["none", "whiten", "mean"]
    figures = {}
    for cell in plan.cells[:2]:
        job = cells.CellJob(cell, plan.splits_of(cell), tmp_path / cell.key, "float32")
        assert cells.run_cell(job) == "finished"
        [figures[cell.variant]] = [row["value"] for row in rows_in(job.folder) if row["metric"] == "spearman"]
    model = build(toy["base"]["model"], device="cpu")
    known = model.encode(list(dict.fromkeys([*data.sentences1, *data.sentences2])))
    inverse = LedoitWolf().fit(known).precision_
    a, b = (model.encode(side) - known.mean(axis=0) for side in (test.sentences1, test.sentences2))
    products = [np.einsum("ij,jk,ik->i", left, inverse, right) for left, right in ((a, b), (a, a), (b, b))]
    cosines = products[0] / np.sqrt(products[1] * products[2])
    assert figures["start whitened"] == pytest.approx(spearmanr(cosines, test.labels).statistic, abs=2e-4)
    assert figures["start"] != figures["start whitened"]


def rows_in(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_a_cell_that_is_run_again_has_its_results_once(toy, tmp_path):
    plan = quick(toy, start=True, seeds=[1], grid={})
    job = cells.CellJob(plan.cells[0], plan.splits_of(plan.cells[0]), tmp_path / "cell", "float32")
    assert cells.run_cell(job) == "finished"
    once = rows_in(job.folder)
    assert cells.run_cell(job) == "finished"
    assert len(rows_in(job.folder)) == len(once)


def test_thresholds_are_fitted_on_dev_unless_that_is_the_test():
    data = pair_data([("a", "b", 1), ("c", "d", 0), ("e", "f", 1)], kind="binary", scale=(0, 1))
    other = pair_data([("a", "c", 1), ("c", "e", 0)], kind="binary", scale=(0, 1))
    for dev, fitted in ((data, None), (other, other), (None, None)):
        sts, binary = cells._tasks("toy", data, dev)
        assert (type(sts), type(binary), binary.dev) == (StsTask, BinaryTask, fitted)


def test_scores_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_scores(tmp_path / "scores.npz", {"dev": np.ones(2)})

    def cut_off(stream, **scores):
        stream.write(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(cells.np, "savez_compressed", cut_off)
    with pytest.raises(KeyboardInterrupt):
        write_scores(tmp_path / "scores.npz", {"dev": np.zeros(2)})
    assert np.load(tmp_path / "scores.npz")["dev"].tolist() == [1, 1]


@pytest.mark.slow
def test_a_sweep_leaves_figures_scores_tables_and_no_models(toy, tmp_path):
    said = listen()
    ended = run(quick(toy, start=True, against="temperature 0.05"), tmp_path)
    assert (ended.finished, ended.failed, ended.left, ended.interrupted) == (5, 0, 0, False)
    assert not list(tmp_path.glob("runs/*/model")) + list(tmp_path.glob("runs/*/checkpoints"))
    text, written = write_report(tmp_path)
    assert [path.name for path in written] == ["results.jsonl", "comparisons.jsonl", "tables.md", "report.html"]
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [line["variant"] for line in lines] == ["start", *["temperature 0.05", "temperature 0.1"] * 2]
    assert lines[1]["rows"] == {"train": 160, "dev": 60, "tests": {"toy": 60}}
    assert [point[0] for point in lines[1]["curve"]] == [0, 2, 4, 6]
    assert str(tmp_path) not in (tmp_path / "results.jsonl").read_text()
    for left in gather(tmp_path):
        [evidence] = left.evidence
        value = next(row.value for row in left.results if (row.metric, row.subset) == ("spearman", "all"))
        assert value == pytest.approx(spearmanr(evidence.values, evidence.labels).statistic, abs=1e-12)
    assert "| temperature 0.05 |" in text
    assert "±" in text
    assert "## Differences from temperature 0.05" in text
    assert "## Steps to the best dev score of each: toy" in text
    assert "Not run" not in text
    page = (tmp_path / "report.html").read_text()
    assert page.count("<figure>") + page.count("<figure ") >= 3  # learning, the grid's setting, and how scores spread
    before = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("runs/*/scores.npz"))]
    again = run(quick(toy, start=True, seeds=[1, 2]), tmp_path)
    assert again.finished == 5
    assert "5 cells, 5 of them finished" in said
    assert before == [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("runs/*/scores.npz"))]


@pytest.mark.slow
def test_more_seeds_are_added(toy, tmp_path):
    run(quick(toy, grid={}, seeds=[1]), tmp_path)
    first = rows(gather(tmp_path))[0]["spearman"]
    run(quick(toy, grid={}, seeds=[1, 2]), tmp_path)
    both = rows(gather(tmp_path))
    assert [row["seed"] for row in both] == [1, 2]
    assert both[0]["spearman"] == first != both[1]["spearman"]


@pytest.mark.slow
def test_a_failing_cell_is_recorded_and_the_rest_is_run(toy, tmp_path, monkeypatch):
    real = cells._train

    def broken(job):
        if job.cell.variant == "temperature 0.1" and job.cell.seed == 1:
            raise MemoryError("no room")
        return real(job)

    monkeypatch.setattr(cells, "_train", broken)
    plan = quick(toy, seeds=[1])
    ended = run(plan, tmp_path)
    assert (ended.finished, ended.failed) == (1, 1)
    text, _ = write_report(tmp_path)
    assert "## Failed\n\n- toy, temperature 0.1, seed 1: MemoryError: no room" in text
    assert "MemoryError" not in (tmp_path / "results.jsonl").read_text()
    monkeypatch.setattr(cells, "_train", real)
    assert run(plan, tmp_path).finished == 2


@pytest.mark.slow
def test_an_interrupted_cell_goes_on_where_it_was(toy, tmp_path, monkeypatch):
    from transformers import TrainerCallback

    from samesense.recipes import runner
    from samesense.training import fit as module

    class Interrupt(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 3:
                signal.raise_signal(signal.SIGINT)

    whole = quick(toy, grid={}, seeds=[1])
    run(whole, tmp_path / "whole")
    real = module.fit
    monkeypatch.setattr(runner, "fit", lambda *a, **k: real(*a, **{**k, "callbacks": [Interrupt()]}))
    ended = run(whole, tmp_path / "cut")
    assert (ended.finished, ended.left, ended.interrupted) == (0, 1, True)
    [folder] = (tmp_path / "cut" / "runs").iterdir()
    assert status_of(folder) == "interrupted"
    assert "## Not run\n\n- toy, base, seed 1: not run yet" in write_report(tmp_path / "cut")[0]
    monkeypatch.setattr(runner, "fit", real)
    taken = read_json(folder / "cell.json")
    assert taken["seconds"] > 0
    write_json(folder / "cell.json", taken | {"seconds": 1000.0})
    assert run(whole, tmp_path / "cut").finished == 1
    assert read_json(folder / "cell.json")["seconds"] > 1000  # of all calls
    assert len(json.loads((folder / "manifest.json").read_text())["resumed"]) == 1
    one, other = (rows(gather(tmp_path / name))[0] for name in ("whole", "cut"))
    assert one["spearman"] == pytest.approx(other["spearman"], abs=1e-9)
    assert one["curve"] == other["curve"]


@pytest.mark.slow
def test_an_interrupted_cell_goes_on_though_its_files_were_moved(toy, tiny_trunk, toy_pairs, tmp_path, monkeypatch):
    from samesense.recipes import runner
    from samesense.training import fit as module
    from tests.training.test_fit import At

    real = module.fit
    stop = At(3, lambda: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(runner, "fit", lambda *a, **k: real(*a, **{**k, "callbacks": [stop]}))
    run(quick(toy, grid={}, seeds=[1]), tmp_path / "out")
    monkeypatch.setattr(runner, "fit", real)
    trunk = shutil.copytree(tiny_trunk, tmp_path / "trunk")
    data = entry(shutil.copytree(toy_pairs, tmp_path / "pairs"))
    base = {**toy["base"], "model": str(trunk), "license": "mit"}
    said = listen()
    assert run(quick(toy, grid={}, seeds=[1], base=base, data=[data]), tmp_path / "out").finished == 1
    assert not [line for line in said if "begun anew" in line]
    [path] = (tmp_path / "out").glob("runs/*/manifest.json")
    kept = read_json(path)
    assert len(kept["resumed"]) == 1 and kept["settings"]["model"] == str(trunk)
    assert kept["data"]["train"]["source"] == data["train"]


@pytest.mark.slow
def test_models_that_are_wanted_and_gone_are_said(toy, tmp_path):
    run(quick(toy, seeds=[1]), tmp_path)
    said = listen()
    run(quick(toy, seeds=[1], keep="best"), tmp_path)
    assert [line.partition(":")[0] for line in said if "no model any more" in line] == ['keep = "best"']
    said.clear()
    run(quick(toy, seeds=[1], keep="all", start=True), tmp_path)
    [line] = [line for line in said if "no model any more" in line]
    assert line.startswith('keep = "all": 2 finished cells have no model any more, as it was not kept when they ended.')
    assert all(path.name in line for path in (tmp_path / "runs").iterdir() if "seed" in path.name)
    said.clear()
    run(quick(toy, seeds=[1]), tmp_path)
    assert not [line for line in said if "no model any more" in line]


def test_a_second_process_is_kept_out(toy, tmp_path):
    words = [
        "import sys; from filelock import FileLock; lock = FileLock(sys.argv[1]); lock.acquire()",
        "print('held', flush=True); sys.stdin.read()",
    ]
    holder = [sys.executable, "-c", "; ".join(words), str(tmp_path / ".lock")]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match="one writer at a time"):
            run(quick(toy), tmp_path)
        process.stdin.close()
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_the_best_model_is_kept_on_request(toy, tmp_path):
    run(quick(toy, keep="best", seeds=[1]), tmp_path)
    (kept,) = tmp_path.glob("runs/*/model")
    best = {row["variant"]: row["outcome"]["best_dev_spearman"] for row in rows(gather(tmp_path))}
    assert read_record(kept.parent)["variant"] == max(best, key=best.get)


@pytest.fixture
def binary(toy_pairs, tmp_path):
    """The toy pairs with labels 0 and 1, in three files."""
    lines = (toy_pairs / "train.tsv").read_text().splitlines()
    folder = tmp_path / "binary"
    folder.mkdir()
    for part, chosen in (("train", lines[1:81]), ("dev", lines[81:121]), ("test", lines[121:])):
        cut = [[str(int(float(row[0]) > 2)), *row[1:]] for row in (line.split("\t") for line in chosen)]
        (folder / f"{part}.tsv").write_text("\n".join(["label\tsentence1\tsentence2", *map("\t".join, cut)]) + "\n")
    return folder


def test_layers_are_cut_once_and_binary_data_have_an_accuracy(tiny_trunk, binary, tmp_path):
    file = {**content(tiny_trunk, binary), "seeds": [1], "start": True, "grid": {"loss": ["cosent", "softmax"]}}
    file["base"] = {**file["base"], "layers": 2}
    run(make_plan(SweepFile(**file)), tmp_path / "out")
    [start] = (tmp_path / "out" / "starts").iterdir()
    assert json.loads((start / "config.json").read_text())["num_hidden_layers"] == 2
    found = rows(gather(tmp_path / "out"))
    assert [row["variant"] for row in found] == ["start", "cosent", "softmax"]
    for row in found:
        assert 0 <= row["accuracy"] <= 1
        assert row["layers"] == 2
        assert set(row["cosines"]) == {"0", "1"}
    kept = np.load(next((tmp_path / "out" / "runs").glob("*cosent*")) / "scores.npz")
    assert kept["dev"].shape == (40,)
    assert set(kept.files) == {"dev", "sts:toy:spearman", "binary:toy:accuracy"}


def test_cut_starts_of_two_names_on_the_hub_are_kept_apart(toy, tmp_path):
    cell = quick(toy, base={**toy["base"], "layers": 1}).cells[0]
    owner = "sentence-transformers"
    starts = {
        cells.with_cut_start(replace(cell, identity={**cell.identity, "start": start}), tmp_path).settings.model
        for start in (f"{owner}/one", f"{owner}/two", cell.identity["start"])
    }
    assert len(starts) == 3


def test_scores_of_a_data_set_with_colons_in_its_name_are_read(tmp_path):
    values = np.array([0.1, 0.9])
    write_scores(tmp_path / "scores.npz", {"sts:a: b:spearman": values, "dev": values})
    plan = {"variant": "base", "seed": 1}
    pairs = {"hash": ([("a", "b"), ("c", "d")], np.array([0.0, 1.0]))}
    [one] = _evidence(tmp_path, plan, {"identity": {"tests": {"a: b": "hash"}}}, pairs)
    assert (one.task, one.dataset, one.metric) == ("sts", "a: b", "spearman")
    assert one.values.tolist() == values.tolist()


@pytest.mark.slow
def test_losses_of_tuples_and_cross_encoders_go_through_a_sweep(tiny_trunk, binary, tmp_path):
    cases = [{"loss": "info-nce"}, {"loss": "cross-entropy", "encoder": "cross"}]
    file = {**content(tiny_trunk, binary), "seeds": [1], "grid": {}, "case": cases}
    ended = run(make_plan(SweepFile(**file)), tmp_path / "out")
    text, _ = write_report(tmp_path / "out")
    assert (ended.finished, ended.failed) == (2, 0), text
    assert len({row["spearman"] for row in rows(gather(tmp_path / "out"))}) == 2
