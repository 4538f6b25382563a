"""Cross-validation of a method: every pair is scored by a model that has not seen it, by topic or at random."""

import csv
import json
import shutil

import numpy as np
import pytest
from filelock import FileLock
from transformers import TrainerCallback

from samesense.cli.main import app
from samesense.data import read_pairs
from samesense.errors import ConfigError, DataError, OutputError
from samesense.evaluation.argument import cross_validation
from samesense.locks import LOCK
from samesense.metrics import pearson, spearman
from samesense.recipes.cosent import recipe as cosent
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.held_out.cross_validation import FOLD_FILE
from samesense.recipes.methods import METHODS
from samesense.recipes.planning import folds
from samesense.reports import read_results
from tests.messages import listen
from tests.recipes.harvests import some_pairs

TOPICS = ("rain", "trains", "dogs")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("folds") / "arguments.tsv"
    lines = ["score\tsentence1\tsentence2\tsubset"]
    lines += [f"{2.5 * (s + 1):.2f}\t{a}\t{b}\t{TOPICS[i % 3]}" for i, (a, b, s, _) in enumerate(some_pairs(48))]
    path.write_text("\n".join(lines) + "\n")
    return read_pairs(path)


@pytest.fixture
def settings(tiny_trunk):
    return CosentSettings(
        loss="mse", model=str(tiny_trunk), max_steps=2, precision="float32", batch_size=8, learning_rate=1e-3
    )


def scores_of(output, dealt, rows):
    scores = np.full(rows, np.nan)
    for number, (_, held) in enumerate(dealt, 1):
        scores[held] = json.loads((output / f"fold-{number:02}" / FOLD_FILE).read_text())["scores"][0]
    return scores


@pytest.mark.parametrize("strategy", ["3", "by-topic"])
def test_each_pair_is_judged_by_a_model_of_the_other_folds(data, settings, tmp_path, strategy):
    messages = listen()
    results = folds.cross_validate(METHODS["cosent"], data, settings, tmp_path / "f", strategy)
    dealt = cross_validation(data, 3, "by-topic" if strategy == "by-topic" else "apart", folds.SPLIT_SEED)
    scores = scores_of(tmp_path / "f", dealt, len(data))
    assert np.isfinite(scores).all()
    whole = {row.metric: row.value for row in results if row.subset == "all"}
    assert whole["spearman"] == pytest.approx(spearman(scores, data.labels))
    assert whole["pearson"] == pytest.approx(pearson(scores, data.labels))
    mean = next(row.value for row in results if (row.metric, row.subset) == ("spearman", "mean"))
    labels = np.array(data.labels)
    assert mean == pytest.approx(np.mean([spearman(scores[held], labels[held]) for _, held in dealt]))
    assert read_results(tmp_path / "f" / "results.jsonl") == results
    assert "trained without it" in results[0].protocol
    assert next(line for line in messages if line.startswith("fold")) == "fold 1 of 3: 32 pairs train, 16 test"
    for number, (teaches, _) in enumerate(dealt, 1):
        record = json.loads((tmp_path / "f" / f"fold-{number:02}" / "manifest.json").read_text())
        assert record["data"] == {
            "train": {
                "source": data.source,
                "sha256": data.take(teaches).sha256,
                "rows": len(teaches),
                "scale": [0, 5],
            }
        }
        assert not (tmp_path / "f" / f"fold-{number:02}" / "model").exists()
    assert {row.subset for row in results} == {"all", "mean", *(TOPICS if strategy == "by-topic" else ())}


@pytest.mark.slow
def test_a_killed_run_goes_on_with_what_it_has(data, settings, tmp_path, monkeypatch):
    whole = folds.cross_validate(METHODS["cosent"], data, settings, tmp_path / "whole", "3")
    opened = folds.load
    done = []

    def noted(folder, **options):
        done.append(folder.name)
        return opened(folder, **options)

    def killed(folder, **options):
        if len(done) == 1:
            raise RuntimeError("killed")
        return noted(folder, **options)

    monkeypatch.setattr(folds, "load", killed)
    with pytest.raises(RuntimeError):
        folds.cross_validate(METHODS["cosent"], data, settings, tmp_path / "f", "3")
    monkeypatch.setattr(
        folds, "load", lambda folder, **options: (done.append(folder.name), opened(folder, **options))[1]
    )
    with pytest.raises(OutputError, match="not finished"):
        folds.cross_validate(METHODS["cosent"], data, settings, tmp_path / "f", "3")
    with pytest.raises(ConfigError, match=r"folds was '3' and is '4'"):
        folds.cross_validate(METHODS["cosent"], data, settings, tmp_path / "f", "4", resume=True)
    again = folds.cross_validate(METHODS["cosent"], data, settings, tmp_path / "f", "3", resume=True)
    assert done == ["fold-01", "fold-02", "fold-03"]
    assert [row.value for row in again] == pytest.approx([row.value for row in whole])


