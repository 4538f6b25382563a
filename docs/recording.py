"""Record the end of a training in a terminal, and draw it as docs/images/verdict.svg.

    python docs/recording.py

It trains on the sample of the package, for about a minute. What the last digits are depends on the machine, so that no
check compares the picture.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from samesense.data import sample_path

IMAGE = Path(__file__).with_name("images") / "verdict.svg"
COMMAND = ["train", "train.tsv", "--dev", "dev.tsv", "--test", "test.tsv", "--output", "runs/mine"]
BEGIN = "verdict: "
"""What the first line begins with that is drawn."""

WIDTH = 104
"""Characters of a line."""

THEME = TerminalTheme(
    (253, 253, 252),
    (27, 28, 30),
    [
        (27, 28, 30),
        (213, 94, 0),
        (0, 135, 95),
        (160, 110, 0),
        (0, 95, 160),
        (140, 70, 120),
        (0, 120, 130),
        (95, 99, 107),
    ],
)


def recorded(folder: Path) -> str:
    """Return what the command prints at its end, in a folder that holds the sample."""
    for split in ("train", "dev", "test"):
        shutil.copy(sample_path(split), folder / f"{split}.tsv")
    words = [sys.executable, "-m", "samesense", *COMMAND]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, env=environment)
    lines = (done.stderr + done.stdout).splitlines()
    start = next(row for row, line in enumerate(lines) if line.startswith(BEGIN))
    return "\n".join(lines[start:])


def draw(text: str) -> str:
    """Return a terminal window as SVG, with the command and what it printed."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bright_black"), (" ".join(["samesense", *COMMAND]), "bold"), "\n..."))
    for line in text.splitlines():
        console.print(Text(line, style="bold green" if line.startswith(f"{BEGIN}better") else ""))
    svg = console.export_svg(title="samesense train", theme=THEME)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # which would load fonts from elsewhere


def main() -> None:
    """Record and draw."""
    with tempfile.TemporaryDirectory() as folder:
        IMAGE.write_text(draw(recorded(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
