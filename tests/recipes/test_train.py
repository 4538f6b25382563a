"""Training from Python: defaults, and how a run is printed."""

import pytest

import samesense
from samesense.data import read_pairs
from samesense.data.sentences import read_unlabelled
from samesense.errors import ConfigError, DataError
from samesense.recipes.planning.plan import plan
from samesense.recipes.run.training_run import TrainingRun
from samesense.results.results import Results
from samesense.training.fit import TrainOutput


def test_a_dev_set_is_held_out_given_or_left_out(toy_pairs):
    source = toy_pairs / "train.tsv"
    held_out = plan(source)
    assert (len(held_out.train), len(held_out.dev), held_out.held_out) == (144, 16, True)
    selection = "selection: Spearman on 16 pairs held out, none of their sentences is trained on"
    assert f"{selection}; at the end they are trained on too" in held_out.lines()
    assert plan(str(source)).train.sha256 == plan(read_pairs(source)).train.sha256 == held_out.train.sha256
    planned = plan([source], dev=read_pairs(toy_pairs / "dev.tsv"), test=toy_pairs / "test.tsv")
    assert (len(planned.train), len(planned.dev), len(planned.test)) == (160, 60, 60)
    assert "selection: Spearman on 60 pairs of dev.tsv" in planned.lines()
    for none in (None, "none"):
        assert plan(source, dev=none).dev is None


def test_settings_are_shown_as_they_were_read(toy_pairs):
    settings = {"matryoshka": ("32,16",), "learning_rate": "2e-4"}
    planned = plan(toy_pairs / "train.tsv", settings=settings)
    assert "settings: cosent, matryoshka = 32,16, learning_rate = 0.0002" in planned.lines()


def test_a_test_of_yes_no_labels_says_how_high_spearman_can_be(toy_pairs):
    test = [(f"text {number}", f"other {number}", number % 2) for number in range(120)]
    lines = plan(toy_pairs / "train.tsv", test=test).lines()
    assert "  yes/no labels: without equal scores, Spearman is at most 86.6 here (60 of 120 are yes)" in lines
    assert "yes/no" not in "".join(plan(toy_pairs / "train.tsv", test=toy_pairs / "test.tsv").lines())


def test_no_sentence_of_the_pairs_held_out_is_trained_on(tmp_path, caplog):
    rows = [
        (f"text {number}", f"text {number + 1}", number % 5) for number in range(0, 60) if number % 3 < 2
    ]  # three sentences a chain
    apart = plan(rows)
    held, trained_on = ({text for pair in data.pairs() for text in pair} for data in (apart.dev, apart.train))
    assert len(apart.dev) == 4 and not held & trained_on
    assert "  also in dev: 0 pairs, 0 of 54 sentences" in apart.lines()
    tied = plan([("one text", f"text {number}", number % 5) for number in range(60)])  # all pairs form one component
    assert len(tied.dev) == 6
    assert "6 pairs are held out, and 1 of their 7 sentences are also trained on" in caplog.text
    assert "Give `dev` FILE with pairs of other sentences" in caplog.text
    message = "6 pairs held out, 1 of their 7 sentences are also trained on, because the pairs share sentences"
    assert f"selection: Spearman on {message}; at the end they are trained on too" in tied.lines()
    assert "  also in dev: 0 pairs, 1 of 55 sentences" in tied.lines()


def test_pairs_held_out_whose_sentences_are_not_trained_on_are_not_warned_of(caplog):
    rows = [("one", "four", 1), ("two", "three", 0), ("three", "two", 1), ("four", "one", 0)]
    plan(rows * 10)
    assert "scores on them are too high" not in caplog.text


def test_sentences_of_dev_and_test_are_looked_for_in_data_without_labels(tmp_path):
    test = [("Text 1!", "other", 1), ("text 2", "text 9", 0)]
    texts = plan([f"text {number}" for number in range(4)], dev="none", test=test)
    assert "  also in test: 2 of its 4 sentences, 0 of its 2 pairs" in texts.lines()
    (tmp_path / "anchors.csv").write_text("anchor,positive\ntext 1,a b\nc d,text 9\ne,other\n")
    anchors = plan(tmp_path / "anchors.csv", dev=test)
    assert "  also in dev: 3 of its 4 sentences, 0 of its 2 pairs" in anchors.lines()


def test_positives_that_are_test_pairs_are_warned_of(tmp_path):
    (tmp_path / "anchors.csv").write_text("question,answer\ntext 1,a b\nc d,text 9\n")
    lines = plan(tmp_path / "anchors.csv", dev=None, test=[("A b.", "Text 1!", 1), ("e", "f", 0)]).lines()
    assert "  also in test: 2 of its 4 sentences, 1 of its 2 pairs" in lines
    assert "  warning: 1 pairs of test are trained on: a score on it would be inflated" in lines


def test_data_that_are_read_already_tell_the_method(toy_pairs):
    sentences = read_unlabelled(toy_pairs / "train.tsv")
    assert plan(sentences).method.name == "simcse"
    assert plan(sentences, settings={"teacher": ("default",)}).method.name == "rankcse"
    assert plan(read_pairs(toy_pairs / "train.tsv"), config="simcse-sup").method.name == "simcse"
    with pytest.raises(ConfigError, match=r"Method cosent trains on labelled pairs.*; received Sentences"):
        plan(sentences, method="cosent")
    with pytest.raises(DataError, match="several splits or columns were given"):
        plan({"train": sentences, "test": sentences})


def test_a_run_shows_itself(tiny_trunk, toy_pairs, tmp_path):
    settings = {"model": str(tiny_trunk), "max_steps": 2, "precision": "float32"}
    run = samesense.train(toy_pairs / "train.tsv", test=toy_pairs / "test.tsv", output=tmp_path / "run", **settings)
    assert run.model == tmp_path / "run" / "model" and run.model.is_dir()
    assert "trained 2 steps in" in str(run) and "Spearman" in str(run) and str(tmp_path) in str(run)
    assert run._repr_html_().startswith("<p>trained 2 steps") and "<table>" in run._repr_html_()
    stopped = TrainingRun(tmp_path, TrainOutput(steps=1, seconds=0.0, precision="float32", interrupted=True), Results())
    assert str(stopped) == "interrupted at step 1; everything is kept, and resume goes on"
