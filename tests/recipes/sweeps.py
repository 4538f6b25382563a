"""A small sweep over pairs, for the tests of each of its parts."""

from samesense.recipes.sweep.file import SweepFile
from samesense.recipes.sweep.plan import make_plan


def entry(folder, **fields):
    files = {split: str(folder / f"{split}.tsv") for split in ("train", "dev", "test")}
    return {"name": "toy", **files, **fields}


def content(trunk, folder, **overrides):
    base = {"model": str(trunk), "learning_rate": 2e-3, "max_steps": 6, "eval_steps": 2, "precision": "float32"}
    return {"seeds": [1, 2], "base": base, "grid": {"temperature": [0.05, 0.1]}, "data": [entry(folder)], **overrides}


def quick(toy, **overrides):
    return make_plan(SweepFile(**{**toy, **overrides}))
