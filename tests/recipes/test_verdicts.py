"""Every training with labels ends in a verdict: out of fold, by dev pairs that choose for each other, or by a test."""

import json
import signal
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from huggingface_hub import ModelCard

import samesense
from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.encoder.maps.whitening import Whitening, append_whitening
from samesense.encoder.saving.storage import save
from samesense.errors import AnotherRunError, ConfigError, DataError
from samesense.inference.calibration.storage import read_of
from samesense.metrics import spearman
from samesense.recipes.held_out import cross_validation
from samesense.recipes.held_out.choose_share import ScoredFold, choose_scores, choose_share
from samesense.recipes.held_out.scores import HELD_OUT_SCORES, read_held_out
from samesense.recipes.planning import few_examples
from samesense.recipes.planning.dev_split import parse_share
from samesense.recipes.planning.plan import plan
from samesense.recipes.run import evaluation_phase, run_folder, runner
from samesense.recipes.run.outcome import standardized_start
from samesense.reports import read_results
from samesense.training.step_scores import STEP_SCORES
from tests.command import run_command
from tests.messages import listen
from tests.recipes.conftest import WORDS

QUICK = {"max_steps": 4, "eval_steps": 2, "batch_size": 16, "precision": "float32", "report": False}
HARMFUL = 0.1
"""A learning rate by which wrong labels are learnt in a few steps."""


def some_rows(count, labels, seed=0):
    """Return pairs that share no sentence; the label rises with the words in common."""
    drawn = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        label = labels[number % len(labels)]
        words = drawn.permutation(WORDS)[:6].tolist()
        shared = round(4 * labels.index(label) / max(1, len(labels) - 1))
        second = [*words[:shared], *drawn.permutation(WORDS)[: 4 - shared].tolist()]
        rows.append((f"{number} {' '.join(words[:4])}", f"{number + count} {' '.join(second)}", label))
    return rows


def fold(rows, scores, labels):
    return ScoredFold(np.array(rows), np.array(labels, float), np.array([0.5, 1.0]), np.array(scores, float))


def test_no_pair_has_a_say_in_the_step_of_its_own_score():
    first = fold([0, 2], [[1, 2], [9, 3]], [0, 1])  # its own labels speak for the first evaluation
    second = fold([1, 3], [[2, 1], [4, 8]], [0, 1])  # the labels of these speak for the second
    chosen = choose_scores([first, second])
    assert chosen[0] > chosen[2] and chosen[1] > chosen[3]  # each in the order that its own labels would not choose
    turned = fold([0, 2], first.scores, [1, 0])
    chosen = choose_scores([turned, second])
    assert chosen[0] > chosen[2]  # as before: only the labels of this fold changed
    assert chosen[1] < chosen[3]
    assert choose_share([first, second], first.shares) == 0.5


def test_folds_of_two_shares_have_one_scale():
    """Spearman over both folds is that within each, though one share scores all pairs far lower."""
    first = fold([0, 1], [[2, 1], [7, 8]], [0, 1])  # its labels speak for the second share
    second = fold([2, 3], [[2, 1], [8, 9]], [1, 0])  # and these for the first
    chosen = choose_scores([first, second])
    assert chosen[0] > chosen[1] and chosen[2] < chosen[3]  # each by the share that the other fold chose
    assert sorted(chosen[:2]) == [1, 2] and sorted(chosen[2:]) == [1, 2]  # the first of equals, for both
    tied = [fold([0, 1], [[7, 8], [7, 8]], [0, 1]), fold([2, 3, 4], [[5, 5, 9], [5, 5, 9]], [0, 0, 1])]
    assert choose_scores(tied).tolist() == [7, 8, 5, 5, 9]


