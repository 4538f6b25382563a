"""Texts with classes end in a verdict: some are held out, for a classifier that learns from the others."""

import json
import shutil
from collections import Counter
from dataclasses import replace

import pytest

import samesense
from samesense.data.tuples.convert import tuples_of_classes
from samesense.data.tuples.held_out import hold_out_tuples
from samesense.errors import ConfigError, DataError
from samesense.recipes.held_out.pairs import HELD_OUT_TUPLES
from samesense.recipes.planning.plan import plan
from tests.recipes.test_anchor_verdicts import QUICK, some_rows


def labelled(count, classes=3):
    rows = some_rows(count)
    return [{"text": row["question"], "label": f"class {number % classes}"} for number, row in enumerate(rows)]


def tuples(count, classes=3):
    rows = labelled(count, classes)
    return tuples_of_classes([row["text"] for row in rows], [row["label"] for row in rows], source="made", name="made")


@pytest.fixture(scope="module")
def run(reader, tmp_path_factory):
    return samesense.train(labelled(120), output=tmp_path_factory.mktemp("runs") / "run", model=reader, **QUICK)


def test_a_run_has_a_verdict_on_texts_held_out(run):
    task = run.verdict.task
    assert (task.role, task.metric, task.n) == ("held-out texts", "accuracy", 24)
    assert "held out, each to be put into its class by a classifier that learns from 96 others" in task.examples()
    rows = [json.loads(line) for line in (run.folder / HELD_OUT_TUPLES).read_text(encoding="utf-8").splitlines()]
    assert Counter(row["label"] for row in rows) == {"class 0": 8, "class 1": 8, "class 2": 8}
    assert f"next: in Python, samesense.SentenceEncoder('{run.folder}')" in str(run)


def test_the_model_is_then_trained_on_all_unless_the_start_is_kept(reader, run, tmp_path):
    assert bool(run.verdict.keep_reason) != bool(run.verdict.refit)
    trained = samesense.train(labelled(120), output=tmp_path / "run", model=reader, keep_start="never", **QUICK)
    assert trained.verdict.refit.startswith("model/ was then trained on all 120 texts")


def test_held_out_texts_are_in_no_way_trained_on():
    whole = tuples(150)
    train = hold_out_tuples(whole, seed=1)
    held_out = set(train.held_out.data.anchors)
    assert len(held_out) == 30
    trained = {*train.anchors, *(text for texts in train.positives for text in texts), *train.classes}
    assert not held_out & trained
    assert trained | held_out == set(whole.anchors)
    assert train.with_held_out() == whole
    assert hold_out_tuples(whole, seed=1) == train
    assert set(hold_out_tuples(whole, seed=2).held_out.data.anchors) != held_out


@pytest.mark.parametrize(
    ("classes", "texts", "expected"),
    [(2, 50, 20), (3, 100, 60), (77, 3, 46), (300, 5, 150), (1000, 5, 500), (6, 300, 180)],
)
def test_the_share_is_that_of_all_texts_however_many_classes_there_are(classes, texts, expected):
    train = hold_out_tuples(tuples(classes * texts, classes), seed=3)
    assert len(train.held_out.data) == expected
    assert len(set(train.classes.values())) == classes
    counts = Counter(train.held_out.data.labels)
    assert max(counts.values()) - min(counts.get(label, 0) for label in train.class_names) <= 1


def test_a_text_of_each_class_at_least_is_trained_on():
    rare = [{"text": f"rare {number}", "label": f"rare {number // 2}"} for number in range(6)]
    rows = [*labelled(140, classes=2), *rare]
    data = tuples_of_classes([row["text"] for row in rows], [row["label"] for row in rows], source="made", name="made")
    train = hold_out_tuples(data, seed=0)
    assert set(train.classes.values()) == set(data.classes.values())


