"""Parquet and Arrow from anywhere: rows, or a DataError with the column and the row; memory stays bounded."""

import io
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from samesense.data import load_rows, read_pairs
from samesense.encoder.vectors.lookup import read_vectors
from samesense.errors import DataError, ModelError
from samesense.parquet.pages import pages
from tests.command import run_command
from tests.hostile.conftest import figures, rounds

LONG = "a long text " * 170_000
"""2 MB."""

FRESH = """
import sys
from samesense.data import load_rows
from samesense.errors import DataError

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

next(load_rows(sys.argv[2]))[1]["text"]
before = peak()
try:
    for number, cells in load_rows(sys.argv[1]):
        cells["text"]
except DataError as error:
    print(error)
print(peak() - before)
"""


def pairs(count, **columns):
    texts = [f"text {row}" for row in range(count)]
    scores = [row % 6 for row in range(count)]
    return pa.table({"sentence1": texts, "sentence2": texts[::-1], "score": scores, **columns})


def often(text, rows):
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [text])


def lists_of(values, each):
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(values) + 1, each), pa.int32()), values)


BOMBS = {
    "one long text in the dictionary": (lambda: often(LONG, 20_000), {}),
    "lists of it": (lambda: lists_of(often("a" * 200_000, 200_000), 10), {}),
    "structs of it": (lambda: pa.StructArray.from_arrays([often(LONG, 20_000)], ["a"]), {}),
    "texts that begin alike": (lambda: [LONG] * 530, {"column_encoding": "DELTA_BYTE_ARRAY", "use_dictionary": False}),
    "a page": (lambda: ["a" * (2**28 + 2**20)], {"use_dictionary": False}),
    "a cell": (lambda: ["a" * 2**25], {"use_dictionary": False}),
    "a list": (lambda: lists_of(often("a", 30_000_000), 30_000_000), {}),
    "bytes of a fixed length": (lambda: pa.array([b"a" * 500_000] * 2200, pa.binary(500_000)), {}),
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is told by Linux")
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_little_memory(tmp_path, name):
    make, options = BOMBS[name]
    path = tmp_path / "bomb.parquet"
    harmless = tmp_path / "other.parquet"
    pq.write_table(
        pa.table({"text": make()}), path, compression="zstd", store_schema=False, write_statistics=False, **options
    )
    pq.write_table(pa.table({"text": ["a"]}), harmless)
    assert path.stat().st_size < 100_000
    ended = subprocess.run([sys.executable, "-c", FRESH, path, harmless], capture_output=True, text=True, check=True)
    *message, grown = ended.stdout.splitlines()
    assert int(grown) < 600_000, grown
    assert len(message) == 1 and str(path) in message[0] and "'text'" in message[0], message


def test_only_columns_that_are_needed_are_decoded(tmp_path, monkeypatch):
    from samesense.parquet.table import ParquetTable

    read = set()
    blocks = ParquetTable.blocks
    monkeypatch.setattr(ParquetTable, "blocks", lambda self, group, name: read.add(name) or blocks(self, group, name))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(50 * 8, np.float32)), 8)
    unneeded = {f"c{number}": np.arange(50) for number in range(2000)}
    path = tmp_path / "wide.parquet"
    pq.write_table(pairs(50, embedding=vectors, tags=lists_of(pa.array(["a"] * 100), 2), **unneeded), path)
    assert len(read_pairs(path)) == 50
    assert read <= {"sentence1", "sentence2", "score"}
    ((_, cells), *_) = load_rows(path)
    assert {"embedding", "tags", "c1999"} < set(cells), "columns that are not decoded have their names"


@pytest.mark.parametrize("rows", [0, 1, 6000])
def test_cells_of_every_type_and_kind_of_page_are_those_that_pyarrow_reads(tmp_path, rows):
    draw = random.Random(rows)
    texts = [draw.choice([None, "", "é", f"text {row}" * 20, "a" * 4000]) for row in range(rows)]
    struct = pa.struct({"b": "string", "c": pa.list_(pa.string())})
    table = pa.table(
        {
            "text": pa.array(texts, pa.string()),
            "a.b": pa.array(texts, pa.large_string()),
            "a": pa.array([{"b": text, "c": [text, None]} for text in texts], struct),
            "category": pa.array(texts, pa.string()).dictionary_encode(),
            "vector": pa.array([[1.5, 2]] * rows, pa.list_(pa.float32(), 2)),
            "map": pa.array([[("k", text)] for text in texts], pa.map_(pa.string(), pa.string())),
            "time": pa.array([1] * rows, pa.timestamp("us", "UTC")),
            "bytes": pa.array([b"\xff"] * rows, pa.binary(1)),
            "null": pa.nulls(rows),
        }
    )
    for name, options in {
        "plain": {"use_dictionary": False},
        "dictionary": {"dictionary_pagesize_limit": 2**26},
        "both": {"row_group_size": 3000, "data_page_size": 5000},
        "second": {"data_page_version": "2.0", "compression": "zstd"},
    }.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path, **options)
        expected = table.to_pylist()
        held = list(load_rows(path))
        assert [number for number, _ in held] == list(range(1, rows + 1))
        assert all(dict(cells) == row for (_, cells), row in zip(held, expected, strict=True)), name
        assert [cells["text"] for _, cells in load_rows(path)] == texts


