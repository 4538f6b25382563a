"""Near-duplicates found by many workers: those of one process to the pair, whatever dies on the way."""

import json
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import samesense
from samesense.errors import ConfigError, DataError, OutputError
from samesense.inference.duplicates import link_shards, vector_shards
from samesense.inference.duplicates import work as work_module
from samesense.inference.duplicates.link_shards import (
    LinksWork,
    ListFiles,
    ListsWork,
    Matrix,
    Rows,
)
from samesense.inference.duplicates.links import list_search
from samesense.inference.duplicates.vector_shards import SHARDED
from samesense.inference.models.load import load
from samesense.inference.search import lists
from tests.encoder.test_routes import prompted
from tests.inference.dedup_world import STAGES, make, search, tasks, world

pytestmark = pytest.mark.usefixtures("ready_workers")

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """Sizes of shards are as before after each test."""
    monkeypatch.setattr(vector_shards, "BLOCK_TEXTS", vector_shards.BLOCK_TEXTS)
    for module, names in ((link_shards, ("ROWS_A_SHARD", "RANGE_PAIRS")), (lists, ("BLOCK_ROWS", "RANGE_PAIRS"))):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name))


@pytest.fixture
def place(tmp_path):
    world(tmp_path / "world")
    return tmp_path / "world"


def same(result, expected):
    """Check that two results are the same to the last bit."""
    assert np.array_equal(result.kept_by, expected.kept_by)
    assert np.array_equal(result.scores, expected.scores)
    assert (result.recall, result.sampled) == (expected.recall, expected.sampled)


def same_links(work, expected):
    """Check that two work folders have the same vectors and links, from which groups and matches follow."""
    assert (work / "vectors.bin").read_bytes() == (expected / "vectors.bin").read_bytes()
    with np.load(work / "links.npz") as links, np.load(expected / "links.npz") as expected_links:
        assert set(links) == set(expected_links)
        assert len(links["first"]) > 100
        for name in links:
            assert np.array_equal(links[name], expected_links[name]), name


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("seed", "by", "workers"),
    [(0, "representative", 1), (1, "linked", 1), pytest.param(2, "representative", 2, marks=pytest.mark.slow)],
)
def test_many_workers_find_what_one_process_finds(seed, by, workers, tmp_path):
    world(tmp_path / "world", seed=seed)
    for threshold in (0.95, 0.85):
        one, many = tmp_path / f"one-{threshold}", tmp_path / f"many-{threshold}"
        expected = search(tmp_path / "world", one, threshold=threshold, by=by)
        result = make(tmp_path / "world", many, workers=workers, threshold=threshold, by=by)
        assert 100 < len(expected.kept) < 2900
        same(result, expected)
        assert names(many) == names(one) == [".lock", "about.json", "links.npz", "vectors.bin"]
        same_links(many, one)
        with np.load(many / "links.npz") as links:
            assert (links["beyond"] > -1).any()
        same(result.with_threshold(threshold + 0.03), expected.with_threshold(threshold + 0.03))
        # One process goes on with the folder of many.
        same(
            search(tmp_path / "world", many, threshold=threshold + 0.03, by=by),
            expected.with_threshold(threshold + 0.03),
        )
    done = tasks(tmp_path / "world")
    for stage, least in (("EncodeWork", 6), ("ListsWork", 6), ("LinksWork", 5)):
        assert sum(line.startswith(stage) for line in done) >= 2 * least


def test_a_lower_threshold_is_searched_by_the_workers_again(place, tmp_path, monkeypatch):
    # As if it were killed after the links were written, and before their shards were removed.
    with monkeypatch.context() as patched:
        patched.setattr(work_module, "remove_shards", lambda folder: None)
        make(place, tmp_path / "many", threshold=0.95)
    assert SHARDED in names(tmp_path / "many")
    result = make(place, tmp_path / "many", threshold=0.95)
    same(result.with_threshold(0.7), search(place, tmp_path / "one", threshold=0.95).with_threshold(0.7))
    assert len([line for line in tasks(place) if line.startswith("LinksWork 0")]) == 2


def test_texts_of_a_model_are_the_same_by_shards(tiny_trunk, sentences, tmp_path):
    texts = [*sentences, *(f"{text} walks" for text in sentences), " ".join(sentences)]
    options = {"model": str(tiny_trunk), "threshold": 0.97, "search": "approximate", "precision": "float32"}
    for chunk in (None, "mean"):
        one, many = tmp_path / f"one-{chunk}", tmp_path / f"many-{chunk}"
        expected = samesense.dedup(texts, work=one, chunk=chunk, **options)
        result = samesense.dedup(texts, work=many, chunk=chunk, workers=1, **options)
        assert np.array_equal(result.kept_by, expected.kept_by)
        assert result.scores == pytest.approx(expected.scores, abs=1e-6)


