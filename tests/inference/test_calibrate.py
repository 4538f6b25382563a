import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from samesense.data.pairs.data import concat
from samesense.data.pairs.folds import fold_numbers
from samesense.errors import ConfigError, DataError
from samesense.inference.calibration.calibration import Calibration, Isotonic, Logistic, fit_isotonic, fit_logistic
from samesense.inference.calibration.cross_validation import read_as_share
from samesense.inference.calibration.fit import CalibrationSettings, calibrate
from samesense.metrics import best_threshold, f1_at, precision_at, recall_at
from samesense.metrics.guarantee import share_lower_bound
from samesense.recipes.held_out.scores import HeldOutScores, write_held_out
from tests.inference.made_labelled import binary, graded, labelled, reader
from tests.references import calibration as reference

SCALE = (0.0, 5.0)
OUTSIDE = np.array([-50.0, -1.0, 1.0000001, 3.0, 50.0])


@pytest.mark.parametrize("digits", [1, 2, 9])
def test_isotonic_is_that_of_scikit_learn_and_of_plain_loops(digits):
    scores, labels = graded(2000, digits)
    fitted = fit_isotonic(scores, labels, SCALE)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    inputs = np.concatenate([scores, np.linspace(-0.5, 1.5, 999), OUTSIDE])
    np.testing.assert_allclose(fitted(inputs), theirs.predict(inputs), atol=1e-12)
    looped = reference.isotonic(scores.tolist(), labels.tolist())
    np.testing.assert_allclose(fitted(scores), [looped[score] for score in scores.tolist()], atol=1e-9)


def platt(scores, labels):
    """Slope and intercept by a general minimiser of the cross-entropy with Platt's targets."""
    positives, negatives = labels.sum(), (1 - labels).sum()
    targets = np.where(labels == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))

    def loss(weights):
        odds = weights[0] * scores + weights[1]
        return (np.logaddexp(0, odds) - targets * odds).mean()

    return minimize(loss, [1.0, 0.0], method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize("digits", [1, 9])
def test_logistic_is_platts(digits):
    scores, labels = binary(1500, digits)
    fitted = fit_logistic(scores, labels, (0, 1))
    np.testing.assert_allclose([fitted.slope, fitted.intercept], platt(scores, labels), rtol=1e-4)
    assert fitted(scores).mean() == pytest.approx(labels.mean(), abs=1e-3)


def test_logistic_of_scores_that_tell_everything_apart_is_finite():
    scores = np.linspace(0, 1, 200)
    fitted = fit_logistic(scores, (scores > 0.5).astype(float), (0, 1))
    assert np.isfinite(fitted.slope)
    assert 0 < fitted(np.array([0.0]))[0] < 0.01
    assert 0.99 < fitted(np.array([1.0]))[0] < 1


def test_logistic_counts_labels_between_the_ends_in_part():
    """A label of 2 on 0-5 is as two yeses and three noes of the same score."""
    scores, labels = graded(3000, 2)
    labels = np.round(labels)
    fitted = fit_logistic(scores, labels, SCALE)
    many = np.repeat(scores, 5)
    each = (np.tile(np.arange(5), len(scores)) < np.repeat(labels, 5)).astype(float)
    unrolled = fit_logistic(many, each, (0, 1))
    np.testing.assert_allclose(fitted(scores), 5 * unrolled(scores), atol=0.006)  # drawn in from the ends a little less


@pytest.mark.parametrize("fit", [fit_isotonic, fit_logistic])
@pytest.mark.parametrize("digits", [1, 9])
def test_maps_never_fall_and_stay_on_the_scale_outside_what_was_seen(fit, digits):
    fitted = fit(*graded(400, digits), SCALE)
    values = fitted(np.concatenate([OUTSIDE[:2], np.linspace(-0.5, 1.5, 5000), OUTSIDE[3:]]))
    assert (np.diff(values) >= 0).all()
    assert values.min() >= 0
    assert values.max() <= 5
    assert values[-1] > values[0]


@pytest.mark.parametrize("fit", [fit_isotonic, fit_logistic])
def test_labels_that_do_not_rise_are_refused(fit):
    scores, labels = graded()
    for falling in (5 - labels, np.where(np.arange(600) % 2 == 0, 2.0, 2.0)):
        with pytest.raises(DataError, match="labels that rise with the model's scores"):
            fit(scores, falling, SCALE)


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Isotonic((0.0, 0.0), (1.0, 2.0)),
        lambda: Isotonic((0.0, 1.0), (2.0, 1.0)),
        lambda: Isotonic((0.0,), (1.0,)),
        lambda: Isotonic((0.0, 1.0, 2.0), (1.0, 2.0)),
        lambda: Isotonic((0.0, float("nan")), (1.0, 2.0)),
        lambda: Logistic(-1.0, 0.0, 0.0, 1.0),
        lambda: Logistic(1.0, float("inf"), 0.0, 1.0),
        lambda: Logistic(1.0, 0.0, 1.0, 1.0),
    ],
)
def test_maps_that_are_none_cannot_be_made(broken):
    with pytest.raises(ValueError, match=r"knots must be finite|a logistic map must rise"):
        broken()