def test_few_scored_pairs_are_trained_on_by_mse_to_the_end_unless_the_loss_is_named(tmp_path):
    scored, binary = some_rows(100, [0, 1, 2, 3]), some_rows(100, [0, 1])
    plans = {
        "scored": plan(scored, folds="auto"),
        "binary": plan(binary, folds="auto"),
        "named": plan(scored, folds="auto", settings={"loss": "cosent"}),
        "of one": plan(scored, folds="auto", settings={"temperature": 0.1}),
        "rate": plan(scored, folds="auto", settings={"learning_rate": 3e-5}),
        "many steps": plan(scored, folds="auto", settings={"max_steps": 1501}),
        "many": plan(some_rows(1000, [0, 1, 2, 3]), folds="auto"),
        "many, folds": plan(some_rows(1000, [0, 1, 2, 3]), folds="5", dev=None),
        "no scale": plan(some_rows(100, [0, 150, 300, 500]), folds="auto"),
    }
    losses = {name: made.settings.loss for name, made in plans.items()}
    assert losses == dict.fromkeys(plans, "cosent") | {"scored": "mse", "rate": "mse", "many steps": "mse"}
    rates = {name: made.settings.learning_rate for name, made in plans.items()}
    assert rates == dict.fromkeys(plans, 1e-4) | {"scored": 5e-5, "rate": 3e-5, "many steps": 5e-5}
    folds = {name: made.cross_validation for name, made in plans.items()}
    assert folds["many"] is None
    assert folds["no scale"].selects
    assert (folds["scored"].selects, folds["scored"].untuned_start_rate) == (False, 1e-4)
    assert (folds["binary"].selects, folds["binary"].untuned_start_rate) == (True, None)
    assert folds["rate"].untuned_start_rate is None
    assert folds["many steps"].untuned_start_rate is None
    wide = tmp_path / "wide"
    wide.mkdir()
    (wide / "config.json").write_text(json.dumps({"hidden_size": 768}))
    of_wide = plan(scored, folds="auto", settings={"model": str(wide)})
    assert (of_wide.settings.loss, of_wide.settings.learning_rate) == ("mse", 5e-5)
    assert of_wide.cross_validation.untuned_start_rate == 1e-4


def test_folds_of_nli_pairs_choose_nothing_beside_in_batch_negatives():
    pairs = some_rows(90, ["contradiction", "neutral", "entailment"])
    rows = [dict(zip(("premise", "hypothesis", "label"), pair, strict=True)) for pair in pairs]
    assert not plan(rows, folds="auto").cross_validation.selects
    assert plan(rows, folds="auto", settings={"loss": "cosent"}).cross_validation.selects


@pytest.mark.parametrize("cosine", [0.2, 0.9])
def test_a_start_that_was_never_tuned_takes_a_higher_rate(tiny_trunk, tmp_path, monkeypatch, cosine):
    measure = evaluation_phase.measure
    monkeypatch.setattr(
        evaluation_phase, "measure", lambda *parts: replace(measure(*parts), cosines=np.full(10, cosine))
    )
    rows = some_rows(60, [0, 1, 2, 3])
    settings = {name: value for name, value in QUICK.items() if name != "learning_rate"}
    run = samesense.train(rows, model=str(tiny_trunk), output=tmp_path / "run", **settings)
    rate = 1e-4 if cosine == 0.9 else 5e-5
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert max(row["learning_rate"] for row in history if "learning_rate" in row) <= rate
    assert f"| learning_rate | `{rate}` |" in (run.model / "README.md").read_text(encoding="utf-8")


def test_labels_that_say_nothing_give_no_gain_out_of_fold():
    """Twenty evaluations of random scores: the best of them looks good, and the scores chosen out of fold do not."""
    best = []
    honest = []
    for seed in range(60):
        drawn = np.random.default_rng(seed)
        labels = drawn.normal(size=60)
        scores = drawn.normal(size=(20, 60))
        shares = np.arange(1, 21) / 20
        rows = [np.arange(offset, 60, 5) for offset in range(5)]
        folds = [ScoredFold(held, labels[held], shares, scores[:, held]) for held in rows]
        best.append(max(spearman(fold_scores, labels) for fold_scores in scores))
        honest.append(spearman(choose_scores(folds), labels))
    assert np.mean(best) > 0.2 > 0.07 > abs(np.mean(honest))


KINDS = {
    "binary": [0, 1],
    "graded": [0, 1, 2, 3, 4, 5],
    "nli": ["contradiction", "neutral", "entailment"],
}


