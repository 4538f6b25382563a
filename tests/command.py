"""The command line, run in this process."""

from samesense.cli.main import main


def run_command(capsys, *arguments):
    """Result of a command: exit code, standard output, standard error."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code or 0, captured.out, captured.err
