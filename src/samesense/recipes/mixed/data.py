"""Data of several kinds as one: parts, each with its own method and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from samesense.data.examples import Examples
from samesense.data.pairs.data import PairData
from samesense.errors import ConfigError
from samesense.hashes import json_hash
from samesense.places import JOINT


@dataclass(frozen=True, kw_only=True)
class Part:
    """Data of one kind, and how a model learns from them."""

    name: str  # what the data are, in a word
    method: str  # its name
    prepare: Callable[[Any, Any], Any]  # of the method: gives the training inputs for a model and a job
    data: Any  # as the method takes them
    settings: Any  # of the method

    @property
    def batches(self) -> int:
        """How many batches a pass over the data has."""
        return -(-int(self.settings.examples(self.data)) // int(self.settings.batch_size))

    @property
    def described(self) -> str:
        """Return a description in one line."""
        return f"method {self.method}, {self.batches:,} batches of {self.settings.batch_size} a pass"


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Parts of different kinds, in the order of their sources."""

    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return sum(len(component.data) for component in self.parts)

    @property
    def source(self) -> str:
        """The sources as the user gave them."""
        return JOINT.join(component.data.source for component in self.parts)

    @property
    def name(self) -> str:
        """Return a short name for messages."""
        return JOINT.join(component.data.name for component in self.parts)

    @property
    def sha256(self) -> str:
        """Fingerprint of the parts in order."""
        return json_hash([[component.name, component.data.sha256] for component in self.parts])

    def take(self, indices: Iterable[int]) -> NoReturn:
        """Raise ConfigError: rows of different kinds are not cut as one."""
        raise ConfigError("Data of several kinds are not cut to a part as one. Cut the sources.")

    def labelled(self) -> Part | None:
        """Return the labelled pairs among the parts, if any: scored ones rather than those of fewer labels."""
        pairs = [component for component in self.parts if isinstance(component.data, PairData)]
        order = ("scored", "binary", "nli", "triplet")
        return min(pairs, key=lambda component: order.index(component.data.kind), default=None)

    def with_data(self, name: str, data: Examples) -> Mixture:
        """Return the mixture with other data in one of its parts."""
        components = tuple(
            replace(component, data=data) if component.name == name else component for component in self.parts
        )
        return replace(self, parts=components)


def refuse(sources: object, settings: object) -> NoReturn:
    """Raise ConfigError where one source is to be read as data of several kinds."""
    raise ConfigError("Method mixed takes sources of several kinds from samesense train; a sweep reads one kind.")