EVERY_STAGE = [pytest.param(stage, marks=pytest.mark.slow if stage != "links" else ()) for stage in STAGES]


@pytest.mark.posix
@pytest.mark.parametrize("stage", EVERY_STAGE)
def test_a_worker_that_dies_costs_its_task(stage, place, tmp_path):
    expected = search(place, tmp_path / "one")
    (place / "dies-now").write_text(STAGES[stage])
    same(make(place, tmp_path / "many", workers=2), expected)
    assert not (place / "dies-now").exists()
    done = tasks(place)
    # The pool ends with its worker, so that a task of the other one may begin again too.
    assert 1 <= len(done) - len(set(done)) <= 2


def killed_in(stage, place, work, options):
    """Begin a search in another process, and kill that once a stage has two shards."""
    (place / "slow").write_text("0.2")
    words = [sys.executable, "-m", "tests.inference.dedup_world", place, work, json.dumps(options)]
    driver = subprocess.Popen(words, env=ENVIRONMENT, cwd=ROOT)
    while len(list((work / SHARDED / stage / "shards").glob("0*"))) < 2:
        assert driver.poll() is None
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    (place / "slow").unlink()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_many_workers_match_what_one_process_matches(workers, place, tmp_path):
    for threshold in (0.95, 0.85):
        one, many = tmp_path / f"one-{threshold}", tmp_path / f"many-{threshold}"
        options = {"what": "match", "threshold": threshold, "top": 3}
        expected = search(place, one, **options)
        result = make(place, many, workers=workers, **options)
        assert len(expected.pairs) > 100
        for level in (threshold, threshold + 0.02):
            assert result.with_threshold(level).pairs == expected.with_threshold(level).pairs
        assert (result.recall, result.sampled) == (expected.recall, expected.sampled)
        assert names(many) == names(one)
        same_links(many, one)
    done = tasks(place)
    for stage, least in (("EncodeWork", 6), ("ListsWork", 6), ("LinksWork", 4)):
        assert sum(line.startswith(stage) for line in done) >= 2 * least


def test_queries_and_documents_are_encoded_as_such_by_shards(tiny_trunk, sentences, tmp_path):
    model = prompted(tiny_trunk, tmp_path)
    options = {"model": str(model), "threshold": 0.5, "search": "approximate", "precision": "float32"}
    lists_of_texts = sentences[:20], sentences[15:]
    expected = samesense.match(*lists_of_texts, work=tmp_path / "one", **options)
    result = samesense.match(*lists_of_texts, work=tmp_path / "many", workers=1, **options)
    assert [pair[:2] for pair in result.pairs] == [pair[:2] for pair in expected.pairs]
    assert [pair.score for pair in result.pairs] == pytest.approx([pair.score for pair in expected.pairs], abs=1e-6)


@pytest.mark.posix
@pytest.mark.parametrize("stage", EVERY_STAGE)
def test_it_goes_on_where_the_driver_was_killed(stage, place, tmp_path):
    expected = search(place, tmp_path / "one")
    killed_in(stage, place, tmp_path / "many", {})
    begun = len(tasks(place))
    if stage == "links":
        with pytest.raises(OutputError, match=r"other settings: floor was 0\.8 and is 0\.6"):
            make(place, tmp_path / "many", threshold=0.7)
        assert len(tasks(place)) == begun
    same(make(place, tmp_path / "many"), expected)
    done = tasks(place)
    # The task that was under way is done again, and no other.
    assert len(done) - len(set(done)) <= 1
    assert names(tmp_path / "many") == [".lock", "about.json", "links.npz", "vectors.bin"]


@pytest.mark.posix
def test_shards_of_other_texts_are_refused_and_one_process_removes_them(place, tmp_path):
    killed_in("vectors", place, tmp_path / "many", {})
    world(tmp_path / "other", rows=2900)
    with pytest.raises(OutputError, match=r"holds shards with (another|other)"):
        make(tmp_path / "other", tmp_path / "many")
    same(search(place, tmp_path / "many"), search(place, tmp_path / "one"))
    assert names(tmp_path / "many") == [".lock", "about.json", "links.npz", "vectors.bin"]


