"""How many files of the library a reader of the code opens to follow the reading of a small file."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import samesense
from samesense import read

ROWS = [(f"A man plays song {number}.", f"Dinner for {number * 7 % 40} guests.", number / 8) for number in range(40)]
NAMES = ("sentence1", "sentence2", "score")
CONTENTS = {
    ".tsv": "".join("\t".join(map(str, row)) + "\n" for row in [NAMES, *ROWS]),
    ".csv": "".join(",".join(map(str, row)) + "\n" for row in [NAMES, *ROWS]),
    ".jsonl": "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS),
    ".txt": "".join(f"{row[0]}\n" for row in ROWS),
}


def entered_files(call: Callable[[], object]) -> set[str]:
    """Return the files of the library in which a function ran during a call; imports are not counted."""
    library = Path(samesense.__file__).parent
    call()  # imports what is imported on first use
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(library):
            files.add(str(Path(frame.f_code.co_filename).relative_to(library)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return files


@pytest.mark.parametrize("suffix", CONTENTS)
def test_reading_forty_rows_goes_through_few_files(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"data{suffix}"
    source.write_text(CONTENTS[suffix])
    files = entered_files(lambda: read(source))
    assert len(files) <= 10, sorted(files)
