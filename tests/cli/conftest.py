import io

import pytest

from samesense.cli.main import main


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs the command line in this process: (exit code, standard output, standard error)."""

    def call(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code or 0, captured.out, captured.err

    return call
