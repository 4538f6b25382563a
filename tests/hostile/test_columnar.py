"""Parquet and Arrow from anywhere: rows, or a DataError with the column and the row; never more memory than is due."""

import io
import os
import random
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from samesense.data import load_rows, read_pairs
from samesense.encoder.vectors.lookup import read_vectors
from samesense.encoder.vectors.stored import stored_rows
from samesense.errors import DataError, ModelError
from samesense.parquet import pages
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

next(load_rows(sys.argv[2]))["text"] if False else next(load_rows(sys.argv[2]))[1]["text"]
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
    "texts that begin alike": (lambda: [LONG] * 600, {"column_encoding": "DELTA_BYTE_ARRAY", "use_dictionary": False}),
    "a page": (lambda: ["a" * 2**29], {"use_dictionary": False}),
    "a cell": (lambda: ["a" * 2**25], {"use_dictionary": False}),
    "a list": (lambda: lists_of(often("a", 30_000_000), 30_000_000), {}),
    "bytes of a fixed length": (lambda: pa.array([b"a" * 500_000] * 4000, pa.binary(500_000)), {}),
}


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak is told by Linux")
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_little_memory(tmp_path, name):
    make, options = BOMBS[name]
    path, other = tmp_path / "bomb.parquet", tmp_path / "other.parquet"
    pq.write_table(pa.table({"text": make()}), path, compression="zstd", store_schema=False, **options)
    pq.write_table(pa.table({"text": ["a"]}), other)
    assert path.stat().st_size < 100_000
    ended = subprocess.run([sys.executable, "-c", FRESH, path, other], capture_output=True, text=True, check=True)
    *message, grown = ended.stdout.splitlines()
    assert int(grown) < 600_000, grown
    assert len(message) == 1 and str(path) in message[0] and "'text'" in message[0], message
