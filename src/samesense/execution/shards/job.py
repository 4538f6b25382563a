"""A folder of numbered files made by many workers; the same call resumes it after any stop.

    shards/00000.npy ...  written atomically
    manifest.json         inputs and settings; at the end the SHA-256 and the cost of each shard
    history.jsonl         seconds and counts of each shard, and the texts that a model did not read whole

Workers return bytes to a single writing process, so that machines of a cluster need no shared disk.
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

from samesense.errors import DataError, OutputError, SamesenseError
from samesense.execution.progress import progress_bar, stage
from samesense.execution.shards.folders import folder_at
from samesense.execution.shards.tasks import Executor, Failed, Work
from samesense.execution.unread import Unread
from samesense.execution.versions import changes, environment
from samesense.failures import abridged
from samesense.hashes import content_hash

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
HISTORY = "history.jsonl"
SHARDS = "shards"
UNREAD = "unread"
"""Key in a line of the history; see :attr:`samesense.execution.unread.Unread.summary`."""

MAX_FAILED = 10
"""Failed shards after which a job is given up: the cause is then not in the shards."""

_NAME = re.compile(r"(\d{5,})(\..+)")
_NO_FIGURES = ("sha256", UNREAD)
_INFORMATIONAL = ("name",)
"""Keys of a manifest that may differ when a job is resumed."""


@dataclass(frozen=True)
class Shard:
    """The result of a worker."""

    content: bytes  # of the file; byte for byte the same wherever the shard is made
    rows: int
    seconds: float  # spent by the worker
    counts: Mapping[str, int] = field(default_factory=dict)  # further figures for the history
    unread: Mapping[str, Any] = field(default_factory=dict)  # summary of the texts that a model did not read whole


@contextmanager
def sharded_job(folder: str | Path, method: str, suffix: str) -> Iterator[ShardedJob]:
    """Open a folder of shards, created if absent, and lock it; files end in ``suffix``, with the dot.

    It may be the URL of an object store, which has no locks.

    OutputError if the folder holds something else, or another process writes to it.
    """
    with ShardedJob(folder, method, suffix).folder.only_writer():  # checked before a lock file is written there
        yield ShardedJob(folder, method, suffix)


class ShardedJob:
    """The manifest, the history and the files of a folder of shards; see :func:`sharded_job`."""

    def __init__(self, folder: str | Path, method: str, suffix: str) -> None:
        self.folder = folder_at(folder)
        self._method = method
        self._suffix = suffix
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
        """Return the path of a shard on the disk."""
        return Path(self.folder.path(self.name(shard)))

    def check(self, section: str, content: Mapping[str, Any]) -> None:
        """Raise OutputError if existing shards have another ``section`` in the manifest, naming what differs."""
        if not self._manifest:
            return
        if not isinstance(self._manifest.get(section), dict):
            raise OutputError(
                f"{self.folder.path(MANIFEST)} is damaged: it has no {section}. Choose another output folder."
            )
        changed = changes(self._manifest[section], content, ignored=_INFORMATIONAL)
        if changed:
            other = "other settings" if section == "settings" else f"another {section}"
            raise OutputError(
                f"{self.folder.name} holds shards with {other}: {'; '.join(changed)}. Give the same to resume, or "
                "choose another output folder."
            )

    def begin(self, **sections: Mapping[str, Any]) -> None:
        """Write the manifest of a new job, or check that of a resumed one."""
        for section, content in sections.items():
            self.check(section, content)
        if not self._manifest:
            self._write({"method": self._method, **sections, **environment(), "status": "running"})

    def make(self, work: Work, executor: Executor, sizes: Sequence[int], unit: str) -> None:
        """Make the missing shards; ``work`` returns a :class:`Shard` for its number.

        OutputError if a file is no shard of this job; DataError if one is damaged; SamesenseError if shards failed
        after all retries, and KeyboardInterrupt on Ctrl-C; finished shards are kept.
        """
        finished = self.finished(len(sizes))
        if finished:
            self._check_content(finished)
            logger.info(f"{len(finished)} of {len(sizes)} shards are there already")
        if len(finished) < len(sizes):
            self._note_versions()
        missing = (shard for shard in range(len(sizes)) if shard not in finished)
        with progress_bar(self._method, unit, sum(sizes), initial=sum(sizes[shard] for shard in finished)) as bar:
            try:
                with closing(_results(executor, work, missing)) as results:  # Ctrl-C stops the workers at once
                    for number, shard in results:
                        self._keep(number, shard)
                        bar.update(sizes[number])
            except KeyboardInterrupt:
                raise KeyboardInterrupt("Finished shards are kept: the same command resumes the job.") from None

    def finish(self, entries: Sequence[Mapping[str, Any]], **totals: Any) -> dict[str, float]:
        """List all shards in the manifest, with ``totals``, and return their cost: the sum of each figure.

        ``entries`` describe each shard in the manifest, in order.
        """
        history = self._history()
        shards = []
        for shard, entry in enumerate(entries):
            name = self.name(shard)
            if shard in history:
                sha256 = history[shard]["sha256"]
            else:
                # A writer was killed after the shard and before its line of the history.
                sha256 = self.folder.sha256(name)
            shards.append({"file": name.rpartition("/")[2], **entry, "sha256": sha256})
        cost = _sums(history.values())
        self._write({**self._manifest, "status": "finished", **totals, "cost": cost, "shards": shards})
        return cost

    def unread(self, texts: int, sizes: Sequence[int] = ()) -> Unread:
        """Return what models did not read of all ``texts``, earlier calls included.

        ``sizes`` are the rows of each shard; with them an example has its row number.
        """
        total = Unread()
        starts = [0, *accumulate(sizes)]
        # In order, so that the example is the first of the input.
        for shard, line in sorted(self._history().items()):
            total.add_summary(line.get(UNREAD, {}), starts[shard] if shard < len(starts) else 0)
        total.texts = texts  # including those of shards that were read whole
        return total

    def _history(self) -> dict[int, Mapping[str, Any]]:
        """Return the last complete line of each shard."""
        return {line["shard"]: line for line in filter(_is_whole, self.folder.lines(HISTORY))}

    def finished(self, count: int) -> set[int]:
        """Return the numbers of existing shards; OutputError for a file that is none of ``count`` shards."""
        numbers = set()
        for name in self.folder.names(SHARDS):
            match = _NAME.fullmatch(name)
            if match is None or match[2] != self._suffix or int(match[1]) >= count:
                raise OutputError(
                    f"{self.folder.path(SHARDS)} holds shards 0 to {count - 1}, and {name} is none of them. Remove "
                    "it, or choose another folder."
                )
            numbers.add(int(match[1]))
        return numbers

    def _check_content(self, finished: Iterable[int]) -> None:
        """Raise DataError for finished shards that are not what was written; a shard without a line is taken as it is.

        Before the work, as they would else be found damaged after it, or by their readers.
        """
        history = self._history()
        names = {self.name(shard): history[shard]["sha256"] for shard in sorted(finished) if shard in history}
        with stage(f"checking {len(names)} finished shards"):
            damaged = [name for name, sha256 in names.items() if not self.folder.is_intact(name, sha256)]
        if damaged:
            paths = abridged([self.folder.path(name) for name in damaged], 3)
            raise DataError(
                f"A finished shard has the SHA-256 that {HISTORY} notes, and these have another: {paths}. They "
                "are damaged, or were changed. Delete them and give the same command; they will be made again."
            )

    def _keep(self, number: int, shard: Shard) -> None:
        # The file first: a line of the history must never name a shard that is not there.
        self.folder.write(self.name(number), shard.content)
        line = {"shard": number, "rows": shard.rows, "sha256": content_hash([shard.content])}
        unread = {UNREAD: shard.unread} if shard.unread else {}
        self.folder.append(HISTORY, {**line, "seconds": round(shard.seconds, 3), **shard.counts, **unread})

    def _note_versions(self) -> None:
        """Warn, and note it in the manifest, if shards are now made with other library versions than before."""
        other_versions = self._manifest.get("other_versions", [])
        now = environment()
        # Compared with the versions that made the newest shards, not the first.
        changed = changes((other_versions or [self._manifest])[-1]["versions"], now["versions"])
        if changed:
            logger.warning(f"{'; '.join(changed)}: new shards may differ from the others in their last bits")
            self._write({**self._manifest, "other_versions": [*other_versions, now]})

    def _write(self, manifest: dict[str, Any]) -> None:
        self._manifest = manifest
        self.folder.write(MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def _results(executor: Executor, work: Work, tasks: Iterable[int]) -> Generator[tuple[int, Shard], None, None]:
    """Yield each task with its result, in the order of completion.

    SamesenseError if tasks failed: raised after the others are done, or after MAX_FAILED failures.
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
    """Return whether a line of the history is complete."""
    numbers = [value for name, value in line.items() if name not in _NO_FIGURES]
    whole = {"shard", "sha256"} <= line.keys() and isinstance(line.get(UNREAD, {}), dict)
    return whole and all(isinstance(value, int | float) for value in numbers)


def _sums(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for line in lines:
        for name in line.keys() - {"shard", *_NO_FIGURES}:
            sums[name] = sums.get(name, 0) + line[name]
    return {name: round(sums[name], 3) for name in sorted(sums)}