def test_a_test_of_their_kind_gives_the_verdict_and_chooses_nothing(reader, tmp_path):
    rows = labelled(150)
    train, test = rows[:120], [*rows[120:], *rows[:3]]
    run = samesense.train(train, test=test, output=tmp_path / "run", model=reader, **QUICK)
    task = run.verdict.task
    assert (task.role, task.metric, task.n, task.trained_on) == ("test", "accuracy", 33, 3)
    assert "each to be put into its class by a classifier that learns from 120 others" in task.examples()
    assert not run.verdict.keep_reason and not run.verdict.refit
    assert not (run.folder / HELD_OUT_TUPLES).exists()
    manifest = json.loads((run.folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["data"]["train"]["rows"], manifest["data"]["test"]["rows"]) == (120, 33)


def test_what_of_a_test_is_left_out_or_trained_on_is_said_before_the_training(reader):
    rows = labelled(150)
    test = [*rows[100:], *rows[:5], *rows[100:110], {"text": rows[120]["text"], "label": "class 1"}]
    text = "\n".join(plan(rows[:100], test=test, settings={"model": reader}).lines())
    assert "beside the start: 54 texts each to be put into its class" in text
    assert "5 texts of test are trained on: scores on them are too high" in text
    assert "left out: 1 sentences of several classes, 10 repeated rows" in text


def test_a_test_that_can_give_no_figure_is_refused_before_the_training(reader):
    with pytest.raises(DataError, match="accuracy takes 20 texts to test, of two classes or more; got 10 of 3"):
        plan(labelled(120), test=labelled(130)[120:], settings={"model": reader}).lines()
    pairs = samesense.read([("a b", "a c", 1), ("d e", "f g", 0), ("h i", "h k", 1)])
    test = tuples(40)
    guard = replace(pairs, source="a.tsv")
    with pytest.raises(ConfigError, match=r"two are called a\.tsv"):
        plan(labelled(120), test=replace(test, name="a.tsv"), guard=guard, settings={"model": reader}).lines()


def test_other_labels_are_other_data():
    rows = labelled(40)
    swapped = [{**row, "label": f"class {2 - int(row['label'][-1])}"} for row in rows]
    first, second = (
        tuples_of_classes([row["text"] for row in some], [row["label"] for row in some], source="made", name="made")
        for some in (rows, swapped)
    )
    assert first.anchors == second.anchors and first.sha256 != second.sha256


def test_what_was_held_out_goes_with_its_run(reader, run, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    samesense.train(labelled(120), dev="none", output=folder, overwrite=True, model=reader, **QUICK)
    assert not (folder / HELD_OUT_TUPLES).exists()


def test_a_test_of_other_classes_or_of_another_kind_is_refused(reader):
    with pytest.raises(DataError, match="'class 9' is among its classes, and not among those of"):
        plan(labelled(120), test=[*labelled(30), {"text": "a b", "label": "class 9"}], settings={"model": reader})
    for role in ("test", "dev"):
        with pytest.raises(DataError, match=f"`{role}` takes labelled pairs, and these are anchors with positives"):
            plan(labelled(120), settings={"model": reader}, **{role: some_rows(30)})
    with pytest.raises(DataError, match="`test` takes labelled pairs"):
        plan(some_rows(120), test=tuples(40), settings={"model": reader})


@pytest.mark.parametrize("way", ["dev", "none", "few"])
def test_no_texts_are_held_out_where_others_decide_or_they_are_too_few(reader, way):
    options = {"dev": "none"} if way == "none" else {}
    if way == "dev":
        options["dev"] = samesense.read([("a b", "a c", 1), ("d e", "f g", 0), ("h i", "h k", 1)])
    planned = plan(labelled(60 if way == "few" else 120), settings={"model": reader}, **options)
    held_out = planned.train.held_out
    assert held_out is None or held_out.data is None
    assert not planned.refit
    text = "\n".join(planned.lines())
    assert ("no verdict: a verdict takes 20 texts held out" in text) == (way == "few")


def test_a_share_that_is_asked_for_is_held_out_and_never_trained_on(reader, tmp_path):
    run = samesense.train(
        labelled(70), output=tmp_path / "run", model=reader, test="hold 0.3", keep_start="never", **QUICK
    )
    assert (run.verdict.task.metric, run.verdict.task.n, run.verdict.refit) == ("accuracy", 21, "")
    rows = (run.folder / HELD_OUT_TUPLES).read_text(encoding="utf-8").splitlines()
    assert len(rows) == 21
    anchors = plan(some_rows(70), test="hold 0.4")
    assert (len(anchors.sets.verdict.tested), len(anchors.train)) == (28, 42)


def test_few_texts_are_told_which_share_would_do():
    assert '`test` FILE of such texts, or of labelled pairs, or hold out more of these: `test` "hold 0.35"' in str(
        plan(labelled(60)).lines()
    )
    assert '`samesense label` makes, or hold out more of these: `test` "hold 0.35"' in str(plan(some_rows(60)).lines())
    assert "hold out more" not in str(plan(labelled(30)).lines())
    for rows in (labelled(60), some_rows(60)):
        message = r'a verdict takes 20 .* held out, and 0\.2 of them are asked for.* `test` "hold 0\.35"\.'
        with pytest.raises(ConfigError, match=message):
            plan(rows, test="hold 0.2")
