"""Commands that messages suggest can be pasted into a shell, whatever the names of files are."""

import re
import shlex
from pathlib import Path

import samesense
from samesense.cli.main import GROUPS
from tests.command import run_command

COMMANDS = "|".join(name for names in GROUPS.values() for name in names)
SOURCE = Path(samesense.__file__).parent

# A name between braces behind a command, which is not quoted for a shell.
UNQUOTED = re.compile(rf"samesense (?:{COMMANDS})\b[^\"'.;:]*\{{(?!quote\(|shlex\.)\w+[^}}]*\}}")
CHOICES = ("--{option}", "--method {name}", "{flag}")
"""Words of the library itself, not of the user."""


def test_names_of_the_user_are_quoted_in_commands():
    unquoted = [
        f"{path.relative_to(SOURCE)}: {match[0]}"
        for path in SOURCE.rglob("*.py")
        for match in UNQUOTED.finditer(path.read_text(encoding="utf-8"))
        if not match[0].endswith(CHOICES)
    ]
    assert not unquoted


def test_a_folder_with_a_space_can_be_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("w.vec").write_text("a 1 2\nman 3 1\ndog 2 2\neats 1 -3\n")
    Path("my texts.txt").write_text("a man eats\na dog eats\n")
    _, _, err = run_command(capsys, "index", "build", "my index", "my texts.txt", "--model", "words:w.vec")
    words = shlex.split(err.partition("next: samesense ")[2])
    code, out, err = run_command(capsys, *words[:-1], "a dog")
    assert (code, "a dog eats" in out) == (0, True), err
    Path("my data.tsv.zst").write_bytes(b"(\xb5/\xfd")
    assert run_command(capsys, "doctor", "my data.tsv.zst")[2].rstrip().endswith("'my data.tsv.zst'")
