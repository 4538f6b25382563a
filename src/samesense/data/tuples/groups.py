"""Statements about anchors put together anchor by anchor, in bounded memory and in order of first appearance.

Up to ``most_rows`` statements are grouped in memory. More of them are dealt by a hash of their group to temporary
files; each file is grouped on its own, or dealt again where it is still too large, and the groups of all files are
merged by the row in which they began. What comes out does not depend on the bound.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

Side = Literal["positive", "neutral", "negative"]

MOST_ROWS = 1_000_000
"""Statements held at once unless told otherwise: about half a gigabyte of NLI."""

PARTS = 64
"""Files among which statements are dealt."""

Numbered = tuple[int, "Statement"]


class Statement(NamedTuple):
    """What one row says of an anchor and a partner; statements of one group are put together."""

    group: str
    anchor: str
    partner: str
    side: Side


@dataclass(frozen=True)
class Group:
    """An anchor with its partners, each once and in order of appearance.

    Attributes:
        anchor: the text.
        positives: texts that say the same, or follow from it.
        negatives: texts that contradict it.
        neutrals: texts that do neither.
        contradictory: partners given both as positive and as negative; they are neither, and left out.
        repeated: statements left out because they stood there before.
        itself: statements left out because the partner is the anchor's own text.
    """

    anchor: str
    positives: list[str]
    negatives: list[str]
    neutrals: list[str]
    contradictory: int = 0
    repeated: int = 0
    itself: int = 0


def grouped(
    statements: Iterable[Statement], *, most_rows: int = MOST_ROWS, folder: Path | None = None
) -> Iterator[Group]:
    """Yield the groups in the order in which they first appear.

    Args:
        statements: rows in any order; those of a group need not stand together.
        most_rows: statements held at once. Only a single group that has more is held as a whole.
        folder: where temporary files of about twice the size of the statements are written; the system's place by
            default. They are removed at the end.
    """
    numbered = enumerate(statements)
    first = list(islice(numbered, most_rows + 1))
    if len(first) <= most_rows:
        yield from (group for _, group in _formed(first))
        return
    with TemporaryDirectory(dir=folder, prefix="samesense-groups-") as home:
        yield from (group for _, group in _on_disk(_emptied(first, numbered), Path(home), most_rows))


def _emptied(first: list[Numbered], rest: Iterator[Numbered]) -> Iterator[Numbered]:
    """Yield all rows, and let go of the first ones on the way."""
    first.reverse()
    while first:
        yield first.pop()
    yield from rest


def _formed(rows: Iterable[Numbered]) -> list[tuple[int, Group]]:
    """Return the groups of some rows with the number of the row in which each begins, in that order."""
    found: dict[str, tuple[int, str, list[Statement]]] = {}
    for number, row in rows:
        found.setdefault(row.group, (number, row.anchor, []))[2].append(row)
    return [(number, _group(anchor, own)) for number, anchor, own in found.values()]


def _group(anchor: str, rows: list[Statement]) -> Group:
    sides: dict[Side, dict[str, None]] = {"positive": {}, "negative": {}, "neutral": {}}
    itself = 0
    for row in rows:
        if row.partner == anchor:
            itself += 1
        else:
            sides[row.side][row.partner] = None
    both = sides["positive"].keys() & sides["negative"].keys()
    return Group(
        anchor,
        [text for text in sides["positive"] if text not in both],
        [text for text in sides["negative"] if text not in both],
        list(sides["neutral"]),
        contradictory=len(both),
        repeated=len(rows) - itself - sum(map(len, sides.values())),
        itself=itself,
    )


class _Part:
    """A file of rows that have a hash in common."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.group: str | None = None
        self.several = False
        self.out = path.open("w", encoding="utf-8")

    def add(self, number: int, row: Statement) -> None:
        self.several |= self.group not in (None, row.group)
        self.group = row.group
        self.rows += 1
        self.out.write(json.dumps([number, *row]) + "\n")

    def read(self) -> Iterator[Numbered]:
        with self.path.open(encoding="utf-8") as lines:
            for line in lines:
                number, *row = json.loads(line)
                yield number, Statement(*row)


def _on_disk(rows: Iterable[Numbered], home: Path, most_rows: int, level: int = 0) -> Iterator[tuple[int, Group]]:
    """Yield the groups with the numbers of their first rows, in that order."""
    ordered = []
    for part in _dealt(rows, home, level):
        if part.rows <= most_rows or not part.several:
            found: Iterable[tuple[int, Group]] = _formed(part.read())
        else:
            below = home / f"{part.path.name}.parts"
            below.mkdir()
            found = _on_disk(part.read(), below, most_rows, level + 1)
        path = part.path.with_suffix(".groups")
        with path.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps([number, *astuple(group)]) + "\n" for number, group in found)
        part.path.unlink()
        ordered.append(path)
    with ExitStack() as stack:
        streams = [_groups(stack.enter_context(path.open(encoding="utf-8"))) for path in ordered]
        yield from heapq.merge(*streams, key=itemgetter(0))


def _groups(lines: Iterable[str]) -> Iterator[tuple[int, Group]]:
    for line in lines:
        number, *fields = json.loads(line)
        yield number, Group(*fields)


def _dealt(rows: Iterable[Numbered], home: Path, level: int) -> list[_Part]:
    parts = [_Part(home / f"{number:02}.rows") for number in range(PARTS)]
    salt = bytes([level % 256])
    for number, row in rows:
        digest = blake2b(row.group.encode(), digest_size=8, salt=salt).digest()
        parts[int.from_bytes(digest) % PARTS].add(number, row)
    for part in parts:
        part.out.close()
    return [part for part in parts if part.rows]


def write_groups(groups: Iterable[Group], path: Path) -> int:
    """Write groups as JSON lines of ``anchor``, ``positives``, ``negatives`` and ``neutrals``, one by one."""
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for group in groups:
            count += 1
            sides = {"positives": group.positives, "negatives": group.negatives, "neutrals": group.neutrals}
            out.write(json.dumps({"anchor": group.anchor, **sides}, ensure_ascii=False) + "\n")
    return count
