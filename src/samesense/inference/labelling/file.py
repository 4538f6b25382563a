"""The file of labels: one line a label, on disk before the next pair is shown, and nothing of anyone else's."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from samesense.errors import ConfigError, DataError, OutputError
from samesense.failures import writing
from samesense.files import append, only_writer_of, write_text
from samesense.places import check_place
from samesense.types import Pair

COLUMNS = ("sentence1", "sentence2", "score", "labelled_by")
HEADER = "\t".join(COLUMNS) + "\n"


class Labels:
    """An open file of labels; see :func:`open_labels`.

    Attributes:
        path: of the file.
        by: who labels, as every line says.
    """

    def __init__(self, path: Path, by: str) -> None:
        self.path, self.by = path, by
        self._lines = path.suffix == ".jsonl"
        self._known: set[frozenset[str]] = set()
        self._added: list[tuple[frozenset[str], int, int]] = []  # pair, first and last byte, since it was opened
        self._read()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, pair: Pair) -> bool:
        return frozenset(pair) in self._known

    def add(self, labelled: Sequence[tuple[Pair, float]]) -> None:
        """Append labels of pairs that have none; on disk when it returns. OutputError if they cannot be written."""
        start, lines = self.path.stat().st_size, [self._line(pair, score) for pair, score in labelled]
        added = b"".join(lines)
        with writing(self.path), self.path.open("r+b", buffering=0) as stream:  # what fails is not written on closing
            stream.seek(start)
            try:
                if stream.write(added) != len(added):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(stream.fileno())
            except OSError:
                stream.truncate(start)
                raise
        for (pair, _), line in zip(labelled, lines, strict=True):
            self._added.append((frozenset(pair), start, start + len(line)))
            self._known.add(frozenset(pair))
            start += len(line)

    def undo(self) -> None:
        """Take back the label added last since the file was opened; OutputError if the file was changed meanwhile."""
        pair, start, end = self._added[-1]
        with writing(self.path), self.path.open("r+b") as stream:
            if stream.seek(0, os.SEEK_END) != end:
                raise OutputError(f"{self.path} was changed by another program: the last label is not taken back.")
            stream.truncate(start)
            os.fsync(stream.fileno())
        self._added.pop()
        self._known.discard(pair)

    def check(self, pairs: Sequence[Pair]) -> None:
        """Raise DataError if a text cannot stand in a cell of the file."""
        for pair in pairs if not self._lines else ():
            for text in pair:
                if any(sign in text for sign in "\t\r\n"):
                    raise DataError(
                        f"A text in a .tsv file has no tab and no line break; {text[:60]!r} has. Name an output that "
                        "ends in .jsonl"
                    )

    def _line(self, pair: Pair, score: float) -> bytes:
        shown = f"{score:.6g}"
        if self._lines:
            cells = dict(zip(COLUMNS, (*pair, float(shown), self.by), strict=True))
            return (json.dumps(cells, ensure_ascii=False) + "\n").encode()
        return ("\t".join((*pair, shown, self.by)) + "\n").encode()

    def _read(self) -> None:
        """Read what is there."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.decode("utf-8", "replace").split("\n")[:-1]
        if not self._lines and (not lines or lines[0].rstrip("\r") != HEADER.rstrip("\n")):
            raise self._other()
        for number, line in enumerate(lines[0 if self._lines else 1 :], 1 if self._lines else 2):
            self._known.add(self._pair_of(line.rstrip("\r"), number))
        if len(whole) < len(content):
            self._mend(content[len(whole) :].decode("utf-8", "replace"), len(whole))

    def _mend(self, last: str, start: int) -> None:
        """Drop a last line that a kill cut off, or end it where nothing but its end is missing."""
        if not start and not last.startswith(f'{{"{COLUMNS[0]}": '):
            raise self._other()
        cells = self._cells(last)
        if len(cells) == len(COLUMNS) and cells[3] == self.by:
            append(self.path, b"\n")
            self._known.add(frozenset(cells[:2]))
        else:
            os.truncate(self.path, start)

    def _pair_of(self, line: str, number: int) -> frozenset[str]:
        cells = self._cells(line)
        if len(cells) != len(COLUMNS):
            raise (
                self._other()
                if number <= 1
                else DataError(
                    f"{self.path}, row {number}: it is no label, {', '.join(COLUMNS)}. Put the row right or delete it."
                )
            )
        if cells[3] != self.by:
            raise ConfigError(
                f"A file holds the labels of one; {self.path} holds those by {cells[3]!r}, and now it is {self.by!r}. "
                "Name another output."
            )
        return frozenset(cells[:2])

    def _cells(self, line: str) -> list[str]:
        if not self._lines:
            return line.split("\t")
        try:
            row = json.loads(line)
            return [str(row[name]) for name in COLUMNS]
        except (ValueError, KeyError, TypeError):
            return []

    def _other(self) -> OutputError:
        return OutputError(
            f"{self.path} is there and is no file of labels made here ({', '.join(COLUMNS)}). Name another output."
        )


@contextmanager
def open_labels(path: Path, by: str, inputs: Sequence[str | Path] = ()) -> Iterator[Labels]:
    """Hold a file of labels by someone, made if it is not there, and there is a label in the end.

    ConfigError if it ends in neither ``.tsv`` nor ``.jsonl``, or holds the labels of someone else; OutputError if it is
    another file, one of ``inputs``, or another process writes to it.
    """
    if path.suffix not in (".tsv", ".jsonl"):
        raise ConfigError(f"Labels are written to a file that ends in .tsv or .jsonl; received {str(path)!r}.")
    check_place(path, inputs)
    with only_writer_of(path):
        made = not path.exists()
        if made:
            write_text(path, "" if path.suffix == ".jsonl" else HEADER, sync=True)
        labels = Labels(path, by)
        try:
            yield labels
        finally:
            if made and not len(labels):
                path.unlink()