def test_kind_of_labels_decides_the_map_and_an_option_overrules():
    graded_data, yes_no = labelled(*graded()), labelled(*binary(), kind="binary", scale=(0.0, 1.0))
    assert isinstance(calibrate(reader(), graded_data, "f").calibration.map, Isotonic)
    assert isinstance(calibrate(reader(), yes_no, "f").calibration.map, Logistic)
    assert isinstance(
        calibrate(reader(), graded_data, "f", CalibrationSettings(shape="logistic")).calibration.map, Logistic
    )
    assert isinstance(calibrate(reader(), yes_no, "f", CalibrationSettings(shape="isotonic")).calibration.map, Isotonic)


def test_thresholds_are_the_best_and_the_option_says_which_holds():
    scores, labels = binary()
    calibration = calibrate(
        reader(), labelled(scores, labels, "binary", (0.0, 1.0)), "f", CalibrationSettings(decide="f1")
    ).calibration
    assert calibration.thresholds == {target: best_threshold(scores, labels, target) for target in ("accuracy", "f1")}
    assert calibration.thresholds["accuracy"] != calibration.thresholds["f1"]
    assert (calibration.says_yes(scores) == (scores >= calibration.thresholds["f1"])).all()
    assert (calibration.says_yes(scores, "accuracy") == (scores >= calibration.thresholds["accuracy"])).all()
    (decision,) = calibration.says_yes(np.array([calibration.thresholds["f1"]]))
    assert decision


def decided(scores, right, folds, fit_threshold):
    """What is called a yes in each fold at the threshold of the others."""
    decisions = np.empty_like(scores)
    for fold in np.unique(folds):
        held = folds == fold
        decisions[held] = scores[held] >= fit_threshold(scores[~held], right[~held])
    return decisions


def test_graded_labels_have_a_threshold_only_if_someone_says_what_a_yes_is():
    scores, labels = graded()
    without = calibrate(reader(), labelled(scores, labels), "f").calibration
    assert (without.yes, without.thresholds) == (None, {})
    assert "accuracy" not in without.errors
    with pytest.raises(ConfigError, match=r"made.tsv has graded labels.*`yes` 2.5"):
        without.says_yes(scores)
    calibration = calibrate(reader(), labelled(scores, labels), "f", CalibrationSettings(yes=3)).calibration
    right = (labels >= 3).astype(float)
    assert calibration.thresholds["f1"] == best_threshold(scores, right, "f1")
    folds = fold_numbers(labelled(scores, labels), 5, 0)[0]
    called = decided(scores, right, folds, lambda s, y: best_threshold(s, y, "accuracy"))
    assert calibration.errors["accuracy"] == pytest.approx(np.mean(called == right))


