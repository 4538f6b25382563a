"""Training on many labelled pairs, which are mapped from a file: the same model, and little memory."""

import random
import tracemalloc

import pytest

import samesense
from samesense.data import mapped
from samesense.data.mapped import is_mapped
from samesense.data.pairs.read import read_pairs
from samesense.recipes.planning.plan import plan
from tests.conftest import WORDS


def written(path, rows, labels, words=4):
    source = random.Random(0)
    with path.open("w", encoding="utf-8") as stream:
        stream.write("sentence1\tsentence2\tlabel\n")
        for index in range(rows):
            texts = (" ".join(source.choices(WORDS, k=words)) + f" {index % (rows // 2)}" for _ in range(2))
            stream.write("\t".join([*texts, source.choice(labels)]) + "\n")
    return path


def trained(path, model, output, **overrides):
    settings = {"model": str(model), "max_steps": 3, "batch_size": 8, "precision": "float32", **overrides}
    planned = plan(str(path), settings=settings)
    run = planned.run(output)
    return planned, (run.model / "model.safetensors").read_bytes(), (output / "dev.tsv").read_bytes()


CASES = {
    "cosent": (["0", "2.5", "5"], {}),
    "label-aware": (["0", "2.5", "5"], {"batches": "label-aware"}),
    "mse": (["0", "2.5", "5"], {"loss": "mse"}),
    "softmax": (["entailment", "neutral", "contradiction"], {"loss": "softmax"}),
    "info-nce": (["entailment", "contradiction"], {"loss": "info-nce", "batches": "no-duplicates"}),
    "cross": (["0", "1"], {"encoder": "cross", "loss": "cross-entropy"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_model_is_the_same_bit_by_bit(case, tiny_trunk, tmp_path, monkeypatch):
    labels, overrides = CASES[case]
    path = written(tmp_path / "pairs.tsv", 300, labels)
    held = trained(path, tiny_trunk, tmp_path / "held", **overrides)
    monkeypatch.setattr(mapped, "MOST_IN_MEMORY", 100)
    monkeypatch.setattr(mapped, "BLOCK", 37)
    mapped_run = trained(path, tiny_trunk, tmp_path / "mapped", **overrides)
    assert is_mapped(mapped_run[0].train.sentences1) and isinstance(held[0].train.sentences1, list)
    assert mapped_run[0].lines() == held[0].lines()
    assert mapped_run[1:] == held[1:]


@pytest.mark.long
def test_three_hundred_thousand_pairs_take_little_memory(tiny_trunk, tmp_path, monkeypatch):
    """Python's own memory at its peak, from reading to the trained model, against that of the texts as lists."""
    small = written(tmp_path / "small.tsv", 300, ["0", "1", "2.5"])
    overrides = {"max_steps": 2}
    trained(small, tiny_trunk, tmp_path / "small", **overrides)  # warm-up, so that imports are not counted
    path = written(tmp_path / "pairs.tsv", 300_000, ["0", "1", "2.5"], words=30)
    pairs = read_pairs(path)
    texts = sum(text.__sizeof__() for side in (pairs.sentences1, pairs.sentences2) for text in side)
    del pairs
    monkeypatch.setattr(mapped, "MOST_IN_MEMORY", 100_000)
    tracemalloc.start()
    planned = plan(str(path), settings={"model": str(tiny_trunk), "precision": "float32", **overrides})
    planned.lines()
    planned.run(tmp_path / "many")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert is_mapped(planned.train.sentences1) and samesense.load(tmp_path / "many").embeds
    assert peak < texts / 2, (peak, texts)