def test_what_cannot_be_shared_is_refused(place, tmp_path):
    model, texts = f"vectors:{place}/vectors.npz", ["text 0"]
    with pytest.raises(
        ConfigError, match=r"kept in a folder that all machines see; received none\. Name it with `work`"
    ):
        samesense.dedup(texts, model=model, executor="ray")
    with pytest.raises(ConfigError, match="share an approximate search; received 3000 different texts"):
        samesense.dedup(world(place), model=model, workers=1, work=tmp_path / "work")
    with pytest.raises(ConfigError, match=r"received Model\. Save it, and give the folder"):
        samesense.dedup(texts, model=load(model), workers=1, work=tmp_path / "work")
    with pytest.raises(ConfigError, match="`executor` is one of embedded, ray; received 'slurm'"):
        samesense.dedup(texts, model=model, executor="slurm", work=tmp_path / "work")
    with pytest.raises(ConfigError, match="address is for the ray executor"):
        samesense.dedup(texts, model=model, address="auto", work=tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path):
    work = ListsWork(Matrix(tmp_path / "absent.bin", "float32", 5, 2), np.eye(2, dtype=np.float32), (Rows(0, 5, 1),))
    with pytest.raises(DataError, match=r"absent\.bin is not the same on this machine .* Put the folder on a disk"):
        work(0)


def rows_of(path, table):
    """Write the rows of each list to files."""
    rows_of_lists = lists.invert(table, 400)
    matrices = []
    for part, array in vars(rows_of_lists).items():
        file = path.with_name(f"{path.name}-{part}")
        array.tofile(file)
        matrices.append(Matrix(file, str(array.dtype), len(array), 1))
    return tuple(matrices)


def test_memory_of_a_task_is_that_of_its_range(tmp_path):
    """A task holds a few numbers a row, the pairs of its range and no other's; vectors are mapped."""
    random = np.random.default_rng(0)
    rows = 40_000
    vectors = np.repeat(random.normal(size=(rows // 20, 16)), 20, axis=0) + 0.01 * random.normal(size=(rows, 16))
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    unit.tofile(tmp_path / "vectors.bin")
    centres = unit[:: rows // 400].copy()
    probes = lists.closest_lists(unit, centres, 16)
    probes.tofile(tmp_path / "probes.bin")
    vectors_file = Matrix(tmp_path / "vectors.bin", "float32", rows, 16)
    probes_file = Matrix(tmp_path / "probes.bin", "int32", rows, 16)
    rows_files = [rows_of(tmp_path / name, table) for name, table in (("probing", probes), ("members", probes[:, :1]))]
    peaks = []
    for ranges in ((range(400),), (range(20),)):
        tracemalloc.start()
        shard = LinksWork(ListFiles(vectors_file, probes_file, None, *rows_files), list_search(), ranges, 0.9)(0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(shard.content) > 10_000
    assert peaks[1] < peaks[0] / 5
    assert peaks[1] < rows * 100 + (8 << 20)


@pytest.mark.posix
@pytest.mark.long
@pytest.mark.parametrize("stage", ["lists", "links"])
def test_on_ray_nothing_changes_though_a_worker_and_the_driver_are_killed(stage, place, tmp_path):
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    expected = search(place, tmp_path / "one")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80 << 20})
    options = {"executor": "ray", "address": cluster.address}
    try:
        (place / "dies-now").write_text(STAGES[stage])
        killed_in(stage, place, tmp_path / "many", options)
        words = [sys.executable, "-m", "tests.inference.dedup_world", place, tmp_path / "many", json.dumps(options)]
        assert subprocess.run(words, env=ENVIRONMENT, cwd=ROOT).returncode == 0
    finally:
        cluster.shutdown()
    assert not (place / "dies-now").exists()
    same(search(place, tmp_path / "many"), expected)


@pytest.mark.posix
@pytest.mark.long
@pytest.mark.parametrize(("what", "stage"), [*(("dedup", stage) for stage in STAGES), ("match", "links")])
def test_a_cluster_that_loses_a_machine_loses_no_pair(what, stage, place, tmp_path):
    pytest.importorskip("ray")
    search(place, tmp_path / "one", what=what)
    (place / "slow").write_text("0.2")
    words = [sys.executable, "-m", "tests.ray_cluster", place, tmp_path / "many", "tests.inference.dedup_world"]
    words += [json.dumps({"what": what}), f"{SHARDED}/{stage}"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert int((place / "killed-at").read_text()) >= 4
    same_links(tmp_path / "many", tmp_path / "one")
    assert names(tmp_path / "many") == [".lock", "about.json", "links.npz", "vectors.bin"]
