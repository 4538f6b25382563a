"""Learning curves: the power law, its twin, and how often its band holds the truth."""

import numpy as np
import pytest

from samesense.errors import DataError
from samesense.metrics import power_law as module
from samesense.metrics.power_law import EXPONENTS, fit_learning_curve, power_laws
from samesense.metrics.significance import resampled_statistics
from tests.references.power_law import power_law

ROWS = np.array([1000, 125, 125, 125, 125, 250, 250, 500])


def test_a_law_without_noise_is_found_and_goes_on():
    sizes = ROWS / 1000
    exponent = EXPONENTS[20]
    limit, factor, fitted_exponent = power_laws(sizes, (0.9 - 0.1 * sizes**-exponent)[None])[0]
    assert (limit, factor, fitted_exponent) == pytest.approx((0.9, 0.1, exponent))


def test_every_fit_equals_its_twin():
    figures = 0.8 + 0.2 * np.random.default_rng(0).normal(size=(20, len(ROWS)))  # some fits have a limit above 1
    laws = power_laws(ROWS / 1000, figures)
    for row, law in zip(figures, laws, strict=True):
        assert law == pytest.approx(power_law(ROWS.tolist(), row.tolist(), EXPONENTS), abs=1e-9)
    assert laws[:, 0].max() == 1.0


def made(seed, pairs=300):
    """Return scores that approach the labels by a power law, with independent noise for each model."""
    source = np.random.default_rng(seed)
    labels = source.normal(size=pairs)
    shared = source.normal(size=pairs)
    scores = [labels + (0.4 + 0.3 * (n / 1000) ** -0.4) * (shared + 0.5 * source.normal(size=pairs)) for n in ROWS]
    return np.stack(scores), labels


def test_the_band_holds_what_twice_the_rows_give():
    inside = 0
    widths = []
    for seed in range(20):
        scores, labels = made(seed)
        twice = fit_learning_curve(ROWS, scores, labels, samples=200).predict(2000, less=1000)
        assert twice.low <= twice.high
        inside += twice.low <= 0.0326 <= twice.high  # the gain on 400,000 pairs
        widths.append(twice.high - twice.low)
    assert inside >= 16
    assert np.mean(widths) < 0.045  # an infinite band would hold it too


def test_a_resample_adds_a_residual_widened_for_the_parameters(monkeypatch):
    (scores, labels), fitted = made(2), []
    monkeypatch.setattr(
        module, "power_laws", lambda sizes, figures: fitted.append(figures) or power_laws(sizes, figures)
    )
    curve = fit_learning_curve(ROWS, scores, labels, samples=40)
    noise = fitted[1] - resampled_statistics(list(scores), labels, "spearman", 40, 0).T
    limit, factor, exponent = curve.law
    residuals = curve.figures - (limit - factor * (ROWS / 1000) ** -exponent)
    wide = residuals * np.sqrt(8 / 5)  # 8 models, 3 parameters
    assert np.abs(noise[..., None] - wide).min(axis=-1).max() < 1e-12
    assert len(np.unique(noise.round(9))) == 8


def test_the_band_of_a_gain_is_that_of_differences():
    curve = fit_learning_curve(ROWS, *made(2), samples=40)
    limit, factor, exponent = curve.resampled.T
    larger, less = (limit - factor * (rows / 1000) ** -exponent for rows in (2000, 1000))
    twice = curve.predict(2000, less=1000)
    assert (twice.low, twice.high) == pytest.approx(np.quantile(larger - less, [0.025, 0.975]))


def test_the_same_again_and_the_figures_are_those_of_the_models():
    scores, labels = made(1)
    first, again = (fit_learning_curve(ROWS, scores, labels, samples=50) for _ in range(2))
    assert first.predict(2000) == again.predict(2000)
    ranks = np.argsort(np.argsort(labels))
    expected = np.corrcoef(np.argsort(np.argsort(scores[0])), ranks)[0, 1]
    assert first.figures[0] == pytest.approx(expected)


@pytest.mark.parametrize(("rows", "why"), [([1, 2, 3], "4 models"), ([1, 1, 2, 2], "3 sizes")])
def test_too_few_models_are_refused(rows, why):
    scores, labels = made(0)
    with pytest.raises(DataError, match=why):
        fit_learning_curve(rows, scores[: len(rows)], labels)


def test_constant_scores_are_refused():
    scores, labels = made(0)
    scores[3] = 1.0
    with pytest.raises(DataError, match="undefined"):
        fit_learning_curve(ROWS, scores, labels)