def test_where_one_answer_for_all_is_best_the_threshold_still_divides_and_it_is_said(caplog):
    """Such a calibration had no threshold, and each later command that needed one failed."""
    random = np.random.default_rng(0)
    scores = np.concatenate([random.uniform(0, 1, 500), random.uniform(0.5, 0.9, 20)])
    labels = np.repeat([0.0, 1.0], [500, 20])
    assert np.isinf(best_threshold(scores, labels, "accuracy"))
    calibration = calibrate(reader(), labelled(scores, labels, "binary", (0.0, 1.0)), "f").calibration
    assert [line for line in caplog.messages if "to call every pair a no has a better accuracy" in line]
    assert set(calibration.thresholds) == {"accuracy", "f1"}
    for name in calibration.thresholds:
        assert 0 < calibration.says_yes(scores, name).sum() < 520
    with pytest.raises(ConfigError, match=r"no threshold for recall\. Ask for accuracy or f1, or calibrate again"):
        calibration.says_yes(scores, "recall")


def test_errors_come_from_folds_that_did_not_see_the_pair():
    """Scores that say nothing of labels: in sample an isotonic map looks good, held out it does not."""
    random = np.random.default_rng(1)
    scores, labels = random.uniform(0, 1, 400), random.integers(0, 2, 400).astype(float)
    labels[np.argsort(scores)[-3:]], labels[np.argsort(scores)[:3]] = 1, 0
    settings = CalibrationSettings(shape="isotonic")
    result = calibrate(reader(), labelled(scores, labels, "binary", (0.0, 1.0)), "f", settings)
    inside = ((result.calibration.apply(scores) - labels) ** 2).mean()
    assert result.calibration.errors["brier"] == pytest.approx(((result.held_out - labels) ** 2).mean())
    assert result.calibration.errors["brier"] > inside + 0.005
    folds = fold_numbers(labelled(scores, labels), 5, 0)[0]
    for fold in range(5):
        held = folds == fold
        theirs = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(scores[~held], labels[~held])
        np.testing.assert_allclose(result.held_out[held], theirs.predict(scores[held]), atol=1e-12)


@pytest.mark.parametrize("decided_by", ["accuracy", "f1"])
def test_decisions_are_judged_on_folds_that_did_not_fit_their_threshold(decided_by):
    scores, labels = binary(300)
    data = labelled(scores, labels, "binary", (0.0, 1.0))
    errors = calibrate(reader(), data, "f", CalibrationSettings(decide=decided_by)).calibration.errors
    folds = fold_numbers(data, 5, 0)[0]
    called = partial(decided, scores, labels, folds)
    by = {target: called(lambda s, y, metric=target: best_threshold(s, y, metric)) for target in ("accuracy", "f1")}
    assert errors["accuracy"] == pytest.approx(np.mean(by["accuracy"] == labels))
    assert errors["f1"] == pytest.approx(f1_at(by["f1"], labels, 0.5))
    assert errors["precision"] == pytest.approx(precision_at(by[decided_by], labels, 0.5))
    assert errors["recall"] == pytest.approx(recall_at(by[decided_by], labels, 0.5))