def test_what_is_no_utf8_is_named_with_its_row_and_column(tmp_path):
    path = tmp_path / "bad.parquet"
    good = [b"a text"] * 5000
    texts = pa.array([*good, b"\xff\xfe", *good]).view(pa.string())
    pq.write_table(pairs(10_001).set_column(1, "sentence2", texts), path)
    with pytest.raises(DataError, match=r"bad.parquet, row 5001, column 'sentence2': the cells are damaged \(.*UTF"):
        read_pairs(path)
    in_memory = pa.table({"sentence1": texts, "sentence2": texts, "score": [1.0] * 10_001})
    with pytest.raises(DataError, match=r"row 5001, column 'sentence1'"):
        read_pairs(in_memory)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text", "embedding"])
def test_files_of_vectors_are_bounded_too(tmp_path, name):
    columns = {"text": ["a"] * 20_000, "embedding": lists_of(pa.array(np.zeros(40_000, np.float32)), 2)}
    columns[name] = often(LONG, 20_000) if name == "text" else lists_of(often(1.5, 24_000_000), 1200)
    path = tmp_path / "vectors.parquet"
    table = pa.table({key: value[: len(columns[name])] for key, value in columns.items()})
    pq.write_table(table, path, compression="zstd", store_schema=False)
    with pytest.raises(ModelError, match=r"vectors.parquet.*'(text|embedding)'"):
        read_vectors(path)


def read_all(path):
    """What a file holds, or the error that refuses it."""
    try:
        return [dict(cells) for _, cells in load_rows(path)]
    except DataError as error:
        assert str(path) in str(error)
        return error


def test_damaged_bytes_give_rows_or_an_error(tmp_path):
    """Flipped bits, noise, truncation and moved blocks: only DataError, and quickly."""
    outcomes = {"rows": 0, "refused": 0}
    for seed in range(rounds(300, 20_000)):
        draw = random.Random(seed)
        stream = io.BytesIO()
        texts = [draw.choice(["a", "some text", "é" * 9, None]) for _ in range(60)]
        table = pa.table({"text": texts, "list": [[text, "b"] for text in texts], "number": list(range(60))})
        options = {
            "compression": draw.choice(["zstd", "snappy", "gzip", "none"]),
            "use_dictionary": draw.random() < 0.5,
        }
        pq.write_table(table, stream, **options, data_page_version=draw.choice(["1.0", "2.0"]), row_group_size=25)
        content = bytearray(stream.getvalue())
        for _ in range(draw.randint(1, 4)):
            index = draw.randrange(len(content))
            content[index : index + draw.choice([1, 1, 1, 4])] = draw.randbytes(draw.choice([0, 1, 1, 1, 4]))
        if draw.random() < 0.1:
            del content[draw.randrange(len(content)) :]
        path = tmp_path / "damaged.parquet"
        path.write_bytes(content)
        outcomes["refused" if isinstance(read_all(path), DataError) else "rows"] += 1
    figures("damaged Parquet", outcomes)
    assert all(outcomes.values()), outcomes


def test_a_damaged_folder_of_datasets_gives_rows_or_an_error(tmp_path):
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "saved"
    datasets.Dataset.from_dict({"text": ["a text", "é"] * 30, "label": [1, 2] * 30}).save_to_disk(folder)
    (file,) = folder.glob("*.arrow")
    good = file.read_bytes()
    for seed in range(rounds(60, 2000)):
        draw = random.Random(seed)
        content = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        file.write_bytes(content[: draw.choice([None, None, None, len(content) // 2])])
        read_all(folder)


def test_a_file_of_far_too_many_rows_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": often("a", 3_000_000)}), path, store_schema=False)
    with pytest.raises(DataError, match="3,000,000 rows stand in"):
        read_pairs(path)


def test_heads_of_pages_say_what_the_footer_says(tmp_path):
    path = tmp_path / "pages.parquet"
    pq.write_table(pairs(20_000), path, data_page_size=2000, row_group_size=7000)
    footer = pq.ParquetFile(path).metadata
    with path.open("rb") as stream:
        for group in range(footer.num_row_groups):
            for column in range(3):
                chunk = footer.row_group(group).column(column)
                heads = list(pages(stream, chunk, "pages"))
                assert sum(page.values for page in heads if page.kind in (0, 3)) == chunk.num_values
                assert 0 < sum(page.unpacked for page in heads) <= chunk.total_uncompressed_size


@pytest.mark.parametrize("command", ["doctor", "dedup"])
def test_commands_refuse_a_bomb_without_a_traceback(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"text": often(LONG, 20_000)}), "bomb.parquet", compression="zstd", store_schema=False)
    code, _, err = run_command(capsys, command, "bomb.parquet", *(["--model", "words"] if command == "dedup" else []))
    assert code == 2 and "bomb.parquet" in err and "column 'text'" in err and "Traceback" not in err
