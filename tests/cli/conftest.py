import io

import pytest

from tests.command import run_command


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs the command line in this process: (exit code, standard output, standard error)."""

    def call(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        return run_command(capsys, *arguments)

    return call
