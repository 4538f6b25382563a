import numpy as np
import pytest

from samesense.evaluation.classifier import cross_predict, split_folds
from tests.references.senteval_probe import by_dev


def data(n, classes=2, dim=24, seed=0):
    source = np.random.default_rng(seed)
    x = source.normal(size=(n, dim)).astype(np.float32)
    centres = np.random.default_rng(9).normal(size=(dim, classes)) / 4
    return x, (x @ centres + 0.6 * source.normal(size=(n, classes))).argmax(axis=1)


def accuracy(x, y, folds):
    predicted, _ = cross_predict(x, y, folds)
    return 100 * np.mean([(predicted[fold.test] == y[fold.test]).mean() for fold in folds])


@pytest.mark.slow
def test_parts_agree_with_sentevals_classifier():
    x, y = data(8500, classes=3)
    train, dev, test = np.split(np.arange(len(x)), [2000, 2500])
    final, _ = by_dev(x[train], y[train], (x[dev], y[dev]))
    theirs = 100 * final.score(x[test], y[test])
    assert abs(accuracy(x, y, split_folds(y, (2000, 500, 6000), 2)) - theirs) < 0.5
    assert 70 < theirs < 95
