"""A folder of numbered files, each there whole or not at all."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from samesense.errors import OutputError
from samesense.files import clear_temporary, write_bytes

logger = logging.getLogger(__name__)

_NAME = re.compile(r"(\d{5,})(\..+)")


class Shards:
    """Numbered files of one kind in a folder.

    Args:
        folder: made with the first file.
        suffix: of the files, with the dot.
    """

    def __init__(self, folder: Path, suffix: str) -> None:
        self.folder, self._suffix = folder, suffix

    def path(self, number: int) -> Path:
        """Return the place of a shard."""
        return self.folder / f"{number:05d}{self._suffix}"

    def finished(self, count: int) -> set[int]:
        """Return the numbers of the shards that are there.

        Args:
            count: shards that there can be.

        Raises:
            OutputError: if there is a file that is none of them.
        """
        if not self.folder.exists():
            return set()
        found = set()
        for path in self.folder.iterdir():
            if path.name.startswith("."):
                continue
            match = _NAME.fullmatch(path.name)
            if match is None or match[2] != self._suffix or int(match[1]) >= count:
                raise OutputError(
                    f"{self.folder} holds shards 0 to {count - 1}, and {path.name} is none of them. Remove it, or "
                    "choose another folder."
                )
            found.add(int(match[1]))
        return found

    def write(self, number: int, content: bytes) -> None:
        """Write a shard, down to the disk, whole or not at all."""
        write_bytes(self.path(number), content, sync=True)

    def clear(self) -> None:
        """Remove what killed writers left beside."""
        clear_temporary(self.folder)

    def take_up(self, count: int) -> set[int]:
        """Clear the folder, and return the shards that are there, as :meth:`finished` does.

        Args:
            count: shards that there can be.
        """
        self.clear()
        there = self.finished(count)
        if there:
            logger.info(f"{len(there)} of {count} shards are there already")
        return there