class Dies(TrainerCallback):
    """Ends the training at its first step."""

    def on_step_begin(self, args, state, control, **kwargs):
        raise RuntimeError("killed")


@pytest.mark.slow
def test_a_fold_killed_before_a_checkpoint_is_trained_again_and_nothing_old_is_left(
    data, settings, tmp_path, monkeypatch
):
    output = tmp_path / "f"
    prepared = cosent.TrainingInputs
    output.mkdir()
    (output / "results.jsonl").write_text("of an earlier run")
    (output / "report.html").write_text("of a run that made a model")
    (output / "history.jsonl").write_text("")
    (output / "manifest.json").write_text('{"method": "folds"}')
    with monkeypatch.context() as patch:
        patch.setattr(cosent, "TrainingInputs", lambda **options: prepared(callbacks=[Dies()], **options))
        with pytest.raises(RuntimeError, match="killed"):
            folds.cross_validate(METHODS["cosent"], data, settings, output, "2", overwrite=True)
    assert (output / "fold-01" / "checkpoints").is_dir() and not (output / "results.jsonl").exists()
    assert not (output / "report.html").exists() and not (output / "history.jsonl").exists()
    with FileLock(output / LOCK), pytest.raises(OutputError, match="one writer at a time"):
        folds.cross_validate(METHODS["cosent"], data, settings, output, "2", resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *args, **options: None)  # killed once the scores are written
        folds.cross_validate(METHODS["cosent"], data, settings, output, "2", resume=True)
    assert (output / "fold-02" / "model").is_dir()
    folds.cross_validate(METHODS["cosent"], data, settings, output, "2", resume=True)
    assert not list(output.glob("fold-*/model"))


def test_the_start_is_not_removed_by_overwriting(data, settings, tmp_path):
    output = tmp_path / "f"
    start = shutil.copytree(settings.model, output / "model")
    (output / "report.html").write_text("of a run that made a model")
    (output / "history.jsonl").write_text("")
    (output / "manifest.json").write_text('{"method": "folds"}')
    from_output = settings.model_copy(update={"model": str(output)})
    with pytest.raises(OutputError, match="would be written over"):
        folds.cross_validate(METHODS["cosent"], data, from_output, output, "2", overwrite=True)
    assert (start / "config.json").exists()


def test_what_cannot_be_dealt_is_refused_at_once(data, settings, tmp_path):
    for strategy, error, words in (
        ("ten", ConfigError, "a number of folds of random pairs, such as 10-mixed, by-topic, none, or auto"),
        ("40", ConfigError, "2 to 30 folds"),
        ("30", DataError, "at least 60 pairs"),
    ):
        with pytest.raises(error, match=words):
            folds.cross_validate(METHODS["cosent"], data, settings, tmp_path / "f", strategy)
    with pytest.raises(DataError, match="softmax takes classes"):
        folds.cross_validate(METHODS["cosent"], data, CosentSettings(loss="softmax"), tmp_path / "f", "3")
    assert not (tmp_path / "f").exists()


def test_a_start_that_is_refused_leaves_the_folder_to_the_corrected_run(data, settings, tmp_path):
    wide = settings.model_copy(update={"matryoshka": (4096,)})
    with pytest.raises(ConfigError, match="`matryoshka` takes widths below"):
        folds.cross_validate(METHODS["cosent"], data, wide, tmp_path / "f", "2")
    assert [path.name for path in (tmp_path / "f").iterdir()] == [".lock"]


def test_the_command_reads_the_folder_of_arguments(data, tiny_trunk, tmp_path, capsys):
    for topic, start in (("DP", 0), ("GC", 1), ("GM", 2)):
        with (tmp_path / f"ArgPairs_{topic}.csv").open("w", encoding="latin-1", newline="") as out:
            writer = csv.writer(out)
            writer.writerow([f"column{i}" for i in range(11)])
            for row in range(start, 24, 3):
                writer.writerow([data.labels[row], *[""] * 8, data.sentences1[row], data.sentences2[row]])
    words = ["train", str(tmp_path), "--loss", "mse", "--model", str(tiny_trunk), "--max-steps", "1", "--precision"]
    words += ["float32", "--folds", "by-topic", "--dev", "none", "--json", "--output", str(tmp_path / "f")]
    app(words, exit_on_error=False, result_action="return_value")
    *results, verdict = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["subset"] for row in results if row["task"] == "argument"} == {"all", "mean", "DP", "GC", "GM"}
    assert verdict["sets"][0]["role"] == "out of fold" and (tmp_path / "f" / "model").is_dir()