@pytest.mark.parametrize("name", ["precision", "recall"])
def test_a_promise_is_kept_out_of_fold_with_its_lower_bound(name):
    scores, labels = binary(2000)
    settings = CalibrationSettings(**{f"min_{name}": 0.85})
    result = calibrate(reader(), labelled(scores, labels, "binary", (0.0, 1.0)), "f", settings)
    calibration = result.calibration
    assert calibration.decide == name
    yes = (
        (scores >= calibration.threshold())[labels == 1]
        if name == "recall"
        else labels[scores >= calibration.threshold()]
    )
    assert yes.mean() > 0.85
    assert calibration.errors[name] > 0.85
    assert share_lower_bound([calibration.errors[name] * len(yes)], [len(yes)])[0] >= 0.84  # in fold and out of it
    assert f"on new pairs its {name} is 85 % or more, with 95 % confidence" in str(result)
    assert all(0.5 <= least <= 0.95 for least, _ in calibration.precisions)
    for least, threshold in calibration.precisions:
        assert labels[scores >= threshold].mean() > least


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_precision": 0.95}, r"no threshold keeps a precision of 95 % or more on new pairs with 95 % confidence"),
        ({"min_precision": 1.0}, r"No number of pairs shows 100 %"),
        ({"min_recall": 1.0}, r"ask for `min_recall` 0\.9\d"),
    ],
)
def test_a_promise_that_the_pairs_do_not_show_is_refused_with_what_they_show(changes, message):
    scores, labels = binary(300)
    data = labelled(scores, labels, "binary", (0.0, 1.0))
    with pytest.raises(DataError, match=message) as refused:
        calibrate(reader(), data, "f", CalibrationSettings(**changes))
    name, least = re.search(r"ask for `min_(\w+)` ([\d.]+)\.", str(refused.value)).groups()
    calibration = calibrate(reader(), data, "f", CalibrationSettings(**{f"min_{name}": float(least)})).calibration
    assert calibration.errors[name] > calibration.least == float(least)


def test_how_many_labels_a_promise_needs_is_about_right():
    scores, labels = binary(300)
    labels[scores > 0.7] = 1
    with pytest.raises(DataError) as refused:
        calibrate(
            reader(), labelled(scores, labels, "binary", (0.0, 1.0)), "f", CalibrationSettings(min_precision=0.98)
        )
    needed = int(re.search(r"About ([\d,]+) pairs like these", str(refused.value))[1].replace(",", ""))
    assert 350 < needed < 3000
    many, theirs = binary(needed, seed=1)
    theirs[many > 0.7] = 1
    calibrate(reader(), labelled(many, theirs, "binary", (0.0, 1.0)), "f", CalibrationSettings(min_precision=0.98))


def test_labels_that_say_nothing_promise_no_precision():
    random = np.random.default_rng(0)
    for _ in range(20):
        scores, labels = random.uniform(size=200), random.integers(0, 2, 200).astype(float)
        labels[np.argsort(scores)[-10:]] = 1  # as luck has it
        with pytest.raises(DataError, match=r"no threshold keeps a precision of 80 %|labels that rise"):
            calibrate(
                reader(), labelled(scores, labels, "binary", (0.0, 1.0)), "f", CalibrationSettings(min_precision=0.8)
            )


def test_calibration_mends_what_it_should():
    scores, labels = graded(3000)
    calibrated = calibrate(reader(), labelled(scores, labels), "f")
    errors = {result.metric: result.value for result in calibrated.results}
    assert errors["ece"] < 0.2 < errors["ece_before"]
    assert errors["mae"] < errors["mae_before"]
    np.testing.assert_allclose(calibrated.before, 5 * np.clip(scores, 0, 1))
    assert all(result.n == 3000 and "5-fold cross-validation" in result.protocol for result in calibrated.results)


def test_logits_are_calibrated_and_have_no_error_before():
    scores, labels = binary()
    data = labelled(scores, labels, "binary", (0.0, 1.0))
    wide = calibrate(reader(lambda score: 20 * score - 10), data, "f")
    assert wide.before is None
    assert set(wide.calibration.errors) == {"ece", "brier", "accuracy", "f1", "precision", "recall"}
    plain = calibrate(reader(), data, "f")
    np.testing.assert_allclose(wide.held_out, plain.held_out, atol=1e-5)
    assert read_as_share(np.array([-1.0, 0.4, 1.0]), (0.0, 5.0)).tolist() == [0, 2, 5]


