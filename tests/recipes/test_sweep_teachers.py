"""The key of a cell with teachers depends on their content, not on their path or cache."""

import shutil

import numpy as np
import pytest

from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.sweep.file import SweepFile
from samesense.recipes.sweep.identity import deciding
from samesense.recipes.sweep.plan import make_plan


@pytest.fixture
def keys(tiny_trunk, toy_pairs):
    def found(**settings):
        file = SweepFile(
            seeds=(1,),
            base={"method": "rankcse", "model": str(tiny_trunk), "pooling": "mean", **settings},
            data=(
                {
                    "name": "toy",
                    "train": str(toy_pairs / "train.tsv"),
                    "dev": "none",
                    "test": str(toy_pairs / "test.tsv"),
                },
            ),
        )
        return make_plan(file).cells[0].key

    return found


def test_place_and_numbers_of_the_cache_and_the_place_of_a_teacher(keys, tiny_trunk, tmp_path):
    key_before = keys(teacher=[str(tiny_trunk)])
    shutil.copytree(tiny_trunk, tmp_path / "moved")
    assert keys(teacher=[str(tmp_path / "moved")], teacher_cache="elsewhere", teacher_dtype="float32") == key_before
    assert keys(teacher=[str(tiny_trunk)], tau2=0.1) != key_before
    assert keys(teacher=[str(tiny_trunk) + "+whiten"]) != key_before
    (tmp_path / "moved" / "more.json").write_text("{}")
    assert keys(teacher=[str(tmp_path / "moved")]) != key_before


def test_vectors_count_by_their_content(keys, tmp_path):
    for name, value in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "known.npy", np.full((2, 3), value, dtype=np.float32))
        (tmp_path / name / "known.txt").write_text("one\ntwo\n")
    a, b, c = (keys(teacher=[f"vectors:{tmp_path / name / 'known.npy'}"]) for name in "abc")
    assert a == b != c
    (tmp_path / "b" / "known.txt").write_text("two\none\n")
    assert keys(teacher=[f"vectors:{tmp_path / 'b' / 'known.npy'}"]) != a


def test_a_guide_counts_by_its_content(tiny_trunk, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(tiny_trunk, moved)
    before = deciding(SupmpnSettings(loss="gist", guide=str(tiny_trunk)), {})
    assert deciding(SupmpnSettings(loss="gist", guide=str(moved), teacher_cache="elsewhere"), {}) == before
    (moved / "more.json").write_text("{}")
    assert deciding(SupmpnSettings(loss="gist", guide=str(moved)), {}) != before
