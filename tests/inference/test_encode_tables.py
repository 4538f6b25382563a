"""Tables, several files, URLs, columns that are kept, and vectors in fewer bytes: in shards, with a made-up model."""

import gzip
import itertools
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samesense
from samesense.cli.commands.encode import encode as command
from samesense.data.texts import read_texts
from samesense.encoder.windows import Reading, cut_into_windows
from samesense.errors import ConfigError, DataError, OutputError
from samesense.execution.shards.tasks import Serial
from samesense.inference.columns import read_texts_with_columns
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.shards.encode import ShardSettings, encode_shards
from tests.command import run_command
from tests.inference import sharded_world
from tests.inference.made_vectors import encode
from tests.inference.sharded_world import open_made_up, shards
from tests.messages import listen

ROOT = Path(__file__).parents[2]
ROWS = [
    {"id": f"n{n}", "body": f"text {n} {'ä文😀'[n % 3]}, {n * n}", "year": 2000 + n, "tags": ["a"] * (n % 3)}
    for n in range(20)
]
TEXTS = [row["body"] for row in ROWS]


def csv_cell(value):
    return '"' + str(value).replace('"', '""') + '"'


@pytest.fixture
def tables(tmp_path):
    """The same twenty rows as five files of one folder, in the order of their names."""
    folder = tmp_path / "tables"
    folder.mkdir()
    shards = [ROWS[start : start + 4] for start in range(0, 20, 4)]
    flat = [[{**row, "tags": json.dumps(row["tags"])} for row in shard] for shard in shards]
    pq.write_table(pa.Table.from_pylist(shards[0]), folder / "0.parquet", row_group_size=3)
    (folder / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in shards[1]))
    (folder / "2.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in shards[2]).encode()))
    (folder / "3.json").write_text(json.dumps(shards[3]))
    pq.write_table(pa.Table.from_pylist(shards[4]), folder / "4.parquet")
    for name, sign in (("a.tsv", "\t"), ("b.csv", ",")):
        lines = [sign.join(flat[0][0]) + "\n"]
        quote = csv_cell if sign == "," else str
        lines += [sign.join(quote(value) for value in row.values()) + "\n" for row in itertools.chain(*flat)]
        (folder / name).write_text("".join(lines))
    return folder


def made(sources, output, **changes):
    settings = ShardSettings(**{"shard_size": 3, "format": "parquet", "columns": "body", **changes})
    return encode_shards(".", [str(source) for source in sources], output, settings, Serial(), open_as=open_made_up)


def read(output):
    return [row for path in sorted((output / "shards").iterdir()) for row in pq.read_table(path).to_pylist()]


def test_every_kind_of_table_many_files_and_patterns(tables, tmp_path):
    for number, sources in enumerate(
        ([tables / "[0-4].*"], sorted(tables.glob("[0-4].*")), [tables / "a.tsv"], [tables / "b.csv"])
    ):
        output = tmp_path / str(number)
        done = made(sources, output)
        rows = read(output)
        assert [row["text"] for row in rows] == TEXTS
        assert [row["id"] for row in rows] == [row["id"] for row in ROWS]
        assert [*rows[0]] == ["id", "text", "embedding"]
        np.testing.assert_array_equal(np.array([row["embedding"] for row in rows], np.float32), encode(TEXTS))
        np.testing.assert_array_equal(samesense.read_vectors(output), encode(TEXTS))
        assert (done.rows, done.shards) == (20, 10 if number < 2 else 7)
    noted = json.loads((tmp_path / "0" / "manifest.json").read_text())["input"]
    assert (noted["name"], noted["files"], noted["rows"]) == ("0.parquet, 1.jsonl, 2.jsonl.gz and 2 more", 5, 20)


def test_columns_that_are_kept_have_one_type_in_all_shards(tables, tmp_path):
    (tables / "5.jsonl").write_text('{"body": "half", "year": 0.5, "id": null, "tags": []}\n{"body": "nothing else"}\n')
    made([tables / "[0-5].*"], tmp_path / "v", keep="id,year,tags")
    rows = read(tmp_path / "v")
    assert [(row["id"], row["year"], row["tags"]) for row in rows[:20]] == [
        (row["id"], row["year"], row["tags"]) for row in ROWS
    ]
    assert [(row["id"], row["year"]) for row in rows[20:]] == [(None, 0.5), (None, None)]
    schemas = {pq.read_schema(path).remove_metadata() for path in (tmp_path / "v" / "shards").iterdir()}
    assert len(schemas) == 1 and schemas.pop().field("year").type == pa.float64()
    made([tables / "0.parquet", tables / "a.tsv"], tmp_path / "texts", keep="year")  # numbers, and texts of numbers
    assert [row["year"] for row in read(tmp_path / "texts")][2:6] == ["2002", "2003", "2000", "2001"]
    (tables / "other.jsonl").write_text('{"sentence": "s", "body": "kept here", "id": "o"}\n')
    made([tables / "0.parquet", tables / "other.jsonl"], tmp_path / "two", columns=None, keep="all")
    assert [(row["text"], row["body"]) for row in read(tmp_path / "two")[3:]] == [(TEXTS[3], None), ("s", "kept here")]
    made([tables / "a.tsv"], tmp_path / "all", keep="all")
    assert [*read(tmp_path / "all")[0]] == ["id", "year", "tags", "text", "embedding"]


def test_what_cannot_be_kept_or_read_is_said(tables, tmp_path):
    (tables / "text.jsonl").write_text('{"body": "x", "text": "y"}\n')
    (tables / "mixed.jsonl").write_text('{"body": "x", "year": 1}\n{"body": "x", "year": [1]}\n')
    (tables / "late.jsonl").write_text('{"body": "x", "year": [1]}\n')
    (tables / "empty.jsonl").write_text('{"body": "x"}\n{"body": " "}\n')
    (tables / "lines.txt").write_text("one\n")
    for names, changes, error, message in (
        (["text.jsonl"], {"keep": "all"}, ConfigError, "columns text and embedding of its own, and `keep` adds 'text'"),
        (
            ["mixed.jsonl"],
            {"keep": "year"},
            DataError,
            "mixed.jsonl, row 2, column 'year': a column that is kept holds values",
        ),
        (["0.parquet", "late.jsonl"], {"keep": "year"}, DataError, "2 files: a column that is kept holds values of"),
        (["0.parquet"], {"keep": "month"}, DataError, "0.parquet: `keep` names 'month'"),
        (["empty.jsonl"], {}, DataError, "row 2, column 'body': the text is empty"),
        (["lines.txt"], {}, ConfigError, "`columns` is for tables"),
        (["lines.txt"], {"columns": None, "keep": "id"}, ConfigError, "`keep` is for tables"),
        (["*.tar"], {}, DataError, "no file matches this pattern"),
        (["0.parquet"], {"format": "npy", "keep": "id"}, ConfigError, "npy is a matrix without columns"),
    ):
        with pytest.raises(error, match=message):
            made([tables / name for name in names], tmp_path / "v", **changes)
        assert not (tmp_path / "v" / "shards").exists()


def test_kept_whole_numbers_of_64_bits_stay_in_every_shard(tmp_path):
    values = [1, 2, 2**64 - 1, 3]
    lines = [json.dumps({"body": f"text {value}", "hash": value, "tags": [value]}) + "\n" for value in values]
    (tmp_path / "t.jsonl").write_text("".join(lines))
    made([tmp_path / "t.jsonl"], tmp_path / "v", shard_size=1, keep="hash,tags")
    assert [(row["hash"], row["tags"]) for row in read(tmp_path / "v")] == [(value, [value]) for value in values]
    pq.write_table(
        pa.table({"body": ["a", "b"], "hash": pa.array([2**64 - 1, 0], pa.uint64())}), tmp_path / "t.parquet"
    )
    kept = read_texts_with_columns([str(tmp_path / "t.parquet"), str(tmp_path / "t.jsonl")], "body", "hash")[1]
    assert kept["hash"].to_pylist() == [2**64 - 1, 0, *values]


@pytest.mark.parametrize(
    ("first", "second"),
    [("true", "1.5"), ("1.5", "{}"), ("[]", '[1, "x"]'), ('{"x": 1}', '{"x": "s"}'), ("9007199254740993", "0.5")],
)
def test_a_kept_value_of_another_type_is_named(tmp_path, first, second):
    (tmp_path / "one.jsonl").write_text(f'{{"body": "x", "a": {first}}}\n{{"body": "y", "a": {second}}}\n')
    with pytest.raises(
        DataError, match=r"one\.jsonl, row 2, column 'a': a column that is kept holds values of one type"
    ):
        read_texts_with_columns([str(tmp_path / "one.jsonl")], "body", "all")


def test_objects_without_keys_are_refused_before_texts_are_encoded(tmp_path, capsys):
    (tmp_path / "t.jsonl").write_text('{"body": "x", "a": {}}\n')
    flags = ("--columns", "body", "--keep", "all", "--output", tmp_path / "v.parquet")
    code, _, err = run_command(capsys, "encode", ".", tmp_path / "t.jsonl", *flags)
    assert (code, "t.jsonl, column 'a': Parquet stores no objects without keys" in err) == (2, True)
    with pytest.raises(DataError, match="column 'a': Parquet stores no objects without keys"):
        made([tmp_path / "t.jsonl"], tmp_path / "v", keep="all")


def test_it_goes_on_and_notices_another_input(tables, tmp_path, monkeypatch):
    sources = [tables / "[0-4].*"]
    made(sources, tmp_path / "v")
    whole = shards(tmp_path / "v")
    for number in (0, 4, 9):
        (tmp_path / "v" / "shards" / f"{number:05}.parquet").unlink()
    made(sources, tmp_path / "v")
    assert shards(tmp_path / "v") == whole
    with pytest.raises(OutputError, match="other settings: keep was None and is 'year'"):
        made(sources, tmp_path / "v", keep="year")
    content = (tables / "1.jsonl").read_text()
    (tables / "1.jsonl").write_text(content.replace("n5", "n6"))
    with pytest.raises(OutputError, match="another input: sha256 was"):
        made(sources, tmp_path / "v")
    (tables / "1.jsonl").write_text(content)
    made(sources, tmp_path / "v")
    monkeypatch.setattr(sharded_world, "encode", lambda texts: 1 / 0)
    made(sources, tmp_path / "v")


def until(reached, process):
    while not reached():
        assert process.poll() is None
        time.sleep(0.02)


@pytest.mark.posix
@pytest.mark.slow
def test_a_worker_and_the_driver_are_killed_and_each_row_is_there_once(tables, tmp_path):
    """Of tables, by ranges that all shards share: the driver dies before it has any, a worker, the driver."""
    made([tables / "[0-4].*"], tmp_path / "v", vectors="int8")
    (tables / "slow").write_text("0.2")
    (tables / "dies-now").touch()
    settings = {"source": "[0-4].*", "shard_size": 3, "format": "parquet", "columns": "body", "vectors": "int8"}
    killed = tmp_path / "killed"
    words = [sys.executable, "-m", "tests.inference.sharded_world", str(tables), str(killed), "2", json.dumps(settings)]
    assert subprocess.run(words, cwd=ROOT).returncode == -signal.SIGKILL
    driver = subprocess.Popen(words, cwd=ROOT)
    until(lambda: (killed / "vectors.json").exists(), driver)
    (tables / "dies-now").touch()
    until(lambda: len(list((killed / "shards").glob("*.parquet"))) >= 4, driver)
    driver.kill()
    driver.wait()
    assert not (tables / "dies-now").exists()
    assert subprocess.run(words, cwd=ROOT).returncode == 0
    assert shards(tmp_path / "killed") == shards(tmp_path / "v")
    assert [row["id"] for row in read(tmp_path / "killed")] == [row["id"] for row in ROWS]


@pytest.mark.long
def test_a_machine_of_a_cluster_is_killed_and_each_row_is_there_once(tables, tmp_path):
    pytest.importorskip("ray")
    made([tables / "[0-4].*"], tmp_path / "v", shard_size=2, keep="all")
    (tables / "slow").write_text("0.3")
    settings = {"source": "[0-4].*", "shard_size": 2, "format": "parquet", "columns": "body", "keep": "all"}
    words = [tables, tmp_path / "ray", "tests.inference.sharded_world", json.dumps(settings)]
    done = subprocess.run([sys.executable, "-m", "tests.ray_cluster", *words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert 4 <= int((tables / "killed-at").read_text()) < 10
    assert shards(tmp_path / "ray") == shards(tmp_path / "v")
    noted = [json.loads(line)["shard"] for line in (tmp_path / "ray" / "history.jsonl").read_text().splitlines()]
    assert sorted(noted) == list(range(10))


def test_urls_are_read_and_written_and_gone_on_with(tables, tmp_path):
    store = fsspec.filesystem("memory")
    for path in tables.glob("[0-4].*"):
        store.pipe_file(f"/bucket/in/{path.name}", path.read_bytes())
    made([tables / "[0-4].*"], tmp_path / "v")
    expected = shards(tmp_path / "v")
    try:
        for _ in range(2):
            done = made(["memory://bucket/in/*"], "memory://bucket/out")
            assert done.rows == 20
            contents = {name.rpartition("/")[2]: store.cat_file(name) for name in store.find("/bucket/out/shards")}
            assert contents == expected
            lines = store.cat_file("/bucket/out/history.jsonl").splitlines()
            assert {json.loads(line)["shard"] for line in lines} == set(range(10))
            store.rm("/bucket/out/shards/00003.parquet")
        assert json.loads(store.cat_file("/bucket/out/manifest.json"))["status"] == "finished"
        made(["memory://bucket/in/*"], "memory://bucket/out")
        np.testing.assert_array_equal(samesense.read_vectors("memory://bucket/out"), encode(TEXTS))
        with pytest.raises(OutputError, match="other settings: shard_size was 3 and is 4"):
            made(["memory://bucket/in/*"], "memory://bucket/out", shard_size=4)
        with pytest.raises(OutputError, match="is not empty and holds no shards"):
            made(["memory://bucket/in/*"], "memory://bucket/in")
        with pytest.raises(DataError, match=r"memory://bucket/in/absent\.jsonl: there is no such file"):
            made(["memory://bucket/in/absent.jsonl"], "memory://bucket/other")
        with pytest.raises(DataError, match="received nostore://"):
            made(["nostore://bucket/x.jsonl"], "memory://bucket/other")
    finally:
        store.rm("/bucket", recursive=True)
    made([f"file://{tables}/a.tsv"], f"file://{tmp_path}/f")
    assert [row["text"] for row in read(tmp_path / "f")] == TEXTS


@pytest.mark.parametrize("form", ["npy", "parquet"])
@pytest.mark.parametrize("vectors", ["float16", "int8", "binary"])
def test_all_shards_are_stored_by_the_same_ranges(tables, tmp_path, vectors, form):
    made([tables / "[0-4].*"], tmp_path / "v", vectors=vectors, format=form)
    rows = samesense.read_vectors(tmp_path / "v")
    expected = encode(TEXTS)
    if vectors == "binary":
        np.testing.assert_array_equal(rows, np.where(expected > 0, 1, -1))
    else:
        np.testing.assert_allclose(rows, expected, atol=(expected.max() - expected.min()) / 255 * 0.51)
    shard = tmp_path / "v" / "shards" / f"00003.{form}"
    if form == "parquet":  # each file says it by itself
        np.testing.assert_array_equal(samesense.read_vectors(shard), rows[7:8])
    whole = shards(tmp_path / "v")
    shard.unlink()
    made([tables / "[0-4].*"], tmp_path / "v", vectors=vectors, format=form)
    assert shards(tmp_path / "v") == whole
    assert json.loads((tmp_path / "v" / "manifest.json").read_text())["dim"] == expected.shape[1]


def test_ranges_are_those_of_a_sample_of_all_files(tables, tmp_path, monkeypatch):
    from samesense.inference.shards import encode as recipe

    monkeypatch.setattr(recipe, "SAMPLE", 5)
    made([tables / "[0-4].*"], tmp_path / "v", vectors="int8")
    description = json.loads((tmp_path / "v" / "vectors.json").read_text())
    vectors = encode(TEXTS)
    extremes = [
        row
        for row in range(20)
        if (np.min([vectors[row], description["ranges"][0]], axis=0) == description["ranges"][0]).all()
    ]
    assert len(extremes) >= 5 and {row // 4 for row in extremes} == {0, 1, 2, 3, 4}


def test_long_texts_are_cut_in_shards_and_counted(tables, tmp_path):
    reading = Reading(
        8, lambda texts: [len(text) for text in texts], lambda text: [(n, n + 1) for n in range(len(text))]
    )

    def open_short(model, settings):
        return replace(open_made_up(model, settings), windows=lambda texts: cut_into_windows(texts, reading))

    settings = ShardSettings(shard_size=3, chunk="max", columns="body")
    done = encode_shards(".", [str(tables / "a.tsv")], tmp_path / "v", settings, Serial(), open_as=open_short)
    windows = cut_into_windows(TEXTS, reading)
    assert done.figures == windows.figures and done.figures["cut"] == 20
    expected = windows.join(encode(windows.texts), "max")
    np.testing.assert_array_equal(samesense.read_vectors(tmp_path / "v"), expected)


def test_one_file_keeps_columns_reads_many_and_says_what_was_cut(tables, tmp_path, tiny_trunk):
    lines = listen()
    long = " ".join(["the dog runs"] * 100)
    (tables / "5.jsonl").write_text(json.dumps({"id": "long", "body": long, "year": None}) + "\n")
    sources = [str(tables / "[0-5].*")]
    command(str(tiny_trunk), sources, output=str(tmp_path / "v.parquet"), columns="body", chunk="mean", keep="id,year")
    rows = pq.read_table(tmp_path / "v.parquet").to_pylist()
    assert [(row["id"], row["year"]) for row in rows] == [*((row["id"], row["year"]) for row in ROWS), ("long", None)]
    message = next(line for line in lines if "cut into" in line)
    assert message.startswith("1 of 21 texts are longer than what the model reads: cut into")
    expected = samesense.encode(tiny_trunk, [*TEXTS, long], chunk="mean")
    np.testing.assert_array_equal(np.array([row["embedding"] for row in rows], np.float32), expected)
    assert not np.allclose(samesense.encode(tiny_trunk, [long]), expected[-1:], atol=1e-3)
    command(str(tiny_trunk), sources, output=str(tmp_path / "v.jsonl"), columns="body")
    assert json.loads((tmp_path / "v.jsonl").read_text().splitlines()[0])["id"] == "n0"
    assert read_texts(str(tmp_path / "v.jsonl"), "text") == [*TEXTS, long]


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_one_file_says_how_it_is_stored_and_is_a_model(tables, tmp_path, tiny_trunk, name):
    output = str(tmp_path / name)
    command(str(tiny_trunk), [str(tables / "a.tsv")], output=output, columns="body", vectors="int8", normalize=True)
    expected = samesense.encode(tiny_trunk, TEXTS, normalize=True)
    np.testing.assert_allclose(samesense.read_vectors(output), expected, atol=0.01)
    (tmp_path / "v.txt").write_text("\n".join(TEXTS))
    stored = samesense.load(f"vectors:{output}")
    np.testing.assert_allclose(stored.encode(TEXTS), expected, atol=0.01)
    with pytest.raises(ConfigError, match="JSON lines hold numbers as text; received `vectors` int8"):
        command(str(tiny_trunk), [str(tables / "a.tsv")], output="-", vectors="int8")


def test_one_file_is_read_from_a_url_and_written_to_one(tables, tiny_trunk):
    store = fsspec.filesystem("memory")
    store.pipe_file("/one/texts.txt.gz", gzip.compress("".join(f"{text}\n" for text in TEXTS).encode()))
    store.pipe_file("/one/b.csv", (tables / "b.csv").read_bytes())
    try:
        assert read_texts("memory://one/texts.txt.gz") == read_texts("memory://one/b.csv", "body") == TEXTS
        command(str(tiny_trunk), ["memory://one/texts.txt.gz"], output="memory://one/v.npy", vectors="binary")
        expected = np.where(samesense.encode(str(tiny_trunk), "memory://one/b.csv", columns="body") > 0, 1, -1)
        np.testing.assert_array_equal(samesense.read_vectors("memory://one/v.npy"), expected)
        with pytest.raises(DataError, match=r"memory://one/absent\.txt: there is no such file"):
            samesense.encode(str(tiny_trunk), "memory://one/absent.txt")
    finally:
        store.rm("/one", recursive=True)


@pytest.mark.slow
def test_an_exported_model_cuts_texts_as_torch_does(exported, sentences):
    model = samesense.load(str(exported), backend="torch", precision="float32", device="cpu")
    texts = [" ".join(sentences), sentences[0], " ".join(["dog"] * 500)]
    for prompt in ("", "the cat: "):
        model.encoder.prompts = {"it": prompt}
        model.encoder.default_prompt_name = "it" if prompt else None
        onnx = OnnxEncoder(exported)
        onnx.description = onnx.description.model_copy(update={"prompt": prompt})
        windows = cut_into_windows(texts, onnx.reading_for(None))
        assert windows == model.windows(texts) and windows.counts[0] > 1 and windows.counts[1] == 1
        assert max(onnx.reading_for(None).lengths(windows.texts)) <= onnx.description.max_tokens
