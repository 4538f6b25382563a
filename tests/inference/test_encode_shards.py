"""Files of text into shards of vectors: order, bytes, going on, refusals; with a made-up model except at the end."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from samesense.data.texts import read_texts
from samesense.errors import ConfigError, DataError, ModelError, OutputError, SamesenseError
from samesense.execution.shards.executors import OnRay, choose_executor
from samesense.execution.shards.tasks import Serial
from samesense.inference.shards import encode as recipe
from samesense.inference.shards import input as inputs
from samesense.inference.shards.encode import EncodeWork, ShardSettings
from tests.inference import sharded_world
from tests.inference.made_vectors import encode
from tests.inference.sharded_world import make, open_made_up, shards, world

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def place(tmp_path):
    world(tmp_path / "world")
    return tmp_path / "world"


def program(name, *words):
    return [sys.executable, "-m", f"tests.inference.{name}", *map(str, words)]


def manifest(output):
    return json.loads((output / "manifest.json").read_text())


def test_shards_one_after_the_other_are_the_vectors_of_the_lines(tmp_path):
    texts = world(tmp_path / "world")
    done, lines = make(tmp_path / "world", tmp_path / "v")
    assert (done.rows, done.dim, done.shards) == (60, 24, 9) and lines == []
    listed = manifest(tmp_path / "v")["shards"]
    rows = [np.load(tmp_path / "v" / "shards" / entry["file"]) for entry in listed]
    assert [len(shard_rows) for shard_rows in rows] == [entry["rows"] for entry in listed] == [7] * 8 + [4]
    np.testing.assert_array_equal(np.concatenate(rows), encode(texts))
    make(tmp_path / "world", tmp_path / "p", format="parquet", shard_size=100)
    table = pq.read_table(tmp_path / "p" / "shards" / "00000.parquet").to_pydict()
    assert table["text"] == texts
    np.testing.assert_array_equal(np.array(table["embedding"], dtype=np.float32), encode(texts))


def test_every_setting_reaches_the_model_of_a_worker(monkeypatch):
    received = {}

    def load(name, **options):
        received.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(recipe, "load", load)
    settings = {"backend": "onnx", "precision": "float32", "deterministic": True, "prompt": "query: "}
    with pytest.raises(KeyboardInterrupt):
        recipe.open_on_one_thread("model", ShardSettings(**settings))
    assert received == {**settings, "device": "cpu", "threads": 1}


def test_lines_are_those_of_the_whole_file_wherever_it_is_cut(place, tmp_path):
    path = place / "texts.txt"
    expected = read_texts(str(path))
    for size in (1, 2, 7, 59, 60, 61, 1000):
        counted = []
        source = inputs.split_shards([str(path)], size, on_rows=counted.append)
        assert [text for shard in range(len(source.parts)) for text in source.read(shard)[0]] == expected, size
        assert [cut_shard.rows for cut_shard in source.parts[:-1]] == [size] * (
            len(source.parts) - 1
        ) and source.rows == 60
        assert source.parts[-1].end == source.files[0].size == path.stat().st_size and sum(counted) == 60
        assert source.sha256 == inputs.split_shards([str(path)], 60).sha256
    (tmp_path / "ended.txt").write_text("one\ntwo\n")
    assert [cut_shard.rows for cut_shard in inputs.split_shards([str(tmp_path / "ended.txt")], 1).parts] == [1, 1]


def test_the_manifest_says_what_it_was_made_of(place, tmp_path):
    make(place, tmp_path / "v")
    content = manifest(tmp_path / "v")
    texts = read_texts(str(place / "texts.txt"))
    assert (content["method"], content["status"], content["dim"]) == ("encode", "finished", 24)
    assert content["settings"] == {
        **{"shard_size": 7, "format": "npy", "vectors": "float32", "normalize": False, "deterministic": False},
        **{"device": "cpu"},
    }
    digest = hashlib.sha256("".join(json.dumps([text]) + "\n" for text in texts).encode()).hexdigest()
    expected = {"name": "texts.txt", "files": 1, "bytes": (place / "texts.txt").stat().st_size, "rows": 60}
    assert content["input"] == {**expected, "sha256": digest}
    assert content["model"]["identity"] == hashlib.sha256(b"made up ").hexdigest()
    written = {entry["file"]: entry["sha256"] for entry in content["shards"]}
    assert written == {
        name: hashlib.sha256(content_bytes).hexdigest() for name, content_bytes in shards(tmp_path / "v").items()
    }


@pytest.mark.posix
def test_it_goes_on_with_any_workers_and_the_bytes_are_the_same(place, tmp_path):
    make(place, tmp_path / "v")
    whole, listed = shards(tmp_path / "v"), manifest(tmp_path / "v")["shards"]
    for number in (0, 5, 8):
        (tmp_path / "v" / "shards" / f"{number:05}.npy").unlink()
    (tmp_path / "v" / "shards" / ".00005.npy.99999999-0123abcd.part").write_bytes(b"cut off")
    history = tmp_path / "v" / "history.jsonl"
    history.write_text(history.read_text()[:-20])  # the last line cut off: the shard is hashed anew
    (place / "dies-now").touch()
    _, lines = make(place, tmp_path / "v", workers=2)
    assert not (place / "dies-now").exists()
    assert lines == ["6 of 9 shards are there already"]
    assert shards(tmp_path / "v") == whole and manifest(tmp_path / "v")["shards"] == listed


def test_nothing_is_made_or_counted_twice(place, tmp_path, monkeypatch):
    make(place, tmp_path / "v")
    before = manifest(tmp_path / "v")
    with monkeypatch.context() as patch:
        patch.setattr(sharded_world, "encode", lambda texts: 1 / 0)
        patch.setattr(inputs, "split_shards", lambda *words: 1 / 0)
        done, lines = make(place, tmp_path / "v")
    assert done.rows == 60 and lines == ["9 of 9 shards are there already"]
    assert manifest(tmp_path / "v") == before
    os.utime(place / "texts.txt", (1, 1))  # it may be another file now: read again, and found to be the same
    assert make(place, tmp_path / "v")[0] == done
    (tmp_path / "v" / "input.json").unlink()
    assert make(place, tmp_path / "v")[0] == done


def test_vectors_that_are_not_finite_are_refused(place, tmp_path, monkeypatch):
    monkeypatch.setattr(sharded_world, "encode", lambda texts: np.full((len(texts), 3), np.nan))
    with pytest.raises(SamesenseError, match="holds a NaN or an infinity"):
        make(place, tmp_path / "broken")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shard_size": 8}, "other settings: shard_size was 7 and is 8"),
        (
            {"normalize": True, "format": "parquet"},
            "format was 'npy' and is 'parquet'; normalize was False and is True",
        ),
    ],
)
def test_other_settings_are_refused(place, tmp_path, changes, message):
    make(place, tmp_path / "v")
    before = shards(tmp_path / "v")
    with pytest.raises(OutputError, match=message):
        make(place, tmp_path / "v", **changes)
    assert shards(tmp_path / "v") == before


def test_another_input_or_model_is_refused(place, tmp_path):
    make(place, tmp_path / "v")
    path, content = place / "texts.txt", (place / "texts.txt").read_bytes()
    path.write_bytes(content + b"\nmore")
    with pytest.raises(
        OutputError, match=r"another input: bytes was \d+ and is \d+; rows was 60 and is 61; sha256 was"
    ):
        make(place, tmp_path / "v")
    path.write_bytes(content)
    (place / "salt").write_text("other")
    with pytest.raises(OutputError, match="another model: identity was"):
        make(place, tmp_path / "v")
    (place / "salt").unlink()
    assert make(place, tmp_path / "v")[0].rows == 60


def test_a_worker_looks_at_what_it_reads_and_opens(place, tmp_path):
    path = place / "texts.txt"
    source, settings = inputs.split_shards([str(path)], 7), ShardSettings(shard_size=7)
    work = EncodeWork(str(place), source, settings, open_made_up, "made up ")
    assert work(8).rows == 4
    path.write_bytes(path.read_bytes().replace(b"row 16", b"row 61"))
    assert work(1).rows == 7
    with pytest.raises(DataError, match=r"\(shard 2\) are not what they were when its rows were counted"):
        work(2)
    path.unlink()
    with pytest.raises(DataError, match=r"no file .* where shard 0 is made"):
        work(0)
    with pytest.raises(ModelError, match="Every worker must have the same model"):
        EncodeWork(str(place), source, settings, open_made_up, "another")(0)


@pytest.mark.parametrize("form", ["npy", "parquet"])
def test_a_damaged_shard_is_said_and_made_anew(place, tmp_path, form):
    make(place, tmp_path / "v", format=form)
    whole = shards(tmp_path / "v")
    path = tmp_path / "v" / "shards" / f"00003.{form}"
    for damage, message in (
        (whole[path.name][:-9], "is no whole shard"),
        (whole[f"00008.{form}"], "7 vectors and holds 4"),
    ):
        path.write_bytes(damage)
        with pytest.raises(DataError, match=rf"00003\.{form}\. They are damaged"):
            make(place, tmp_path / "v", format=form)
        # Without the hash, as in an object store, sizes and heads tell.
        history = (tmp_path / "v" / "history.jsonl").read_text()
        (tmp_path / "v" / "history.jsonl").unlink()
        with pytest.raises(DataError, match=message):
            make(place, tmp_path / "v", format=form)
        (tmp_path / "v" / "history.jsonl").write_text(history)
    path.unlink()
    make(place, tmp_path / "v", format=form)
    assert shards(tmp_path / "v") == whole


def test_what_cannot_be_read_by_place_is_refused(place, tmp_path):
    settings, where = ShardSettings(), choose_executor("embedded")
    for name, error, message in (
        ("-", ConfigError, "standard input has none; received -"),
        ("absent.txt", DataError, "absent.txt: there is no such file"),
    ):
        with pytest.raises(error, match=message):
            recipe.encode_shards(str(place), [name], tmp_path / "v", settings, where)
    for content, message in (
        (b"a\n\nb", "row 2, column 'text': the text is empty"),
        (b"a\n\xff", "row 2: text must be UTF-8"),
        (b"", "no text"),
    ):
        (place / "texts.txt").write_bytes(content)
        with pytest.raises(DataError, match=message):
            make(place, tmp_path / "v")
    assert not (tmp_path / "v" / "manifest.json").exists()


def test_all_rows_without_a_text_are_named_at_once(tmp_path):
    (tmp_path / "t.txt").write_text("a\n\nb\n \nc\n")
    with pytest.raises(DataError, match=r"2 of 5 rows cannot be used\.\s+row 2, .*\s+row 4, "):
        inputs.split_shards([str(tmp_path / "t.txt")], 1)


def test_on_a_cluster_workers_take_the_gpu_and_the_driver_does_not(place, tmp_path, monkeypatch):
    """A machine that only writes needs none; arithmetic is the same on both."""
    used = []

    def open_seen(model, settings):
        used.append((settings.device, settings.arithmetic, settings.backend))
        return open_made_up(model, settings)

    monkeypatch.setattr(OnRay, "run", lambda self, work, tasks: Serial().run(work, tasks))
    monkeypatch.setattr(sharded_world, "open_made_up", open_seen)
    make(place, tmp_path / "v", executor="ray", device="cuda")
    assert used == [("cpu", "bfloat16", "torch"), ("cuda", "bfloat16", "auto")]
    assert manifest(tmp_path / "v")["settings"]["device"] == "cuda"
    with pytest.raises(OutputError, match="other settings: device was 'cuda' and is 'cpu'"):
        make(place, tmp_path / "v")
    make(place, tmp_path / "one", device="cuda", precision="float32")
    assert used[2:] == [("cuda", "float32", "auto")]


@pytest.mark.parametrize(("device", "why"), [("kuda", "Expected one of cpu"), ("cuda:99", "CUDA")])
def test_a_device_is_one_that_is_there(tiny_trunk, device, why):
    with pytest.raises(ConfigError, match=f"device is one that torch can compute on.*'{device}': .*{why}"):
        recipe.open_on_one_thread(str(tiny_trunk), ShardSettings(device=device))


@pytest.mark.posix
@pytest.mark.long
def test_on_ray_the_bytes_are_the_same_though_a_worker_is_killed(place, tmp_path):
    pytest.importorskip("ray")
    make(place, tmp_path / "embedded")
    (place / "dies-now").touch()
    done = subprocess.run(
        program("sharded_world", place, tmp_path / "ray", "ray"),
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert not (place / "dies-now").exists()
    assert shards(tmp_path / "ray") == shards(tmp_path / "embedded")
    noted = [json.loads(line)["shard"] for line in (tmp_path / "ray" / "history.jsonl").read_text().splitlines()]
    assert sorted(noted) == list(range(9))


@pytest.mark.long
def test_on_ray_it_goes_on_where_the_driver_was_killed(place, tmp_path):
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    make(place, tmp_path / "embedded")
    (place / "slow").write_text("0.3")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80 << 20})
    try:
        words = program("sharded_world", place, tmp_path / "ray", "ray", json.dumps({"address": cluster.address}))
        driver = subprocess.Popen(words, env=ENVIRONMENT, cwd=ROOT)
        while len(list((tmp_path / "ray").glob("shards/*.npy"))) < 3:
            assert driver.poll() is None
            time.sleep(0.02)
        driver.kill()
        driver.wait()
        (place / "slow").unlink()
        assert len(shards(tmp_path / "ray")) < 9
        assert subprocess.run(words, env=ENVIRONMENT, cwd=ROOT).returncode == 0
    finally:
        cluster.shutdown()
    assert shards(tmp_path / "ray") == shards(tmp_path / "embedded")
    noted = [json.loads(line)["shard"] for line in (tmp_path / "ray" / "history.jsonl").read_text().splitlines()]
    assert sorted(set(noted)) == list(range(9))


@pytest.mark.slow
def test_real_models_give_the_vectors_of_one_file_and_the_same_bytes_with_any_workers(
    tiny_trunk, sentences, tmp_path, ready_workers
):
    """By torch, in this process and in others, whatever the threads here; by the command."""
    import torch

    from samesense.cli.commands.encode import encode as command
    from samesense.encoder.assembly.build import build
    from samesense.encoder.encode import encode as encode_here

    (tmp_path / "texts.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    words = (str(tiny_trunk), [str(tmp_path / "texts.txt")])
    options = {"shard_size": 15, "normalize": True, "precision": "float32", "format": "parquet"}
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        command(*words, output=str(tmp_path / "one"), workers=1, **options)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    command(*words, output=str(tmp_path / "two"), workers=2, **options)
    assert shards(tmp_path / "one") == shards(tmp_path / "two")
    rows = [row for path in sorted((tmp_path / "one" / "shards").iterdir()) for row in pq.read_table(path).to_pylist()]
    assert [row["text"] for row in rows] == sentences
    expected = encode_here(build(str(tiny_trunk), device="cpu"), sentences, normalize=True, precision="float32")
    np.testing.assert_allclose([row["embedding"] for row in rows], expected, atol=2e-6)
