"""Interrupted builds with damaged partial vectors: the next build gives the same result as an uninterrupted one."""

import io
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from samesense.inference.collection import store, writer
from samesense.inference.collection.collection import Collection, Entry
from tests.hostile.conftest import figures, rounds
from tests.inference.made_vectors import embedder, encode

TEXTS = [f"text {number}" for number in range(50)]
ENTRIES = [Entry(text) for text in TEXTS]


def interrupted(blocks):
    """An embedder that is interrupted after some blocks."""
    left = [blocks]

    def run(texts):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return encode(texts)

    return embedder(run=run)


def flipped(draw, content):
    if not content:
        return b"?"
    index = draw.randrange(len(content))
    return content[:index] + bytes([content[index] ^ 1 << draw.randrange(8)]) + content[index + 1 :]


DAMAGES = {
    "cut": lambda draw, path: path.write_bytes(path.read_bytes()[: draw.randrange(path.stat().st_size + 1)]),
    "emptied": lambda draw, path: path.write_bytes(b""),
    "flipped": lambda draw, path: path.write_bytes(flipped(draw, path.read_bytes())),
    "removed": lambda draw, path: path.unlink(),
    "swapped": lambda draw, path: path.write_bytes(draw.choice(sorted(path.parent.iterdir())).read_bytes()),
    "noise": lambda draw, path: path.write_bytes(draw.randbytes(path.stat().st_size)),
    "left": lambda draw, path: shutil.copy(path, path.with_name(f".{path.name}.99999999-0123abcd.part")),
    "another array": lambda draw, path: path.write_bytes(array(8, draw.randint(1, 40))),
}
"""Damage that a crash, a bad disk or a user may do to a file."""


def array(*shape):
    stream = io.BytesIO()
    np.save(stream, np.zeros(shape, dtype=np.float32))
    return stream.getvalue()


def changed(change, folder, model):
    if change == "add":
        return Collection.open(folder).add(ENTRIES[1:], model)
    return Collection.build(folder, ENTRIES, model)


def scores(answers):
    return [score for hits in answers for _, score in sorted((hit.text, hit.score) for hit in hits)]


@pytest.mark.parametrize("change", ["build", "add"])
def test_the_next_change_is_what_a_whole_one_is(tmp_path, monkeypatch, change):
    monkeypatch.setattr(writer, "BLOCK_TEXTS", 8)
    outcomes = {}
    whole = Collection.build(tmp_path / "whole", ENTRIES, embedder())
    expected = whole.query(TEXTS[:5], embedder(), top=50)
    for seed in range(rounds(40, 2000)):
        draw = random.Random(seed)
        folder = tmp_path / f"C{seed}"
        if change == "add":
            Collection.build(folder, ENTRIES[:1], embedder())
        for _ in range(draw.randint(1, 2)):
            with pytest.raises(KeyboardInterrupt):
                changed(change, folder, interrupted(draw.randint(1, 3)))
            kind = draw.choice(list(DAMAGES))
            DAMAGES[kind](draw, draw.choice(sorted(filter(Path.is_file, (folder / store.UNFINISHED).rglob("*")))))
            outcomes[kind] = outcomes.get(kind, 0) + 1
        changed(change, folder, embedder())
        answers = Collection.open(folder).query(TEXTS[:5], embedder(), top=50)
        assert scores(answers) == pytest.approx(scores(expected), abs=1e-6), (seed, kind)
        assert not (folder / store.UNFINISHED).exists(), (seed, kind)
        shutil.rmtree(folder)
    figures(f"damaged vectors of a stopped {change}", outcomes)
