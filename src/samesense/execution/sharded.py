"""A folder of numbered files made by many workers, resumed by the same call after any stop.

    shards/00000.npy ...  each there whole or not at all
    manifest.json         what they are made of; at the end the SHA-256 of each, and what they cost
    history.jsonl         what each took, and what a model did not read of its texts

Workers return bytes to the one process that writes, so that machines of a cluster need no disk in common.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from samesense.errors import OutputError, SamesenseError
from samesense.execution.folders import folder_at
from samesense.execution.progress import progress_bar
from samesense.execution.tasks import Executor, Failed, Work
from samesense.execution.unread import Unread
from samesense.execution.versions import changes, environment
from samesense.hashes import content_hash

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
HISTORY = "history.jsonl"
SHARDS = "shards"
UNREAD = "unread"
"""Part of a line of the history; see :attr:`samesense.execution.unread.Unread.summary`."""

MAX_FAILED = 10
"""Failed shards from which on the cause is not in the shards."""

_NAME = re.compile(r"(\d{5,})(\..+)")
_NO_FIGURES = ("sha256", UNREAD)
_FOR_PEOPLE = ("name",)
"""What a manifest says for people to read; it may differ when a job is resumed."""


@dataclass(frozen=True)
class Shard:
    """What a worker returns."""

    content: bytes  # of the file; the same for the same shard wherever it is made, byte for byte
    rows: int  # in it
    seconds: float  # that the worker took
    counts: Mapping[str, int] = field(default_factory=dict)  # further figures for the history
    unread: Mapping[str, Any] = field(default_factory=dict)  # summary of what a model did not read of its texts


@contextmanager
def sharded_job(folder: str | Path, method: str, suffix: str) -> Iterator[ShardedJob]:
    """Open a folder of shards, made if absent, and keep other writers out; files end in ``suffix``, with the dot.

    It may be a URL, of a store that knows no locks.

    OutputError if the folder holds something else, or another process writes to it.
    """
    with ShardedJob(folder, method, suffix).folder.only_writer():  # refused before a lock is put there
        yield ShardedJob(folder, method, suffix)


class ShardedJob:
    """The manifest, the history and the files of a folder of shards; see :func:`sharded_job`."""

    def __init__(self, folder: str | Path, method: str, suffix: str) -> None:
        self.folder, self._method, self._suffix = folder_at(folder), method, suffix
        self.folder.check(MANIFEST, HISTORY, SHARDS)
        self._manifest = self.folder.json(MANIFEST) if self.folder.exists(MANIFEST) else {}
        if not self._manifest and not self.folder.is_empty():
            raise OutputError(
                f"{folder} is not empty and holds no shards of samesense {method}. Choose another output folder."
            )
        if self._manifest and self._manifest.get("method") != method:
            raise OutputError(f"{folder} holds a run of {self._manifest.get('method')}. Choose another output folder.")

    def name(self, shard: int) -> str:
        """Return the name of a shard in the folder."""
        return f"{SHARDS}/{shard:05d}{self._suffix}"

    def path(self, shard: int) -> Path:
        """Return the place of a shard on the disk."""
        return Path(self.folder.path(self.name(shard)))

    def check(self, part: str, content: Mapping[str, Any]) -> None:
        """Raise OutputError, saying what differs, if shards were made before with another ``part`` of the manifest."""
        if not self._manifest:
            return
        if not isinstance(self._manifest.get(part), dict):
            raise OutputError(
                f"{self.folder.path(MANIFEST)} is damaged: it has no {part}. Choose another output folder."
            )
        changed = changes(self._manifest[part], content, ignored=_FOR_PEOPLE)
        if changed:
            raise OutputError(
                f"{self.folder.name} holds shards with another {part}: {'; '.join(changed)}. Give the same to resume, "
                "or choose another output folder."
            )

    def begin(self, **parts: Mapping[str, Any]) -> None:
        """Write the manifest of a new job, or check all parts of that of a resumed one."""
        for part, content in parts.items():
            self.check(part, content)
        if not self._manifest:
            self._write({"method": self._method, **parts, **environment(), "status": "running"})

    def make(self, work: Work, executor: Executor, sizes: Sequence[int], unit: str) -> None:
        """Make the shards that are not there; ``work`` returns a :class:`Shard` for its number.

        OutputError if there is a file that is no shard of this job; SamesenseError if shards failed after all retries,
        and KeyboardInterrupt on Ctrl-C, with what is finished kept.
        """
        finished = self.finished(len(sizes))
        if finished:
            logger.info(f"{len(finished)} of {len(sizes)} shards are there already")
        if len(finished) < len(sizes):
            self._note_versions()
        missing = (shard for shard in range(len(sizes)) if shard not in finished)
        with progress_bar(self._method, unit, sum(sizes), initial=sum(sizes[shard] for shard in finished)) as bar:
            try:
                with closing(_results(executor, work, missing)) as results:  # Ctrl-C stops the workers here and now
                    for number, shard in results:
                        self._keep(number, shard)
                        bar.update(sizes[number])
            except KeyboardInterrupt:
                raise KeyboardInterrupt("Finished shards are kept: the same command goes on.") from None

    def finish(self, entries: Sequence[Mapping[str, Any]], **totals: Any) -> dict[str, float]:
        """List all shards in the manifest, with ``totals``, and return what they cost: a sum for each column.

        ``entries`` are what the manifest says of each shard, in order.
        """
        history = self._history()
        shards = []
        for shard, entry in enumerate(entries):
            name = self.name(shard)
            sha256 = history[shard]["sha256"] if shard in history else self.folder.sha256(name)
            shards.append({"file": name.rpartition("/")[2], **entry, "sha256": sha256})
        cost = _sums(history.values())
        self._write({**self._manifest, "status": "finished", **totals, "cost": cost, "shards": shards})
        return cost

    def unread(self, texts: int, sizes: Sequence[int] = ()) -> Unread:
        """Return what models did not read of all ``texts``, those of earlier calls included.

        ``sizes`` are the rows of each shard, where an example is to have the number of its row.
        """
        found, starts = Unread(), [0, *accumulate(sizes)]
        for shard, line in sorted(self._history().items()):
            found.add_summary(line.get(UNREAD, {}), starts[shard] if shard < len(starts) else 0)
        found.texts = texts  # also of shards of which all was read
        return found

    def _history(self) -> dict[int, Mapping[str, Any]]:
        """Return the last whole line of each shard."""
        return {line["shard"]: line for line in filter(_is_whole, self.folder.lines(HISTORY))}

    def finished(self, count: int) -> set[int]:
        """Return the numbers of the shards that are there; OutputError for a file that is none of ``count`` shards."""
        found = set()
        for name in self.folder.names(SHARDS):
            match = _NAME.fullmatch(name)
            if match is None or match[2] != self._suffix or int(match[1]) >= count:
                raise OutputError(
                    f"{self.folder.path(SHARDS)} holds shards 0 to {count - 1}, and {name} is none of them. Remove "
                    "it, or choose another folder."
                )
            found.add(int(match[1]))
        return found

    def _keep(self, number: int, shard: Shard) -> None:
        self.folder.write(self.name(number), shard.content)
        line = {"shard": number, "rows": shard.rows, "sha256": content_hash([shard.content])}
        unread = {UNREAD: shard.unread} if shard.unread else {}
        self.folder.append(HISTORY, {**line, "seconds": round(shard.seconds, 3), **shard.counts, **unread})

    def _note_versions(self) -> None:
        """Say so, and note it in the manifest, if shards are now made with other libraries than before."""
        others = self._manifest.get("other_versions", [])
        now = environment()
        changed = changes((others or [self._manifest])[-1]["versions"], now["versions"])
        if changed:
            logger.warning(f"{'; '.join(changed)}: new shards may differ from the others in their last bits")
            self._write({**self._manifest, "other_versions": [*others, now]})

    def _write(self, manifest: dict[str, Any]) -> None:
        self._manifest = manifest
        self.folder.write(MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def _results(executor: Executor, work: Work, tasks: Iterable[int]) -> Generator[tuple[int, Shard], None, None]:
    """Yield each task with its result, in the order of completion.

    SamesenseError if tasks failed, after the others are done, or after MAX_FAILED of them.
    """
    failed: list[Failed] = []
    with closing(executor.run(work, tasks)) as outcomes:
        for outcome in outcomes:
            if not isinstance(outcome, Failed):
                yield outcome.task, outcome.result
                continue
            failed.append(outcome)
            if len(failed) == MAX_FAILED:
                break
    if failed:
        raise SamesenseError(
            f"{len(failed)} shards could not be made, the first after {failed[0].attempts} attempts: shard "
            f"{failed[0].task}, {failed[0].reason}. The others are kept; give the same command again."
        )


def _is_whole(line: Mapping[str, Any]) -> bool:
    """Return whether a line of the history is as it was written."""
    numbers = [value for name, value in line.items() if name not in _NO_FIGURES]
    whole = {"shard", "sha256"} <= line.keys() and isinstance(line.get(UNREAD, {}), dict)
    return whole and all(isinstance(value, int | float) for value in numbers)


def _sums(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for line in lines:
        for name in line.keys() - {"shard", *_NO_FIGURES}:
            sums[name] = sums.get(name, 0) + line[name]
    return {name: round(sums[name], 3) for name in sorted(sums)}
