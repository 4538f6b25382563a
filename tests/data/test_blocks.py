"""Blocks of a file, in every format and block size, together hold each row of the file once, in order."""

import bz2
import gzip
import json
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from samesense.data.rows.blocks import blocks, rows_at
from samesense.data.rows.compression import split_suffix
from samesense.data.rows.load import read_rows

ROWS = [
    {"id": str(n), "text": f"text {n} " + "ä文😀"[n % 3] * (n % 4) + ("\ufeff" if n == 4 else "")} for n in range(11)
]


def quoted(row):
    text = row["text"] + ('\nsecond "line"' if int(row["id"]) % 2 else "")
    return f'{row["id"]},"{text.replace(chr(34), chr(34) * 2)}"\r\n'


def made(folder, name):
    content = {
        ".tsv": "\ufeffid\ttext\n\n" + "".join(f"{row['id']}\t{row['text']}\r\n" for row in ROWS),
        ".csv": "id,text\n" + "\n".join(map(quoted, ROWS)),
        ".jsonl": "".join(f"{json.dumps(row, ensure_ascii=row['id'] == '3')}\n" for row in ROWS) + "\n",
        ".json": json.dumps(ROWS),
        "headerless.tsv": "".join(f"a{n}\tb{n}\t{'nan' if n == 5 else n}\n" for n in range(11)),
        "headerless.csv": "".join(f"a{n};b {n};{n}\n" for n in range(11)),
        "semicolons.csv": "id;body\n"
        + "".join(f'{n};"{n % 2 * "one; "}and {n % 3 * chr(10)}{n}"\n' for n in range(11)),
        "said.csv": "sep=;\nid;body\n" + "".join(f'{n};"one; {n}"\n' for n in range(11)),
    }
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=4)
    elif split_suffix(name).packing:
        by_ending = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
        path.write_bytes(by_ending[split_suffix(name).packing](content[split_suffix(name).suffix].encode()))
    else:
        path.write_bytes(content[name.removeprefix("x")].encode())
    return path


@pytest.mark.parametrize(
    "name",
    [
        "x.tsv",
        "x.csv",
        "x.jsonl",
        "x.json",
        "x.parquet",
        "x.csv.gz",
        "x.tsv.gz",
        "x.csv.xz",
        "x.tsv.bz2",
        "headerless.tsv",
        "headerless.csv",
        "semicolons.csv",
        "said.csv",
    ],
)
def test_blocks_are_the_rows_of_the_file_and_are_read_again_alone(tmp_path, name):
    path = made(tmp_path, name)
    whole = list(read_rows(path))
    assert len(whole) == 11
    for size in (1, 2, 3, 4, 10, 11, 12):
        read_blocks = list(blocks(str(path), size))
        assert [row for block in read_blocks for row in block.rows] == whole
        assert [len(block.rows) for block in read_blocks[:-1]] == [size] * (len(read_blocks) - 1)
        for block in read_blocks:
            again = [cells for _, cells in rows_at(str(path), block.start, block.end, block.form)]
            assert again == [cells for _, cells in block.rows], (size, block)


def test_a_place_is_read_without_what_stands_before_it(tmp_path):
    path = made(tmp_path, "x.jsonl")
    last = list(blocks(str(path), 4))[-1]
    content = path.read_bytes()
    path.write_bytes(b"\xff" * last.start + content[last.start :])
    assert [cells["id"] for _, cells in rows_at(str(path), last.start, last.end, last.form)] == ["8", "9", "10"]


def test_a_file_without_a_row_has_no_block(tmp_path):
    for name, content in (("a.tsv", b"id\ttext\n"), ("a.jsonl", b""), ("a.txt", b""), ("a.json", b"[]")):
        (tmp_path / name).write_bytes(content)
        assert list(blocks(str(tmp_path / name), 3)) == []
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "a.parquet")
    assert list(blocks(str(tmp_path / "a.parquet"), 3)) == []
