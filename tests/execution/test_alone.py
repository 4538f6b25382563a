import subprocess
import sys

import pytest

from samesense.errors import OutputError
from samesense.execution.folder_lock import LOCK, is_empty, only_writer

HOLD = """
import sys
from pathlib import Path
from samesense.execution.folder_lock import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_kept_out_until_the_first_is_killed(tmp_path):
    folder = tmp_path / "made" / "here"
    words = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match="has one writer at a time") as refused, only_writer(folder):
            pass
        assert str(folder) in str(refused.value)
        with pytest.raises(OutputError, match=r"for 0\.1 s"), only_writer(folder, 0.1):
            pass
        holder.kill()
    with only_writer(folder):
        assert is_empty(folder)
        (folder / "something").touch()
        assert not is_empty(folder)
    assert {path.name for path in folder.iterdir()} <= {LOCK, "something"}
