"""What a harvest was made of and what it came to: its manifest, its history, its sums."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samesense.errors import DataError, OutputError
from samesense.execution.shards import Shards
from samesense.files import append_json, content_hash, is_empty, read_json_lines
from samesense.recipes.harvest.settings import HarvestSettings
from samesense.recipes.harvest.shard import METADATA, Finished
from samesense.training import manifest

HISTORY = "history.jsonl"
DAY = 86400


@dataclass(frozen=True)
class HarvestSummary:
    """What a harvest came to.

    Attributes:
        folder: of the harvest.
        pairs: with a score.
        wanted: pairs asked for, by kind.
        planned: pairs that could be had, by kind.
        scored: pairs that have a score, by kind.
        undefined: pairs kept out, by the reason.
        shards: files.
        cost: ``seconds`` of workers and ``cells``, over ``pairs`` of those shards whose cost is known.
    """

    folder: Path
    pairs: int
    wanted: Mapping[str, int]
    planned: Mapping[str, int]
    scored: Mapping[str, int]
    undefined: Mapping[str, int]
    shards: int
    cost: Mapping[str, float]

    def lines(self) -> list[str]:
        """Return it in words."""
        lines = [f"{self.pairs} pairs in {self.shards} shards: {_counts(self.scored)}"]
        short = {kind: count - self.planned.get(kind, 0) for kind, count in self.wanted.items()}
        if any(short.values()):
            missing = {kind: count for kind, count in short.items() if count}
            lines.append(f"missing where the units of a shard were used up, and not replaced: {_counts(missing)}")
        lines += [f"kept out, since {reason}: {count}" for reason, count in self.undefined.items()]
        if self.cost["pairs"]:
            seconds, cells = (self.cost[name] / self.cost["pairs"] for name in ("seconds", "cells"))
            lines.append(
                f"cost: {seconds:.3g} s of a worker and {cells:.0f} terms a pair; 100M pairs would take "
                f"{1e8 * seconds / DAY:.3g} worker-days"
            )
        return lines


class Record:
    """The manifest and history in a harvest folder.

    Args:
        folder: of the harvest.
        settings: of this run.
        origin: identity of its Origin.
    """

    def __init__(self, folder: Path, settings: HarvestSettings, origin: Mapping[str, str]) -> None:
        self.folder = folder
        self._content = manifest.describe("harvest", settings.identity(), {"origin": dict(origin)})

    def check(self) -> None:
        """Raise if the folder holds anything but this harvest.

        Raises:
            OutputError: says what differs.
        """
        path = self.folder / manifest.FILE
        if self.folder.exists() and not path.is_file() and not is_empty(self.folder):
            raise OutputError(f"{self.folder} is not empty and holds no harvest. Choose another output folder.")
        if not path.is_file():
            return
        before = manifest.read(self.folder)
        if before.get("method") != "harvest":
            raise OutputError(f"{self.folder} holds a run of {before.get('method')}. Choose another output folder.")
        differing = _differences(before["settings"], json.loads(json.dumps(self._content["settings"])))
        other = _differences(before["data"]["origin"], self._content["data"]["origin"], values=False)
        if differing or other:
            what = [*differing, *(f"the Origin has another {name}" for name in other)]
            raise OutputError(
                f"{self.folder} holds a harvest with other inputs: {'; '.join(what)}. Give the same ones to go on, or "
                "choose another output folder."
            )

    def begin(self) -> None:
        """Write the manifest, unless it is there."""
        if not (self.folder / manifest.FILE).is_file():
            manifest.write(self.folder, self._content)

    def note_versions(self) -> list[str]:
        """Note in the manifest if shards are now made with other libraries than before; returns it in words."""
        before, now = manifest.read(self.folder), self._content["versions"]
        others = before.get("other_versions", [])
        changes = _differences(others[-1]["versions"] if others else before["versions"], now)
        if changes:
            others = [*others, {"since": self._content["started"], "versions": now}]
            manifest.write(self.folder, before | {"other_versions": others})
        return [f"{'; '.join(changes)}: new shards may differ in the last bits of their scores"] if changes else []

    def note(self, shard: int, finished: Finished) -> None:
        """Add a line on the cost of a shard."""
        line = {"shard": shard, "pairs": finished.pairs, "seconds": finished.seconds, "cells": finished.cells}
        append_json(self.folder / HISTORY, line)

    def finish(self, shards: Shards, count: int) -> HarvestSummary:
        """Sum up all shards in the manifest.

        Raises:
            DataError: if a shard is damaged.
        """
        sums: dict[str, Counter[str]] = {name: Counter() for name in ("wanted", "planned", "scored", "undefined")}
        entries = []
        for shard in range(count):
            path = shards.path(shard)
            account = read_account(path)
            for name, counter in sums.items():
                counter.update(account[name])
            pairs = sum(account["scored"].values())
            entries.append(
                {"file": path.name, "pairs": pairs, "counts": account["scored"],
                 "sha256": content_hash([path])}
            )  # fmt: skip
        cost = self._cost()
        counts = {name: dict(counter) for name, counter in sums.items()}
        before = manifest.read(self.folder)
        manifest.write(self.folder, before | {"status": "finished", **counts, "cost": cost, "shards": entries})
        return HarvestSummary(
            self.folder, sum(counts["scored"].values()), counts["wanted"], counts["planned"], counts["scored"],
            counts["undefined"], count, cost,
        )  # fmt: skip

    def _cost(self) -> dict[str, float]:
        """Sum up the history, each shard once."""
        known = {entry["shard"]: entry for entry in read_json_lines(self.folder / HISTORY)}
        return {name: sum(entry[name] for entry in known.values()) for name in ("pairs", "seconds", "cells")}


def read_account(path: Path) -> dict[str, Any]:
    """Return the account in the footer of a shard.

    Raises:
        DataError: if the file is damaged, or no shard of a harvest.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        account: dict[str, Any] = json.loads(pq.read_schema(path).metadata[METADATA])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is no whole shard of a harvest ({error}). Delete it; it will be made anew.") from error
    return account


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], *, values: bool = True) -> list[str]:
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return [f"{key} was {old.get(key)!r} and is {new.get(key)!r}" for key in keys] if values else keys


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counts.items())