MORE = [
    *((kind, {}) for kind in KINDS),
    ("graded", {"loss": "mse"}),
    ("graded", {"loss": "angle"}),
    ("binary", {"loss": "contrastive", "threshold": 0.5}),
    ("binary", {"loss": "info-nce"}),
    ("graded", {"matryoshka": (8,)}),
    ("graded", {"early_stopping_patience": 1}),
    ("graded", {"folds": "none"}),
    ("graded", {"folds": 3}),
    ("graded", {"test": "hold 0.2"}),
    ("graded", {"dev": "hold 0.3"}),
]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("nli", {"loss": "softmax"}),
        ("graded", {"encoder": "cross"}),
        ("graded", {"merge": True}),
        ("graded", {"folds": "3-mixed", "dev": "none"}),
        *(pytest.param(kind, settings, marks=pytest.mark.slow) for kind, settings in MORE),
    ],
)
def test_a_verdict_comes_without_a_flag_and_with_most(kind, settings, tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.setattr(cross_validation, "FOLDS", 2)
    rows = some_rows(240 if settings.get("folds") == "none" else 120, list(KINDS[kind]))  # a tenth of them is dev
    names = ("premise", "hypothesis", "label") if kind == "nli" else ("sentence1", "sentence2", "score")
    data = tmp_path / "some pairs.jsonl"
    data.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    run = samesense.train(data, model=str(tiny_trunk), output=tmp_path / "run", **{**QUICK, **settings})
    new_head = settings.get("encoder") == "cross"
    assert run.verdict.word in (["none"] if new_head else ["better", "no difference", "worse"])
    assert "95 % interval" in "\n".join(run.verdict.lines())
    assert run.model.is_dir() and run.to_dicts()[-1]["verdict"] == run.verdict.word


@pytest.mark.parametrize("rate", [2e-5, 0.05])
def test_few_pairs_are_scored_out_of_fold_and_kept_for_the_calibration(tiny_trunk, tmp_path, capsys, rate):
    rows = some_rows(120, [0, 1])
    messages = listen()
    settings = QUICK | {"report": True, "learning_rate": rate}
    run = samesense.train(rows, model=str(tiny_trunk), output=tmp_path / "run", **settings)
    task = run.verdict.task
    labels = [label for *_, label in rows]
    assert (task.role, task.n, task.rarer, task.trained_on) == ("out of fold", 120, min(Counter(labels).values()), 0)
    assert any(line.startswith("cross-validation: 5 trainings on parts of the 120 pairs test all") for line in messages)
    assert "`folds` none" in next(line for line in messages if line.startswith("cross-validation"))
    held_out = read_held_out(run.folder)
    assert len(set(held_out.folds)) == 5 and held_out.data.labels == labels
    figure = task.start if run.verdict.keep_reason else task.end
    assert figure == pytest.approx(spearman(held_out.scores, held_out.data.labels))
    for number in range(5):
        inside = {
            text for row, pair in enumerate(held_out.data.pairs()) if held_out.folds[row] == number for text in pair
        }
        outside = {
            text for row, pair in enumerate(held_out.data.pairs()) if held_out.folds[row] != number for text in pair
        }
        assert not inside & outside
    assert "out of fold" in (run.folder / "report.html").read_text() and "out of fold" in (
        run.model / "README.md"
    ).read_text(encoding="utf-8")
    capsys.readouterr()
    code, out, err = run_command(capsys, "calibrate", run.folder)
    assert code == 0 and "120 pairs" in err.splitlines()[0] and "95 % interval" in out.splitlines()[-1], err
    assert read_of(str(run.folder)).n == 120
    code, _, err = run_command(capsys, "calibrate", run.folder, "--columns", "a,b,c")
    assert code == 2 and "the run has kept its pairs as it read them" in err


def test_dev_pairs_choose_for_each_other(toy_pairs, tiny_trunk, tmp_path):
    train, dev = (read_pairs(toy_pairs / f"{split}.tsv") for split in ("train", "dev"))
    run = samesense.train(train, dev=dev, model=str(tiny_trunk), output=tmp_path / "run", **QUICK)
    task = run.verdict.task
    assert (task.role, task.dataset, task.n) == ("cross-fitted dev", "dev.tsv", 60)
    assert not any("dev, which selected" in line for line in run.conclusion())
    held_out = read_held_out(run.folder)
    assert held_out.data.pairs() == dev.pairs() and task.end == pytest.approx(spearman(held_out.scores, dev.labels))
    tested = samesense.train(
        train, dev=dev, test=toy_pairs / "test.tsv", model=str(tiny_trunk), output=tmp_path / "tested", **QUICK
    )
    assert tested.verdict.task.role == "test" and read_held_out(tested.folder).data.pairs() == dev.pairs()


def test_sentences_alone_are_judged_on_few_labelled_pairs(toy_pairs, sentences, tiny_trunk, tmp_path):
    settings = {"max_steps": 2, "eval_steps": 1, "batch_size": 8, "precision": "float32", "report": False}
    run = samesense.train(
        sentences, dev=toy_pairs / "dev.tsv", model=str(tiny_trunk), output=tmp_path / "run", **settings
    )
    assert run.verdict.task.role == "cross-fitted dev" and run.verdict.task.n == 60


def test_a_mixture_holds_out_enough_for_a_verdict(toy_pairs, tiny_trunk, tmp_path):
    anchors = tmp_path / "anchors.csv"
    anchors.write_text("anchor,positive\n" + "".join(f"red {number},blue {number}\n" for number in range(20)))
    sources = [str(toy_pairs / "train.tsv"), str(anchors)]
    settings = {"epochs": 1, "precision": "float32", "report": False}
    run = samesense.train(sources, model=str(tiny_trunk), output=tmp_path / "run", **settings)
    assert run.verdict.task.role == "cross-fitted dev" and run.verdict.task.n >= 24


def test_very_few_pairs_are_trained_on_and_say_the_least(tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.setattr(cross_validation, "FOLDS", 2)
    messages = listen()
    run = samesense.train(some_rows(19, [0, 1, 2]), model=str(tiny_trunk), output=tmp_path / "run", **QUICK)
    assert run.verdict.word == "none" and any(
        "19 labelled pairs are too few to hold some out" in line for line in messages
    )
    run = samesense.train(some_rows(20, [0, 1]), model=str(tiny_trunk), output=tmp_path / "twenty", **QUICK)
    assert run.verdict.task.n == 20
    with pytest.raises(DataError):
        samesense.train(some_rows(60, [1]), model=str(tiny_trunk), output=tmp_path / "one", **QUICK)


def test_many_pairs_are_not_cross_validated(tmp_path):
    many = plan(some_rows(few_examples.FEW_PAIRS, [0, 1, 2]), folds="auto")
    assert many.cross_validation is None and len(many.dev) == 200
    for count, folds in ((few_examples.FEW_PAIRS - 1, 3), (200, 3), (199, 5)):
        few = plan(some_rows(count, [0, 1, 2]), folds="auto")
        assert len(few.cross_validation.folds) == folds and few.dev is None
    assert plan(some_rows(100, [0, 1]), folds="none").cross_validation is None


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"settings": {"merge": True}}, "`merge` needs dev pairs"),
        ({"test": "hold 0.2"}, "the folds test and select by themselves"),
        ({"dev": "hold 0.2"}, "the folds test and select by themselves"),
    ],
)
def test_folds_beside_what_they_cannot_have_are_refused(options, why):
    with pytest.raises(ConfigError, match=why):
        plan(some_rows(100, [0, 1]), folds="5", **options)
    with pytest.raises(ConfigError, match="deals labelled pairs into folds, and method simcse"):
        plan(["one text", "another text"], folds="5")


