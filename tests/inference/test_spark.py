"""The page on Spark says what works: its program is run on a local Spark, where pyspark and Java are there."""

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


@pytest.mark.long  # starts Spark
def test_the_program_of_the_page_runs(tmp_path, tiny_trunk, sentences):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    code = re.search(r"```python no-run\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert 'MODEL = "default"' in code
    (tmp_path / "program.py").write_text(code.replace('MODEL = "default"', f"MODEL = {str(tiny_trunk)!r}"))
    texts = [*sentences, "", "  "]
    pq.write_table(pa.table({"id": list(range(len(texts))), "text": texts}), tmp_path / "texts.parquet")
    environment = {"PYSPARK_PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
    master = {"PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false pyspark-shell"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env={**os.environ, **environment, **master}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = sorted(pq.read_table(tmp_path / "vectors").to_pylist(), key=lambda row: row["id"])
    assert [row["text"] for row in rows] == sentences
    expected = samesense.encode(str(tiny_trunk), sentences, normalize=True)
    np.testing.assert_allclose([row["embedding"] for row in rows], expected, atol=0.02)  # bfloat16 by batches
