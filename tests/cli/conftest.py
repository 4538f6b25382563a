import io

import pytest

from tests.command import run_command


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs the command line in this process: (exit code, standard output, standard error)."""

    def call(*arguments, stdin=None):
        if stdin is not None:
            stdin_bytes = stdin if isinstance(stdin, bytes) else stdin.encode()
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin_bytes), encoding="utf-8"))
        return run_command(capsys, *arguments)

    return call
