"""The page on Spark says what works: its programs are run on a local Spark, where pyspark and Java are there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samesense

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
ENCODE, DUPLICATES = re.findall(r"```python no-run\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def submit(tmp_path):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    environment = {"PYSPARK_PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
    master = {"PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false pyspark-shell"}

    def run(code, **constants):
        for name, value in constants.items():
            code, count = re.subn(rf"(?m)^{name} = [^ \n]+", f"{name} = {value!r}", code)
            assert count == 1, name
        (tmp_path / "program.py").write_text(code, encoding="utf-8")
        words = [sys.executable, "program.py"]
        done = subprocess.run(
            words, cwd=tmp_path, env={**os.environ, **environment, **master}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    return run


@pytest.mark.long  # starts Spark
def test_the_program_that_encodes_runs(submit, tmp_path, tiny_trunk, sentences):
    texts = [*sentences, "", "  "]
    pq.write_table(pa.table({"id": list(range(len(texts))), "text": texts}), tmp_path / "texts.parquet")
    submit(ENCODE, MODEL=str(tiny_trunk))
    rows = sorted(pq.read_table(tmp_path / "vectors").to_pylist(), key=lambda row: row["id"])
    assert [row["text"] for row in rows] == sentences
    expected = samesense.encode(str(tiny_trunk), sentences, normalize=True)
    np.testing.assert_allclose([row["embedding"] for row in rows], expected, atol=0.02)  # bfloat16 by batches


@pytest.mark.long  # starts Spark
def test_the_program_that_finds_duplicates_finds_what_dedup_finds(submit, tmp_path):
    random = np.random.default_rng(0)
    centres = random.normal(size=(60, 16))
    # Groups of one to four, some of them chains: each row is close to the one before.
    vectors = np.concatenate(
        [centre + 0.12 * random.normal(size=(1 + n % 4, 16)).cumsum(axis=0) for n, centre in enumerate(centres)]
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = vectors.astype(np.float32)
    table = pa.table({"id": np.arange(len(rows)), "embedding": pa.array(rows.tolist(), pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "vectors.parquet")
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors.parquet").rename(tmp_path / "vectors" / "part.parquet")
    submit(DUPLICATES, LISTS=20, PROBES=20)
    written = pq.read_table(tmp_path / "groups").to_pylist()
    groups = {}
    for row in written:
        groups.setdefault(row["group"], set()).add(row["id"])
    assert sorted(map(sorted, groups.values())) == linked(rows, 0.9)


def linked(rows, threshold):
    """Groups of two or more by depth-first search over all pairs."""
    near = rows @ rows.T >= threshold
    unseen = set(range(len(rows)))
    groups = []
    while unseen:
        stack = [unseen.pop()]
        group = set(stack)
        while stack:
            neighbours = set(np.flatnonzero(near[stack.pop()])) & unseen
            unseen -= neighbours
            group |= neighbours
            stack += neighbours
        if len(group) > 1:
            groups.append(sorted(map(int, group)))
    return sorted(groups)