def test_a_share_is_held_out_as_in_a_sweep(tmp_path):
    planned = plan(some_rows(200, [0, 1]), test="hold 0.2", dev="hold 0.25")
    assert (len(planned.test), len(planned.dev), len(planned.train)) == (40, 40, 120)
    texts = [{text for pair in data.pairs() for text in pair} for data in (planned.train, planned.dev, planned.test)]
    assert not texts[0] & texts[1] and not texts[0] & texts[2] and not texts[1] & texts[2]
    assert (parse_share("hold .5", "dev"), parse_share("dev.tsv", "dev"), parse_share(None, "dev")) == (0.5, None, None)
    for share in (0.2, "0.2", ".2", "20%"):
        with pytest.raises(ConfigError, match=r'To hold out that share: `dev` "hold 0.2"$'):
            parse_share(share, "dev")
    assert (parse_share(0.0, "dev"), parse_share("0.00", "dev")) == (None, None), "nothing to hold out"
    for wrong in ("hold", "hold 2", "hold 0.0", "hold 1"):
        with pytest.raises(ConfigError, match="test holds out a share of the training pairs below 1"):
            parse_share(wrong, "test")
    with pytest.raises(ConfigError, match="`test` holds out labelled pairs"):
        plan(["one text", "another text"], test="hold 0.2")