def test_folds_are_alike_keep_a_pair_together_and_ignore_the_order_of_rows():
    scores, labels = binary(500)
    once = labelled(scores, labels)
    subset = once.take(range(100))
    spelled = replace(
        subset, sentences1=[f"{text.upper()}." for text in subset.sentences2], sentences2=subset.sentences1
    )
    twice = concat([once, spelled])
    folds, apart = fold_numbers(twice, 5, 3)
    assert apart == "sentences"
    assert folds[500:].tolist() == folds[:100].tolist()
    shares = [labels[:500][folds[:500] == fold].mean() for fold in range(5)]
    assert max(shares) - min(shares) < 0.03
    order = np.random.default_rng(0).permutation(600)
    again = fold_numbers(twice.take(order), 5, 3)[0]
    assert again.tolist() == folds[order].tolist()
    assert fold_numbers(twice, 5, 4)[0].tolist() != folds.tolist()


@pytest.mark.parametrize(
    ("data", "changes", "error", "message"),
    [
        (labelled(*graded(49)), {}, DataError, r"these are 49\. Give more labelled pairs .*: `data` FILE"),
        (labelled(*graded(), scale=None), {}, ConfigError, "`label_range` 0 5"),
        (labelled(*graded()), {"yes": 5.5}, DataError, "0 are a yes and 600 a no"),
        (labelled(*graded()), {"yes": 0.0}, DataError, "600 are a yes and 0 a no"),
        (labelled(np.linspace(0, 1, 60), np.arange(60) > 50, "binary", (0.0, 1.0)), {}, DataError, "9 are a yes"),
        (labelled(np.linspace(0, 1, 60), np.ones(60), "binary", (0.0, 1.0)), {}, DataError, "60 are a yes and 0 a no"),
        (labelled(np.linspace(0, 1, 60), np.full(60, 3.0)), {}, DataError, "labels that rise"),
        (labelled(np.full(600, 0.5), graded()[1]), {}, DataError, "scores that differ; the model gives 0.5"),
        (labelled([*graded(599)[0], float("nan")], graded()[1]), {}, DataError, r"scores\[599\] is nan"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(data, changes, error, message):
    with pytest.raises(error, match=message):
        calibrate(reader(), data, "f", CalibrationSettings(**changes))


@pytest.mark.parametrize("folds", [0, 1, 11])
def test_numbers_of_folds_that_make_no_sense(folds):
    with pytest.raises(ConfigError, match=f"2 to 10 folds; received {folds}"):
        CalibrationSettings(folds=folds)


def test_scores_that_are_not_finite_have_no_value():
    calibration = calibrate(reader(), labelled(*graded()), "f", CalibrationSettings(yes=3)).calibration
    for use in (calibration.apply, calibration.says_yes):
        with pytest.raises(DataError, match=r"scores\[1\] is nan"):
            use(np.array([0.5, float("nan")]))
    assert isinstance(calibration, Calibration)


def test_use_needs_numpy_only():
    code = """
import sys
import numpy as np
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.calibration.calibration import Isotonic
made = Calibration(map=Isotonic((0.0, 1.0), (0.0, 5.0)), scale=(0.0, 5.0), yes=3.0, thresholds={"f1": 0.5}, decide="f1",
                   data="", sha256="", n=1, protocol="", fingerprint="", errors={})
print(made.apply(np.array([0.5])).tolist(), made.says_yes(np.array([0.5])).tolist())
print([name for name in ("torch", "sklearn", "scipy", "sentence_transformers", "pyarrow") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[2.5] [True]", "[]"]


def test_scores_that_a_run_has_kept_are_calibrated_without_torch(tiny_trunk, tmp_path):
    scores, labels = graded(200)
    pairs = labelled(scores, labels)
    (tmp_path / "manifest.json").write_text("{}")
    shutil.copytree(tiny_trunk, tmp_path / "model")
    write_held_out(tmp_path, HeldOutScores(pairs, scores, [0] * len(pairs), "cosine"))
    code = """
import sys
import samesense
print(samesense.calibrate(sys.argv[1]).calibration.n, "torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{len(pairs)} False\n"
