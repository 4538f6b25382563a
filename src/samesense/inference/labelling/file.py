"""The file of labels: one line a label, by one labeller, on disk before the next pair is shown."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from samesense.data.conventions.texts import character_problem
from samesense.data.rows.tsv import quote_fields, unquote_fields
from samesense.errors import ConfigError, DataError, OutputError
from samesense.failures import writing
from samesense.files import parse_json, write_text
from samesense.locks import only_writer_of
from samesense.places import check_place
from samesense.types import Pair

logger = logging.getLogger(__name__)

COLUMNS = ("sentence1", "sentence2", "score", "labelled_by")
HEADER = "\t".join(COLUMNS) + "\n"


class Labels:
    """An open file of labels; see :func:`open_labels`.

    Attributes:
        path: path of the file.
        by: name of the labeller, which every line holds.
    """

    def __init__(self, path: Path, by: str) -> None:
        self.path = path
        self.by = by
        self._json_lines = path.suffix == ".jsonl"
        self._pairs: set[frozenset[str]] = set()
        self._added: list[tuple[frozenset[str], int, int]] = []  # pair, first and last byte, since it was opened
        self._read()

    def __len__(self) -> int:
        return len(self._pairs)

    def __contains__(self, pair: Pair) -> bool:
        return frozenset(pair) in self._pairs

    def add(self, labelled: Sequence[tuple[Pair, float]]) -> None:
        """Append labels of pairs that have none; they are on disk when this returns. OutputError if that fails."""
        lines = [self._line(pair, score) for pair, score in labelled]
        # Unbuffered: after a failed write, a buffer would be written again on closing.
        with writing(self.path), self.path.open("r+b", buffering=0) as stream:
            end = stream.seek(0, os.SEEK_END)
            # An empty file has no last byte.
            stream.seek(max(0, end - 1))
            # Some editors remove the last line break.
            missing = b"" if stream.read(1) in (b"", b"\n") else b"\n"
            added = missing + b"".join(lines)
            try:
                # An unbuffered write may be short without an error, as on a full disk; the next one says why.
                written = 0
                while written < len(added):
                    written += stream.write(added[written:])
                os.fsync(stream.fileno())
            except OSError:
                stream.truncate(end)
                raise
        start = end + len(missing)
        for (pair, _), line in zip(labelled, lines, strict=True):
            self._added.append((frozenset(pair), start, start + len(line)))
            self._pairs.add(frozenset(pair))
            start += len(line)

    def undo(self) -> None:
        """Remove the label added last since the file was opened; OutputError if another program changed the file."""
        pair, start, end = self._added[-1]
        with writing(self.path), self.path.open("r+b") as stream:
            if stream.seek(0, os.SEEK_END) != end:
                raise OutputError(f"{self.path} was changed by another program: the last label is not taken back.")
            stream.truncate(start)
            os.fsync(stream.fileno())
        self._added.pop()
        self._pairs.discard(pair)

    def check(self, pairs: Sequence[Pair]) -> None:
        """Raise DataError if a text cannot be read back from the file."""
        for text in (text for pair in pairs for text in pair):
            if wrong := character_problem(text):
                raise DataError(
                    f"A text that is labelled must be characters; {text[:60]!r} is not: {wrong}. Correct it."
                )
            if not self._json_lines and any(sign in text for sign in "\t\r\n"):
                raise DataError(
                    f"A text in a .tsv file has no tab and no line break; {text[:60]!r} has. Name an output that "
                    "ends in .jsonl"
                )

    def _line(self, pair: Pair, score: float) -> bytes:
        number = f"{score:.6g}"
        if self._json_lines:
            cells = dict(zip(COLUMNS, (*pair, float(number), self.by), strict=True))
            return (json.dumps(cells, ensure_ascii=False) + "\n").encode()
        return ("\t".join(quote_fields([*pair, number, self.by])) + "\n").encode()

    def _read(self) -> None:
        """Read the existing labels, and drop a last line that was cut off."""
        content = self.path.read_bytes()
        start = content.rfind(b"\n") + 1
        # What was cut off may end within a character.
        *lines, last = content.decode("utf-8", "replace").split("\n")
        if not self._json_lines and (not lines or lines[0].rstrip("\r") != HEADER.rstrip("\n")):
            raise self._not_ours()
        cut_off = self._is_cut_off(last, alone=start == 0)
        if last and not cut_off:
            lines.append(last)
        header_lines = 0 if self._json_lines else 1
        for number, line in enumerate(lines[header_lines:], header_lines + 1):
            # Some editors end lines with \r\n.
            self._pairs.add(self._pair_of(line.rstrip("\r"), number))
        if last and cut_off:
            logger.warning(f"{self.path}: the last label was cut off and is dropped: {last!r}")
            os.truncate(self.path, start)

    def _is_cut_off(self, last: str, *, alone: bool) -> bool:
        """Return whether a last line without a line break is an incomplete line written by this class."""
        if not self._json_lines:
            cells = last.split("\t")
            # The last cell may be the beginning of the labeller's name.
            whole = len(cells) >= len(COLUMNS) and (cells[3] == self.by or not self.by.startswith(cells[3]))
            return not whole
        # A whole line is JSON, even without its line break.
        with suppress(ValueError):
            parse_json(last)
            return False
        beginning = f'{{"{COLUMNS[0]}": "'
        return last.startswith(beginning) or (beginning.startswith(last) and not alone)

    def _pair_of(self, line: str, number: int) -> frozenset[str]:
        cells = self._cells(line)
        if len(cells) != len(COLUMNS):
            if number <= 1:  # no file of labels at all
                raise self._not_ours()
            raise DataError(
                f"{self.path}, row {number}: it is no label, {', '.join(COLUMNS)}. Put the row right or delete it."
            )
        if cells[3] != self.by:
            raise ConfigError(
                f"A file holds the labels of one; {self.path} holds those by {cells[3]!r}, and now it is {self.by!r}. "
                "Name another output."
            )
        return frozenset(cells[:2])

    def _cells(self, line: str) -> list[str]:
        if not self._json_lines:
            return unquote_fields(line)
        try:
            row = parse_json(line)
            return [str(row[name]) for name in COLUMNS]
        except (ValueError, KeyError, TypeError):
            return []

    def _not_ours(self) -> OutputError:
        return OutputError(
            f"{self.path} is there and is no file of labels made here ({', '.join(COLUMNS)}). Name another output."
        )


@contextmanager
def open_labels(path: Path, by: str, inputs: Sequence[str | Path] = ()) -> Iterator[Labels]:
    """Yield the labels of ``by`` in a file, which is created if needed, and removed again if it gets no label.

    ConfigError if the name ends in neither ``.tsv`` nor ``.jsonl``, or the file holds the labels of someone else;
    OutputError if it is not a file of labels, is one of ``inputs``, or another process writes to it.
    """
    if path.suffix not in (".tsv", ".jsonl"):
        raise ConfigError(f"Labels are written to a file that ends in .tsv or .jsonl; received {str(path)!r}.")
    check_place(path, inputs)
    with only_writer_of(path):
        is_new = not path.exists()
        if is_new:
            write_text(path, "" if path.suffix == ".jsonl" else HEADER, sync=True)
        labels = Labels(path, by)
        try:
            yield labels
        finally:
            if is_new and not len(labels):
                path.unlink()
