"""What a race has done so far, in one file, so that the same call goes on with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from samesense.errors import ConfigError, DataError, OutputError
from samesense.files import write_json
from samesense.locks import is_empty
from samesense.recipes.planning.training_plan import TrainingPlan
from samesense.recipes.race.board import Line
from samesense.recipes.race.entrants import Entrant, Start
from samesense.schemas import Record, read_checked

FILE = "race.json"


Rung = dict[str, int | None]
"""Entrants by name, and the steps of each that was begun."""


@dataclass(frozen=True, kw_only=True)
class Race:
    """What is raced on what.

    Attributes:
        planned: data, method and dev, as for a training.
        models: start models that are named.
        at_hand: also take those at hand.
        budget: seconds.
        output: folder.
        cpu_drop: points of Spearman x100 that the model for a CPU may lose beside the best.
        seed: of every run.
        begun: when it was asked for.
    """

    planned: TrainingPlan
    models: Sequence[str]
    at_hand: bool
    budget: float
    output: Path
    cpu_drop: float
    seed: int
    begun: float


class State(Record):
    """A race in its folder, as its file has it.

    Attributes:
        folder: of the race.
        identity: what tells it from another race: data, models, seed, budget.
        spent: seconds of all calls, up to the last :meth:`save`.
        starts: start models, best first once they are evaluated.
        entrants: those that took part so far.
        brackets: the rungs of each, and in each rung the entrants and their steps.
        lines: what was evaluated.
        notes: what was left out, in words.
        forms: whether the smaller forms are made.
        result: figures on test and the time used, once it is over.
    """

    # A field of another version is refused.
    model_config = ConfigDict(extra="forbid")

    folder: Path = Field(Path(), exclude=True)
    identity: dict[str, Any]
    spent: float = 0.0
    starts: list[Start] = Field(default_factory=list)
    entrants: list[Entrant] = Field(default_factory=list)
    brackets: list[list[Rung]] = Field(default_factory=list)
    lines: list[dict[str, Any]] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    forms: bool = False
    result: dict[str, Any] | None = None

    @classmethod
    def open(cls, folder: Path, identity: dict[str, Any]) -> State:
        """Return the race in a folder, or a new one.

        OutputError if the folder holds something else; ConfigError if it holds another race.
        """
        if not (folder / FILE).is_file():
            if folder.is_dir() and not is_empty(folder):
                raise OutputError(f"{folder} is not empty and holds no race. Choose another output folder.")
            return cls(folder=folder, identity=identity)
        state = read_checked(folder / FILE, cls, fix=f"Delete the folder {folder} to start again.")
        state.folder = folder
        differing = [name for name in identity if state.identity.get(name) != identity[name]]
        if differing:
            raise ConfigError(
                f"{folder} holds another race: it differs in {', '.join(differing)}. Choose another output folder."
            )
        return state

    def save(self) -> None:
        """Write it."""
        # Waits for the disk, as hours of runs are known by this file alone.
        write_json(self.folder / FILE, self.model_dump(), sync=True)

    def note(self, message: str) -> None:
        """Note what was left out, once."""
        if message not in self.notes:
            self.notes.append(message)

    def line(self, name: str, steps: int, *, final: bool = False) -> dict[str, Any] | None:
        """Return the results of an entrant after ``steps`` steps, or of its run in the last rung."""
        key = name, steps, final
        return next(
            (
                candidate
                for candidate in self.lines
                if (candidate["name"], candidate["steps"], candidate.get("final")) == key
            ),
            None,
        )

    def board(self) -> list[Line]:
        """Return the lines of the leaderboard."""
        names = [line_field.name for line_field in fields(Line)]
        # The stored lines hold more, such as the seconds that the runs took.
        return [Line(**{name: line[name] for name in names}) for line in self.lines]

    def entrant(self, name: str) -> Entrant:
        """Return an entrant by its name; DataError if there is none."""
        match = next((candidate for candidate in self.entrants if candidate.name == name), None)
        if match is None:
            raise DataError(f"{self.folder / FILE} is damaged: it has no entrant {name}. Delete the folder.")
        return match