def test_what_was_held_out_is_kept_and_removed_with_the_run(tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.setattr(cross_validation, "FOLDS", 2)
    rows = some_rows(100, [0, 1])
    output = tmp_path / "run"
    run = samesense.train(rows, test="hold 0.3", dev="hold 0.3", model=str(tiny_trunk), output=output, **QUICK)
    assert (len(samesense.read(output / "test.tsv")), len(samesense.read(output / "dev.tsv"))) == (30, 21)
    assert run.verdict.task.role == "test"
    samesense.train(rows, model=str(tiny_trunk), output=output, overwrite=True, **QUICK)
    assert (output / "folds" / "fold-02").is_dir() and not (output / "test.tsv").exists()
    samesense.train(rows, model=str(tiny_trunk), folds="none", output=output, overwrite=True, **QUICK)
    assert not (output / "folds").exists() and (output / "dev.tsv").exists()


@pytest.mark.slow
def test_a_run_that_was_stopped_in_its_folds_goes_on(tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.setattr(cross_validation, "FOLDS", 3)
    rows = some_rows(60, [0, 1, 2])
    trained = []
    options = {"model": str(tiny_trunk), "loss": "cosent", **QUICK}
    whole = samesense.train(rows, output=tmp_path / "whole", **options)
    write = cross_validation.write_json

    def stops_at_the_third(path, content):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(path.parent.name)
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(cross_validation, "write_json", stops_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            samesense.train(rows, output=tmp_path / "run", **options)
    with pytest.raises(AnotherRunError, match="folds"):
        samesense.train(rows, output=tmp_path / "run", resume=True, folds="none", **options)
    messages = listen()
    run = samesense.train(rows, output=tmp_path / "run", resume=True, **options)
    assert trained == ["fold-01", "fold-02"]
    assert [line.split()[1] for line in messages if line.startswith("fold ")] == ["3"]
    assert run.verdict.task == whole.verdict.task
    assert (run.folder / HELD_OUT_SCORES).read_text() == (whole.folder / HELD_OUT_SCORES).read_text()


@pytest.mark.parametrize(
    ("with_test", "keep_start", "is_kept"),
    [(False, "unless-higher", True), (False, "never", False), (True, "unless-higher", True)],
)
def test_a_start_that_training_harms_is_kept(with_test, keep_start, is_kept, reader, tmp_path):
    """Reversed labels of some pairs teach the contrary of what the others test."""
    train = [(first, second, 3 - label) for first, second, label in some_rows(80, [0, 1, 2, 3])]
    dev, test = (samesense.read(some_rows(60, [0, 1, 2, 3], seed=seed)) for seed in (1, 2))
    settings = QUICK | {"model": reader, "learning_rate": HARMFUL, "keep_start": keep_start}
    parts = {"dev": dev} | ({"test": test} if with_test else {})
    run = samesense.train(samesense.read(train), output=tmp_path / "run", **parts, **settings)
    texts = [row[0] for row in some_rows(5, [0, 1])]
    start = samesense.load(reader, precision="float32").encode(texts)
    saved = samesense.load(tmp_path / "run", precision="float32").encode(texts)
    assert np.allclose(start, saved, atol=1e-5) == is_kept
    assert ("training did not raise its figure on" in run.verdict.keep_reason) == is_kept
    assert (f"kept: model/ is the start, {reader}" in str(run)) == is_kept
    card = ModelCard.load(tmp_path / "run" / "model" / "README.md")
    figures = {row.model.endswith("(before)"): row.value for row in run.results if row.metric == "spearman"}
    assert card.data.eval_results[0].metric_value == round(figures[is_kept], 6)


def shifted_start(reader, folder):
    """Save the model with a large vector added to all embeddings, so that their cosines are near 1."""
    model = build(reader, device="cpu")
    shift = np.random.default_rng(0).normal(size=model.get_embedding_dimension()) / 2
    save(append_whitening(model, Whitening(-shift, np.eye(len(shift)), 2, 0)), folder)
    return str(folder)


def trained_from_shifted(reader, folder, part):
    """Train on labels that teach the contrary of what the pairs of the verdict say."""
    harmful = [(first, second, 3 - label) for first, second, label in some_rows(80, [0, 1, 2, 3])]
    parts = {"dev": some_rows(60, [0, 1, 2, 3], seed=1)}
    if part == "test":
        parts["test"] = some_rows(60, [0, 1, 2, 3], seed=2)
    settings = QUICK | {"model": shifted_start(reader, folder / "start"), "learning_rate": HARMFUL}
    return samesense.train(harmful, output=folder / "run", **parts, **settings)


@pytest.mark.parametrize(("part", "is_better"), [("dev", True), ("dev", False), ("test", True)])
def test_a_start_that_is_kept_is_whitened_where_that_is_better(part, is_better, reader, tmp_path, monkeypatch):
    compared = standardized_start.compared
    word = "better" if is_better else "no difference"
    monkeypatch.setattr(standardized_start, "compared", lambda *sets: with_word(compared(*sets), word))
    run = trained_from_shifted(reader, tmp_path, part)
    is_whitened = part == "dev" and is_better
    assert ("it is the start whitened by 160 training texts" in run.verdict.keep_reason) == is_whitened
    texts = [row[0] for row in some_rows(80, [0, 1])]
    kept, plain = (samesense.load(tmp_path / name, precision="float32") for name in ("run", "start"))
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert ("start whitened by 160 training texts, as training by cosent was not shown to help" in card) == is_whitened
    results = read_results(tmp_path / "run" / "results.jsonl")
    assert any(row.model.endswith("(standardized)") for row in results) == is_whitened
    cosines = [float(np.corrcoef(model.encode(texts)).mean()) for model in (kept, plain)]
    assert np.allclose(*cosines) != is_whitened
    held_out = read_held_out(tmp_path / "run")
    assert held_out is None or np.allclose(held_out.scores, kept.scores(held_out.data.pairs()), atol=1e-4)


def with_word(verdict, word):
    """Return a verdict whose finding has this word."""
    return SimpleNamespace(word=word, task=verdict.task)


def test_a_map_does_not_know_the_texts_that_it_is_judged_by(reader, tmp_path):
    rows = some_rows(60, [0, 1, 2, 3])
    settings = QUICK | {"model": shifted_start(reader, tmp_path / "start"), "standardize": "mean"}
    planned = plan(rows, folds="auto", settings=settings)
    job = SimpleNamespace(data=planned.train, settings=planned.settings)
    scores = standardized_start._scores_out_of_fold(job, planned.cross_validation.folds).scores
    model = samesense.load(tmp_path / "start", precision="float32")
    for train_rows, held_rows in planned.cross_validation.folds:
        texts = dict.fromkeys(text for row in train_rows for text in rows[row][:2])
        mean = model.encode(list(texts)).mean(axis=0)
        first, second = (model.encode([rows[row][side] for row in held_rows]) - mean for side in (0, 1))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        assert np.allclose(scores[held_rows], (first * second).sum(axis=1) / lengths, atol=1e-4)


def test_a_run_killed_once_it_has_put_back_its_start_evaluates_what_it_trained(reader, tmp_path, monkeypatch):
    """Else the figures of the start would stand in the results as those of the trained model."""
    train = [(first, second, 3 - label) for first, second, label in some_rows(80, [0, 1, 2, 3])]
    parts = {name: some_rows(60, [0, 1, 2, 3], seed=seed) for name, seed in (("dev", 1), ("test", 2))}
    settings = parts | QUICK | {"model": reader, "learning_rate": HARMFUL}
    whole = samesense.train(train, output=tmp_path / "whole", **settings)
    assert whole.verdict.keep_reason and whole.verdict.task.end < whole.verdict.task.start

    with monkeypatch.context() as context:
        context.setattr(run_folder, "write_card", lambda *_: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            samesense.train(train, output=tmp_path / "killed", **settings)
    resumed = samesense.train(train, output=tmp_path / "killed", resume=True, **settings)
    assert resumed.verdict.task.end == pytest.approx(whole.verdict.task.end, abs=1e-6)
    assert resumed.verdict.keep_reason and not (tmp_path / "killed" / "refit").exists()
    texts = [row[0] for row in train[:5]]
    vectors = [samesense.load(model, precision="float32").encode(texts) for model in (reader, resumed.folder)]
    assert np.allclose(*vectors, atol=1e-5)


def test_pairs_that_were_held_out_of_few_are_trained_on_at_the_end(reader, tmp_path, monkeypatch):
    """A run that is killed once the model is replaced evaluates the selected one again, and ends as others do."""
    monkeypatch.setattr(few_examples, "FEW_PAIRS", 100)
    rows = some_rows(200, [0, 1, 2, 3])
    settings = QUICK | {"model": reader, "learning_rate": 1e-4, "keep_start": "never"}
    whole = samesense.train(rows, output=tmp_path / "whole", **settings)
    assert whole.verdict.refit == "model/ was then trained on all 200 pairs, by the same settings"
    assert "refit: model/ was then trained" in str(whole)
    assert not (tmp_path / "whole" / "refit").exists()
    texts = [row[0] for row in rows[:5]]
    once = samesense.train(rows, output=tmp_path / "once", refit=False, **settings)
    vectors = {run.folder.name: samesense.load(run.folder, precision="float32").encode(texts) for run in (whole, once)}
    assert not np.allclose(vectors["whole"], vectors["once"], atol=1e-5)
    assert (whole.verdict.task.end, once.verdict.refit) == (pytest.approx(once.verdict.task.end, abs=1e-6), "")

    write_card = run_folder.write_card

    def killed(folder, card):
        if folder.parent.name == "killed":  # else it is the one of the second training
            raise KeyboardInterrupt
        write_card(folder, card)

    with monkeypatch.context() as context:
        context.setattr(run_folder, "write_card", killed)
        with pytest.raises(KeyboardInterrupt):
            samesense.train(rows, output=tmp_path / "killed", **settings)
    assert (tmp_path / "killed" / "refit" / "selected").is_dir()
    resumed = samesense.train(rows, output=tmp_path / "killed", resume=True, **settings)
    assert resumed.verdict.task.end == pytest.approx(whole.verdict.task.end, abs=1e-6)
    assert samesense.load(resumed.folder, precision="float32").encode(texts) == pytest.approx(
        vectors["whole"], abs=1e-6
    )


@pytest.mark.parametrize(
    ("best", "last", "steps", "share"),
    [
        ("right", "reversed", 40, 0.25),  # an earlier state that is shown to be better
        ("right", "nearly right", 40, 1.0),  # better by chance
        ("right", "reversed", 50, 0.25),  # the training ended early, so that its end was not seen
        ("nearly right", "right", 40, 1.0),
    ],
)
def test_all_pairs_are_trained_to_the_end_unless_an_earlier_state_is_shown_to_be_better(
    tmp_path, best, last, steps, share
):
    labels = [float(number % 4) for number in range(60)]
    swapped = [labels[1], labels[0], *labels[2:]]
    scores = {"right": labels, "nearly right": swapped, "reversed": [-label for label in labels]}
    lines = [json.dumps({"step": step, "scores": scores[name]}) for step, name in ((10, best), (40, last))]
    (tmp_path / STEP_SCORES).write_text("\n".join(lines))
    job = SimpleNamespace(
        output=tmp_path,
        data=None,
        sets=lambda: SimpleNamespace(selecting=SimpleNamespace(labels=labels)),
        settings=SimpleNamespace(examples=lambda _: 0, steps=lambda _: steps),
    )
    assert runner._share_to_train(job, SimpleNamespace(best_step=10, steps=40)) == share
    assert runner._share_to_train(job, SimpleNamespace(best_step=None, steps=40)) == 1.0


def test_a_start_is_not_trained_again(reader, tmp_path, monkeypatch):
    monkeypatch.setattr(few_examples, "FEW_PAIRS", 100)
    rows = [
        (first, second, 3 - label) if index % 2 else (first, second, label)
        for index, (first, second, label) in enumerate(some_rows(120, [0, 1, 2, 3]))
    ]
    run = samesense.train(rows, output=tmp_path / "run", model=reader, **(QUICK | {"learning_rate": HARMFUL}))
    assert bool(run.verdict.keep_reason) != bool(run.verdict.refit)
