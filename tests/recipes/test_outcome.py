"""The outcome of a run: verdict, guards, merged weights, learning curve, and page."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from samesense import train
from samesense.data import read_pairs
from samesense.data.pairs.data import concat
from samesense.data.pairs.keys import plain_text
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.merge import copy_weights
from samesense.errors import ConfigError, DataError, OutputError
from samesense.inference.models.load import load
from samesense.metrics import spearman
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.held_out.sets import FEWEST, most_selecting, sets_of
from samesense.recipes.run.outcome import conclude, learning_curve
from samesense.recipes.run.outcome.merge import merge
from tests.messages import listen

GOOD = {"learning_rate": 2e-3, "max_steps": 20, "eval_steps": 10, "batch_size": 16, "precision": "float32"}


@pytest.fixture
def files(toy_pairs):
    return {split: read_pairs(toy_pairs / f"{split}.tsv") for split in ("train", "dev", "test")}


@pytest.fixture
def many(files):
    """Return 280 pairs, enough to hold some out."""
    return replace(concat([replace(pairs, source="many.tsv") for pairs in files.values()]), source="many.tsv")


def test_a_part_of_dev_is_set_apart_and_shares_no_sentence(many):
    sets = sets_of(many, None, cross_fit=False)
    assert sets.verdict.role == "dev" and len(sets.verdict.data) >= FEWEST <= len(sets.selecting)
    texts = [
        {*map(plain_text, [*pairs.sentences1, *pairs.sentences2])} for pairs in (sets.selecting, sets.verdict.data)
    ]
    assert not texts[0] & texts[1] and sets.verdict.name == "many.tsv (apart)"
    assert "share no sentence with those that did" in sets.verdict.description
    assert len(sets.selecting) + len(sets.verdict.data) == len(many)
    large = concat([replace(many, sentences1=[f"{copy} {pairs}" for pairs in many.sentences1]) for copy in range(16)])
    assert 990 <= len(sets_of(large, None).verdict.data) <= 1000
    few = sets_of(large, many, most=most_selecting(CosentSettings(max_steps=200, eval_steps=40), 5000)).selecting
    assert len(few) == 256 and set(few.pairs()) <= set(large.pairs())
    for test in (None, many):
        sets = sets_of(large, test).selecting
        assert len(sets) == 1000 and set(sets.pairs()) <= set(large.pairs())
    assert len(sets_of(large, many, split_dev=False).selecting) == len(large)


@pytest.mark.parametrize(("batch", "every", "most"), [(16, 10, 200), (16, 40, 256), (16, 144, 922), (64, 144, 1000)])
def test_evaluations_take_a_tenth_of_the_training_between_them(batch, every, most):
    assert most_selecting(CosentSettings(batch_size=batch, eval_steps=every), 5000) == most


def test_a_sentence_in_every_pair_leaves_pairs_apart(many):
    hub = replace(many, sentences1=["the hub"] * len(many))
    for cross_fit in (True, False):
        assert "share no pair" in sets_of(hub, None, cross_fit=cross_fit).verdict.description


def test_no_verdict_is_invented(many, files):
    few = files["dev"].take(range(19))
    small = sets_of(few, None)
    assert (small.verdict, small.selecting) == (None, few)
    assert "it takes 20 labelled pairs that were not trained on, and dev has 19" in small.reason
    assert "neither test nor dev" in sets_of(None, None).reason
    whole = sets_of(many, files["test"])
    assert whole.selecting is many and whole.verdict.role == "test"
    assert sets_of(many, None, split_dev=False).selecting is many
    one_label = replace(many, labels=[0.0] * (len(many) - 1) + [1.0])
    assert "cannot be cut" in sets_of(one_label, None, cross_fit=False).reason


def test_a_verdict_counts_the_test_pairs_that_were_trained_on(files, tiny_trunk, tmp_path):
    test = files["test"]
    turned = replace(test, sentences1=[f"{text}!" for text in test.sentences2], sentences2=test.sentences1)
    run = train(turned, dev=None, test=test, output=tmp_path / "run", **{**GOOD, "model": str(tiny_trunk)})
    assert run.verdict.task.trained_on == 60
    sets = json.loads((tmp_path / "run" / "manifest.json").read_text())["verdict"]["sets"]
    assert sets[0]["trained_on"] == 60


def test_two_sets_of_one_name_are_refused(files):
    with pytest.raises(ConfigError, match=r"two are called test\.tsv"):
        sets_of(None, files["test"], [replace(files["dev"], source="elsewhere/test.tsv")])
    with pytest.raises(ConfigError, match=r"two are called dev\.tsv"):
        sets_of(files["dev"], None, [replace(files["test"], source="elsewhere/dev.tsv")])


def test_a_run_says_where_it_is_better_and_a_guard_where_it_is_not(files, tiny_trunk, tmp_path, drawn):
    """Labels of the guard are those of the start: nothing that is learnt can bring the model nearer to them."""
    start = load(str(tiny_trunk), precision="float32").scores(files["test"].pairs())
    guard = replace(files["test"], labels=np.round(start, 6).tolist(), source="guard.tsv")
    output = tmp_path / "run"
    run = train(
        files["train"],
        dev=files["dev"],
        test=files["test"],
        guard=[guard],
        output=output,
        **{**GOOD, "model": str(tiny_trunk)},
    )
    verdict = run.verdict
    after = load(run.model, precision="float32").scores(files["test"].pairs())
    assert (verdict.word, [item.word for item in verdict.guards]) == ("better", ["worse"])
    assert verdict.task.start == pytest.approx(spearman(start, files["test"].labels))
    bounds = [(row.low, row.high) for row in run.results if (row.dataset, row.metric) == ("test.tsv", "spearman")]
    task = verdict.task
    assert [(task.start_low, task.start_high), (task.end_low, task.end_high)] == bounds
    assert verdict.task.end == pytest.approx(spearman(after, files["test"].labels), abs=1e-6)
    assert verdict.guards[0].start == pytest.approx(1.0)
    assert any("`merge`" in item for item in verdict.advice)
    record = json.loads((output / "manifest.json").read_text())
    assert record["verdict"] == json.loads(json.dumps(verdict.to_dict()))
    assert record["data"]["guard guard.tsv"]["rows"] == 60
    assert {row.task for row in run.results if row.dataset == "guard.tsv"} == {"guard"}
    messages = str(run).splitlines()
    assert any(line.startswith("verdict: better than the start on test.tsv, ") for line in messages)
    assert any(line.startswith("guard: WORSE than the start on guard.tsv, ") for line in messages)
    assert messages[-1] == f"report: {output / 'report.html'}"
    page = (output / "report.html").read_text()
    assert '<mark style="--share:1.00">' in page  # words of the worst errors, by the trained model
    assert page.index("Training helped on test.tsv") < page.index("<svg")
    assert "Worse on what must not suffer: guard.tsv" in page
    unmarked = re.sub("</?mark[^>]*>", "", page)
    assert sum(text in unmarked for text in files["test"].sentences1) >= 5  # the worst errors with their texts
    assert page.count("<svg") == 6 and "http" not in page.replace("http-equiv", "")
    assert run.to_dicts()[-1]["verdict"] == "better"


def test_without_a_test_the_verdict_is_on_pairs_that_selected_nothing(many, tiny_trunk, tmp_path):
    messages = listen()
    run = train(
        many,
        dev=many,
        output=tmp_path / "run",
        merge=True,
        **{**GOOD, "max_steps": 2, "eval_steps": 1, "model": str(tiny_trunk), "report": False},
    )
    sets = sets_of(many, None, cross_fit=False)
    assert (run.verdict.task.dataset, run.verdict.task.n) == ("many.tsv (apart)", len(sets.verdict.data))
    scores = load(run.model, precision="float32").scores(sets.selecting.pairs())
    chosen = run.verdict.merge.dev[str(run.verdict.merge.share)]
    assert chosen == pytest.approx(spearman(scores, sets.selecting.labels), abs=1e-3)
    assert not (tmp_path / "run" / "report.html").exists() and not any("report" in line for line in messages)


def test_what_cannot_be_drawn_is_said_and_loses_nothing(files, tiny_trunk, tmp_path, monkeypatch):
    def fails(page):
        raise RuntimeError("no ink")

    monkeypatch.setattr(conclude, "run_page", fails)
    messages = listen()
    run = train(files["train"], dev=None, output=tmp_path / "run", **{**GOOD, "max_steps": 1, "model": str(tiny_trunk)})
    assert (run.model / "modules.json").is_file() and "no report.html: RuntimeError: no ink" in messages
    assert run.verdict.word == "none" and json.loads((run.folder / "manifest.json").read_text())["status"] == "finished"


@pytest.mark.parametrize("part", ["write_text", "measure_curve"])
def test_what_a_full_disk_had_no_room_for_is_made_by_the_resumed_run(
    many, files, tiny_trunk, tmp_path, monkeypatch, part
):
    def fails(*_):
        raise OutputError("it cannot be written: No space left on device")

    settings = {**GOOD, "max_steps": 1, "learning_curve": part == "measure_curve", "model": str(tiny_trunk)}
    options = {"dev": None, "test": files["test"], "output": tmp_path / "run", **settings}
    with monkeypatch.context() as patched, pytest.raises(OutputError, match="No space left"):
        patched.setattr(conclude, part, fails)
        train(many, **options)
    measured = []
    monkeypatch.setattr(conclude, "measure_curve", lambda *_: measured.append(1))
    run = train(many, **options, resume=True)
    assert (run.output.interrupted, bool(measured)) == (part == "measure_curve", part == "measure_curve")
    assert measured or (tmp_path / "run" / "report.html").is_file()


def test_a_second_run_leaves_no_page_of_the_run_before(files, tiny_trunk, tmp_path):
    settings = {**GOOD, "max_steps": 1, "model": str(tiny_trunk)}
    train(files["train"], dev=None, output=tmp_path / "run", **settings)
    assert (tmp_path / "run" / "report.html").is_file()
    train(files["train"], dev=None, output=tmp_path / "run", **{**settings, "report": False}, overwrite=True)
    assert not (tmp_path / "run" / "report.html").exists()


def test_the_best_share_on_dev_is_kept_and_compared_with_the_end(tiny, files):
    start = copy_weights(tiny)
    with torch.no_grad():
        for weight in tiny.parameters():
            weight.add_(torch.randn_like(weight))
    end = copy_weights(tiny)
    name = max(end, key=lambda name_of_tensor: end[name_of_tensor].numel())

    def nearest_to_a_third(model):
        moved = (model.state_dict()[name] - start[name]).norm() / (end[name] - start[name]).norm()
        return -abs(float(moved) - 0.33)

    merged = merge(tiny, start, nearest_to_a_third, sets_of(None, files["test"]).verdict)
    assert merged.share == 0.3 and list(merged.dev) == [str(tenth / 10) for tenth in range(1, 11)]
    assert torch.allclose(tiny.state_dict()[name], torch.lerp(start[name], end[name], 0.3))
    scores = load(tiny, precision="float32").scores(files["test"].pairs())
    assert merged.beside_end.end == pytest.approx(spearman(scores, files["test"].labels), abs=1e-5)
    assert merged.beside_end.against == "the end" and "chosen on dev" in merged.line()


def test_of_shares_that_are_equal_on_dev_the_largest_is_taken(tiny):
    assert merge(tiny, copy_weights(tiny), lambda _: 0.5, None).share == 1.0


@pytest.mark.parametrize("overrides", [{}, {"matryoshka": (8,)}, {"standardize": "whiten"}])
def test_a_merged_model_is_what_is_saved(files, tiny_trunk, tmp_path, overrides):
    settings = {**GOOD, "merge": True, "report": False, "model": str(tiny_trunk), **overrides}
    run = train(files["train"], dev=files["dev"], test=files["test"], output=tmp_path / "run", **settings)
    merged = run.verdict.merge
    scores = load(run.model, precision="float32").scores(files["dev"].pairs())
    assert spearman(scores, files["dev"].labels) == pytest.approx(merged.dev[str(merged.share)], abs=1e-4)
    assert merged.dev["1.0"] == pytest.approx(run.output.best_dev_spearman, abs=1e-4)
    assert max(merged.dev.values()) == merged.dev[str(merged.share)]
    assert json.loads((run.folder / "manifest.json").read_text())["verdict"]["merge"]["share"] == merged.share


def test_a_run_stopped_before_its_evaluation_remembers_what_was_merged(files, tiny_trunk, tmp_path, monkeypatch):
    settings = {**GOOD, "max_steps": 4, "eval_steps": 2, "merge": True, "report": False, "model": str(tiny_trunk)}
    options = {"dev": files["dev"], "test": files["test"], "output": tmp_path / "run", **settings}

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("samesense.recipes.run.runner.conclude", stopped)
        with pytest.raises(KeyboardInterrupt):
            train(files["train"], **options)
    weights = copy_weights(build(str(tmp_path / "run"), device="cpu"))
    run = train(files["train"], **options, resume=True)
    assert run.verdict.merge.share in [tenth / 10 for tenth in range(1, 11)]
    assert all(torch.equal(tensor, weights[name]) for name, tensor in build(str(run.folder)).state_dict().items())


def test_merge_is_refused_where_there_is_nothing_to_choose_by_or_to_go_back_to(files, tiny_trunk, tmp_path):
    settings = {**GOOD, "merge": True, "model": str(tiny_trunk)}
    with pytest.raises(ConfigError, match="on dev, and there is none"):
        train(files["train"], dev=None, output=tmp_path / "run", **settings)
    for overrides in ({"encoder": "cross"}, {"method": "simcse", "head": "kept"}):
        with pytest.raises(ConfigError, match="a model with a new head does not"):
            train(files["train"], dev=files["dev"], output=tmp_path / "run", **{**settings, **overrides})
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_learning_curve_goes_on_where_it_was_stopped(many, files, tiny_trunk, tmp_path, monkeypatch):
    settings = {**GOOD, "max_steps": 2, "eval_steps": 1, "learning_curve": True, "model": str(tiny_trunk)}
    options = {"dev": files["dev"], "test": files["test"], "output": tmp_path / "run", **settings}
    trained = []
    scores = learning_curve._scores_of

    def stops_at_the_third(subset, folder, on, train):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(folder.name)
        return scores(subset, folder, on, train)

    with monkeypatch.context() as patched:
        patched.setattr(learning_curve, "_scores_of", stops_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            train(many, **options)
    messages = listen()
    run = train(many, **options, resume=True)
    begun = [line for line in messages if line.startswith("learning curve: ")]
    assert [line.split()[2] for line in begun] == ["35", "35", "70", "70", "140"]
    manifests = {
        path.parent.name: json.loads(path.read_text()) for path in (tmp_path / "run").glob("*/*/manifest.json")
    }
    assert {name: manifest["settings"]["max_steps"] for name, manifest in manifests.items()} == dict.fromkeys(
        manifests, 1
    )
    curve = run.verdict.curve
    assert [rows for rows, _ in curve.points] == [280, 35, 35, 35, 35, 70, 70, 140]
    assert curve.points[0][1] == pytest.approx(run.verdict.task.end)
    assert curve.low <= curve.high and "twice the data (560)" in curve.line()
    assert not list((tmp_path / "run" / "learning-curve").glob("*/model"))
    assert "Twice the data" in (tmp_path / "run" / "report.html").read_text().replace("twice", "Twice")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["verdict"]["curve"]["rows"] == 280


def test_parts_of_a_learning_curve_do_not_meet(files, tmp_path, monkeypatch):
    subsets = {}

    def scores(subset, folder, on, train):
        subsets[folder.name] = subset
        return np.arange(60.0) + len(subset) * np.sin(np.arange(60.0))

    monkeypatch.setattr(learning_curve, "_scores_of", scores)
    monkeypatch.setattr(learning_curve, "fitted", lambda rows, scores, labels, name: rows)
    on = SimpleNamespace(data=files["test"], name="test")
    rows = learning_curve.measure_curve(files["train"], tmp_path, on, np.arange(60.0), None)
    assert rows.tolist() == [160, 20, 20, 20, 20, 40, 40, 80]
    eighths = [{*subset.pairs()} for name, subset in subsets.items() if name.startswith("20-")]
    assert len(eighths) == 4 and len(set.union(*eighths)) == sum(map(len, eighths))
    quarters = [{*subsets[f"40-{number}"].pairs()} for number in (1, 2)]
    assert not quarters[0] & quarters[1]


def test_counted_steps_are_cut_as_the_data_are():
    def cut(**overrides):
        settings = learning_curve.settings_of_part(CosentSettings(**overrides), 0.25)
        return settings.max_steps, settings.eval_steps

    assert cut(max_steps=100, eval_steps=50) == (25, 25)
    assert cut(max_steps=100, eval_steps=5) == (25, 5)
    assert cut(max_steps=2) == (1, None)
    assert cut(eval_steps=50) == (None, 50)


def test_a_learning_curve_that_cannot_be_fitted_loses_nothing(many, files, tiny_trunk, tmp_path, monkeypatch):
    def fails(*_):
        raise DataError("one label only")

    monkeypatch.setattr(conclude, "measure_curve", fails)
    settings = {**GOOD, "max_steps": 1, "learning_curve": True, "model": str(tiny_trunk)}
    run = train(many, dev=None, test=files["test"], output=tmp_path / "run", **settings)
    assert "learning curve: none, one label only" in run.conclusion()
    assert json.loads((run.folder / "manifest.json").read_text())["status"] == "finished"


def test_a_learning_curve_is_refused_where_it_would_say_nothing(files, many, tiny_trunk, tmp_path):
    settings = {**GOOD, "learning_curve": True, "model": str(tiny_trunk)}
    with pytest.raises(ConfigError, match="it takes 20 labelled pairs that were not trained on, and dev has 19"):
        train(many, dev=files["dev"].take(range(19)), output=tmp_path / "run", **settings)
    with pytest.raises(ConfigError, match="an eighth of the data, 32 rows at least; received 160 rows"):
        train(files["train"], dev=files["dev"], test=files["test"], output=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["--learning-curve"], "an eighth of the data"),
        (["--merge", "--dev", "none"], "chooses between start and end on dev, and there is none"),
        (["--early-stopping-patience", "2", "--dev", "none"], "counts evaluations on a dev set, and there is none"),
    ],
)
def test_what_the_data_do_not_allow_is_refused_without_loading_torch(tmp_path, tiny_trunk, settings, message):
    rows = "".join(f"red fish {i}\tblue fish {i}\t{i % 2}\n" for i in range(60))
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tlabel\n" + rows)
    words = ["train", "pairs.tsv", "--model", str(tiny_trunk), "--output", "run", *settings]
    code = f"import sys; sys.modules['torch'] = None; from samesense.cli.main import main; main({words})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "run").exists()


def test_a_new_head_has_nothing_to_be_compared_with(tiny_trunk, files, tmp_path):
    settings = {**GOOD, "max_steps": 2, "model": str(tiny_trunk), "encoder": "cross"}
    run = train(files["train"], dev=None, test=files["test"], output=tmp_path / "run", **settings)
    (line,) = run.verdict.lines()
    assert line.startswith("no verdict: the start has no score of its own, as its head is new; Spearman of the trained")
    assert re.search(r"95 % interval -?[\d.]+ to [\d.]+\) on 60 examples$", line)
    assert (tmp_path / "run" / "report.html").is_file()
