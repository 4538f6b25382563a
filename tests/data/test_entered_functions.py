"""How many functions a reader of the code follows to understand the reading of a small file.

Functions and not files: a file of several topics is no shorter to read than one file for each of them.
"""

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


def entered_functions(call: Callable[[], object]) -> set[str]:
    """Return the functions of the library that ran during a call; imports are not counted."""
    library = Path(samesense.__file__).parent
    call()  # imports what is imported on first use
    functions: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_ours = Path(code.co_filename).is_relative_to(library)
        if event == "call" and is_ours and not code.co_name.startswith("<"):  # no comprehension or lambda
            functions.add(f"{Path(code.co_filename).relative_to(library)}: {code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return functions


@pytest.mark.parametrize("suffix", CONTENTS)
def test_reading_forty_rows_goes_through_few_functions(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"data{suffix}"
    source.write_text(CONTENTS[suffix])
    functions = entered_functions(lambda: read(source))
    assert len(functions) <= 125, sorted(functions)
