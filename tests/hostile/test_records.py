"""Records that runs keep in JSON, with one thing changed: refused in words, or read."""

import json

import numpy as np
import pytest

from samesense.errors import SamesenseError
from samesense.files import DEEPEST, parse_json
from samesense.recipes.race.state import FILE, State
from samesense.recipes.run.run_folder import check
from samesense.recipes.stages import Stages
from samesense.recipes.sweep.cell import RECORD, read_record
from samesense.recipes.sweep.gather import PLAN, read_plan
from samesense.reports.store import read_run
from samesense.training import manifest
from samesense.training.teachers import TeacherStore
from tests.hostile.conftest import rounds
from tests.hostile.test_model_folders import changes

RUN = {
    "method": "cosent",
    "settings": {"model": "default", "seed": 1},
    "data": {"train": {"source": "t", "sha256": "0"}},
    "processes": 1,
    "versions": {"torch": "2"},
    "status": "running",
    "outcome": {"steps": 3, "seconds": 1.0},
}
STAGED = {"method": "origin", "stages": {"corpus": {"inputs": {"a": 1}, "status": "done", "summary": ["s"]}}}
RACE = {
    "identity": {"data": "0"},
    "spent": 1.5,
    "starts": [{"name": "a", "model": "m", "static": False, "speed": 1.0, "megabytes": 2.0}],
    "entrants": [],
    "brackets": [[{"n": 1}]],
    "lines": [],
    "notes": ["left out"],
    "forms": False,
    "result": None,
}
CELL = {"status": "finished", "variant": "v", "seconds": 1.0, "identity": {"tests": {}}, "error": ""}
PLANNED_CELL = {"folder": "a", "variant": "v", "dataset": "d", "seed": 1}
PLANNED = {
    "config": "mine.toml",
    "against": "v",
    "grid": {"temperature": [0.05]},
    "warnings": [],
    "skipped": [],
    "dev": {},
    "reading": {},
    "tuning": [],
    "cells": [PLANNED_CELL],
}
TEACHER = {"sentences": 2, "name": "t", "teacher": "identity"}


def open_teacher(folder):
    np.save(folder / "vectors.npy", np.zeros((2, 3), dtype=np.float16))
    return TeacherStore(folder)


KINDS = {
    "manifest": (manifest.FILE, RUN, manifest.read),
    "resumed": (manifest.FILE, RUN, lambda folder: check(folder, RUN, resume=True, overwrite=False)),
    "shown": (manifest.FILE, RUN, read_run),
    "stages": (manifest.FILE, STAGED, lambda folder: Stages(folder, {"method": "origin"}, overwrite=False)),
    "race": (FILE, RACE, lambda folder: State.open(folder, {"data": "0"})),
    "cell": (RECORD, CELL, read_record),
    "plan": (PLAN, PLANNED, read_plan),
    "teacher": ("teacher.json", TEACHER, open_teacher),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_record_is_refused_in_words_or_read(tmp_path, kind):
    name, content, read = KINDS[kind]
    path = tmp_path / name
    path.write_text(json.dumps(content))
    read(tmp_path)
    every = list(changes(tmp_path))
    refused = 0
    for number in np.random.default_rng(0).permutation(len(every))[: rounds(short=150, long=100_000)]:
        _, words, changed = every[number]
        path.write_bytes(changed)
        try:
            read(tmp_path)
        except SamesenseError as error:
            assert len(str(error)) > 20, words
            refused += 1
        except Exception as error:
            raise AssertionError(f"{kind}: {words}: {type(error).__name__}: {error}") from error
    assert refused


def test_json_is_read_as_deep_as_anyone_writes_it():
    for deep in (DEEPEST - 1, DEEPEST):
        assert parse_json("[" * deep + "]" * deep)
    for deep in (DEEPEST + 1, 900, 100_000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            with pytest.raises(ValueError, match=f"nested more than {DEEPEST} levels"):
                parse_json(opening * deep + ("1" if opening != "[" else "") + closing * deep)
