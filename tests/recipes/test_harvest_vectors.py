"""Pairs of an Origin by next words."""

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from samesense.context.origin.load import open_origin
from samesense.context.origin.word_origin import WordOrigin
from samesense.errors import ConfigError, ModelError, SamesenseError
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.harvest import recipe as recipe_of_harvest
from samesense.recipes.harvest import vectors as harvest_vectors
from samesense.recipes.harvest.recipe import harvest
from samesense.recipes.harvest.settings import HarvestSettings
from tests.context.worlds import small_worded_causal
from tests.messages import listen
from tests.recipes.harvest_world import shards
from tests.recipes.word_world import make, write_documents


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    assert make(write_documents(folder), str(small_worded_causal(folder / "causal")), folder / "o")[0]
    return folder / "o"


@pytest.mark.slow
def test_pairs_of_its_corpus_are_harvested_by_any_workers_and_after_a_stop(made, tmp_path, monkeypatch, ready_workers):
    chosen = HarvestSettings(pairs=90, shard_size=40, sentences=60)
    folder_one = tmp_path / "one"
    second = tmp_path / "two"
    summary = harvest(made, folder_one, chosen)
    assert (summary.pairs, summary.requested) == (90, {"random": 36, "neighbours": 36, "section": 18})
    with monkeypatch.context() as patch, pytest.raises(SamesenseError):
        patch.setattr(recipe_of_harvest, "parquet", lambda *_: 1 / 0)  # stopped once all sentences are read
        harvest(made, second, chosen.model_copy(update={"workers": 2}))
    with monkeypatch.context() as patch:
        patch.setattr(WordOrigin, "encode", lambda *_: 1 / 0)  # they are not read again
        harvest(made, second, chosen)
    files = [sorted((folder / "shards").iterdir()) for folder in (folder_one, second)]
    assert len(files[0]) == 3 and [f.read_bytes() for f in files[0]] == [f.read_bytes() for f in files[1]]
    rows = [row for path in files[0] for row in pq.read_table(path).to_pylist()]
    pairs = [(row["sentence1"], row["sentence2"]) for row in rows]
    origin = open_origin(made)
    np.testing.assert_allclose([row["score"] for row in rows], origin(pairs), atol=1e-4)
    assert len(set(map(frozenset, pairs))) == 90 and len({text for pair in pairs for text in pair}) <= 60
    assert {row["kind"] for row in rows if row["document1"] == row["document2"]} == {"section"}
    assert {row["document1"] == row["document2"] for row in rows if row["kind"] != "section"} == {False}
    documents = origin.corpus.documents_of(np.arange(len(origin.corpus)))
    for row in rows:
        first = int(np.flatnonzero(documents == row["document1"])[0])
        assert origin.corpus.sentence(first + row["position1"]) == row["sentence1"]


DIES = """
import os, signal, sys
from pathlib import Path
from samesense.context.origin.word_origin import WordOrigin
from samesense.recipes.harvest.recipe import harvest
from samesense.recipes.harvest.settings import HarvestSettings

read = WordOrigin.encode
def encode(self, texts):
    if list(Path(sys.argv[2]).glob("vectors/shards/*")):
        os.kill(os.getpid(), signal.SIGKILL)
    return read(self, texts)
WordOrigin.encode = encode
harvest(Path(sys.argv[1]), Path(sys.argv[2]), HarvestSettings(pairs=90, shard_size=40, sentences=60))
"""


@pytest.mark.slow
@pytest.mark.parametrize("interruption", ["killed", pytest.param("ray", marks=pytest.mark.long)])
def test_a_harvest_is_the_same_after_a_kill_and_on_a_cluster(made, tmp_path, interruption):
    chosen = HarvestSettings(pairs=90, shard_size=40, sentences=60)
    whole = tmp_path / "whole"
    interrupted = tmp_path / "other"
    harvest(made, whole, chosen)
    if interruption == "killed":
        ended = subprocess.run([sys.executable, "-c", DIES, made, interrupted], capture_output=True, check=False)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert len(shards(interrupted / "vectors")) == 1 and not (interrupted / "shards").exists()
        harvest(made, interrupted, chosen)
    else:
        pytest.importorskip("ray")
        harvest(made, interrupted, chosen.model_copy(update={"executor": "ray"}))
    assert shards(interrupted / "vectors") == shards(whole / "vectors") and len(shards(whole / "vectors")) == 2
    assert shards(interrupted) == shards(whole)


def test_a_worker_that_has_another_origin_is_refused(monkeypatch):
    monkeypatch.setattr(harvest_vectors, "open_word_origin", lambda folder, device: SimpleNamespace(identity="another"))
    with pytest.raises(ModelError, match="Every worker must have the same Origin"):
        harvest_vectors.VectorWork(Path("o"), "cpu", (0,), "one")(0)


@pytest.mark.parametrize("idle", [{"unit": 5}, {"spacings": (2, 3)}])
def test_a_harvest_of_next_words_has_no_units(made, tmp_path, idle):
    (name,) = idle
    with pytest.raises(ConfigError, match=f"{name} has no effect where contexts is words"):
        harvest(made, tmp_path / "h", HarvestSettings(pairs=90, sentences=60, **idle))
    assert not (tmp_path / "h").exists()
    with pytest.raises(ConfigError, match=f"{name} has no effect where contexts is words"):
        ContextSettings(harvest=idle)
    with pytest.raises(ConfigError, match="sentences has no effect where contexts is retrieved"):
        ContextSettings(origin_config="scaled", harvest={"sentences": 50})


def test_a_harvest_of_next_words_says_what_it_cost_and_what_is_missing(made, tmp_path):
    messages = listen()
    summary = harvest(made, tmp_path / "h", HarvestSettings(pairs=1700, shard_size=1000, sentences=60))
    message = "\n".join(messages)
    missing = summary.requested["section"] - summary.planned["section"]
    assert missing > 0 and "missing since there are no more of the kind, and not replaced: " in message
    assert f"section {missing}" in message and "units" not in message
    assert "60 sentences, " in message and " s of a worker each" in message
    assert "s of a worker a pair, beside the reading" in message
