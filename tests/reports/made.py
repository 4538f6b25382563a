"""Small evaluations that reports are tested on."""

import numpy as np

from samesense.types import Evidence, Result


def result(model, value, *, dataset="one.test", metric="spearman", task="sts", **changes):
    names = {"split": "test", "subset": "all", "n": 10, "protocol": f"cosine of {model}"}
    return Result(task=task, dataset=dataset, metric=metric, model=model, value=value, **{**names, **changes})


def evidence(model, values, labels=None, *, dataset="one.test", metric="spearman", task="sts", seed=None, pairs=None):
    values = np.asarray(values, dtype=float)
    return Evidence(
        task=task,
        dataset=dataset,
        metric=metric,
        model=model,
        statistic="mean" if labels is None else "spearman",
        values=values,
        labels=None if labels is None else np.asarray(labels, dtype=float),
        examples=pairs or [(f"first {index} of {dataset}", f"second {index}") for index in range(len(values))],
        seed=seed,
    )


def scored(n=60, seed=0, noise=(0.5, 0.6, 3.0), dataset="one.test"):
    """Results and evidence of models a, b (much alike) and c (worse) on ratings 0 to 5 in steps of a half."""
    from scipy.stats import spearmanr

    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 11, n) / 2
    results = []
    behind = []
    for model, spread in zip("abc", noise, strict=True):
        values = np.tanh((labels - 2.5 + spread * rng.normal(size=n)) / 4)
        results.append(result(model, float(spearmanr(values, labels).statistic), dataset=dataset, n=n))
        behind.append(evidence(model, values, labels, dataset=dataset))
    return results, behind
