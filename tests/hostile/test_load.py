"""Good clients beside one that sends a hostile body again and again; all bodies are in benchmarks/hostile_load.py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "hostile_load.py"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("bodies", ["names", "documents", "deep", "900,000"])
def test_others_hardly_notice(tmp_path, bodies):
    """Regression test of bodies that blocked all requests for up to a minute, or took gigabytes."""
    sizes = ["--rounds", "3", "--seconds", "2", "--texts", "500", "--only", bodies]
    command = [sys.executable, BENCHMARK, *sizes, "--results", tmp_path / "load.jsonl"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, check=True, env=environment, capture_output=True)
    quiet, *hostile, _ = json.loads((tmp_path / "load.jsonl").read_text())["table"]
    assert len(hostile) >= 2 and quiet["tracebacks"] == 0
    for spell in hostile:
        assert (spell["wrong"], spell["factor"] < 3, spell["memory_mb"] < 200) == ({}, True, True), spell
