"""The runs of a race, as cells of a sweep: each is trained or taken up where it was left, and evaluated on dev."""

from __future__ import annotations

import logging
import math
import shutil
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from samesense.choices import BackendOption
from samesense.data import PairData
from samesense.metrics import bootstrap_interval, spearman
from samesense.recipes.race.board import Line, quality_of
from samesense.recipes.race.clock import Clock, Costs
from samesense.recipes.race.entrants import Entrant
from samesense.recipes.race.state import Race, State
from samesense.recipes.settings import EncoderSettings
from samesense.recipes.sweep.cell import SCORES, CellJob, read_record, run_cell, status_of
from samesense.recipes.sweep.identity import deciding, fingerprint_of
from samesense.recipes.sweep.plan import Cell
from samesense.recipes.sweep.splits import Splits
from samesense.training import manifest
from samesense.types import Scores

logger = logging.getLogger(__name__)

DEV = "dev"
"""Name of the pairs that select, on which cells are evaluated."""

LOOKS = 4
"""Evaluations on dev within a run of the last rung, which keeps its best state."""

LOOKS_SHARE = 0.2
"""Share of the training time that these evaluations take at most: on MRPC, in three minutes, four took as long as 43
steps."""


class Cells:
    """Runs entrants, and writes down what they took and gave."""

    def __init__(self, request: Race, state: State, clock: Clock, dev: PairData) -> None:
        self.request = request
        self.state = state
        self.clock = clock
        self.dev = dev
        self._fingerprints: dict[str, str] = {}

    @cached_property
    def dev_texts(self) -> list[str]:
        """The different texts of dev."""
        return list(dict.fromkeys([*self.dev.sentences1, *self.dev.sentences2]))

    def costs(self) -> Costs:
        """Return the costs as measured by the runs that are finished."""
        costs = Costs(texts_a_step=2.0 * self.request.planned.settings.batch_size, dev_texts=len(self.dev_texts))
        for line in self.state.lines:
            if "seconds" in line:
                costs.learn(line["name"], line["start"], line["steps"], line["training"], line["seconds"])
        return costs

    def keep_time_for_test(self) -> None:
        """Keep the time in which the best model so far would be evaluated on test."""
        test = self.request.planned.test
        if test is not None:
            self.clock.test = len({*test.sentences1, *test.sentences2}) / quality_of(self.state.board()).speed

    def most_steps(self, entrant: Entrant) -> int:
        """Return the steps of the recipe's own epochs."""
        settings = self._settings(entrant, {})
        return settings.steps(settings.examples(self.request.planned.train))

    def run(self, entrant: Entrant, steps: int, *, final: bool = False) -> None:
        """Train an entrant for ``steps`` steps, or evaluate its start for 0, unless that is done.

        In the ``final`` rung the best state on dev is kept, else the last. KeyboardInterrupt if it was interrupted.
        """
        if self.state.line(entrant.name, steps, final=final) is not None:
            return
        job = self._job(entrant, steps, final=final)
        described = f"{entrant.name}, {steps} steps" if steps else entrant.name
        logger.info(described)
        # A call that was killed may have ended the run and not written its line.
        if status_of(job.folder) != "finished" and run_cell(job) == "interrupted":
            raise KeyboardInterrupt
        record = read_record(job.folder)
        if record["status"] == "failed":
            # The last line of a traceback is the error itself.
            self._failed(entrant, steps, record["error"].splitlines()[-1])
            return
        start = entrant.start
        form = "start"
        location = start.model
        took = {"training": 0.0, "seconds": record["seconds"], "precision": None}
        if steps:
            form = "trained"
            location = str(job.folder / "model")
            run = manifest.read(job.folder)
            took["training"] = run["outcome"]["spent"].get("training", 0.0)
            took["precision"] = run["precision"][0]
        line = self.line(entrant.name, form, _scores_in(job.folder), start.speed, start.megabytes, steps, location)
        self.state.lines.append({**asdict(line), **took, "start": start.name, "final": final})
        self._forget(start.name)
        self.save()

    def _failed(self, entrant: Entrant, steps: int, reason: str) -> None:
        logger.warning(f"{entrant.name}: {reason}")
        self.state.note(f"failed: {entrant.name}, {steps} steps: {reason}")
        self.save()

    def line(
        self,
        name: str,
        form: str,
        scores: Scores,
        speed: float,
        megabytes: float,
        steps: int,
        location: str,
        backend: BackendOption = "auto",
    ) -> Line:
        """Return a line of the leaderboard from the scores of the pairs of dev."""
        labels = np.asarray(self.dev.labels)
        low, high = bootstrap_interval(scores, labels, "spearman")
        dev = float(spearman(scores, labels))
        logger.info(f"dev {100 * dev:.2f}")
        return Line(
            name=name,
            form=form,
            dev=dev,
            low=low,
            high=high,
            speed=round(speed, 1),
            megabytes=round(megabytes, 1),
            steps=steps,
            place=location,
            backend=backend,
        )

    def save(self) -> None:
        """Write what is known, and the time that was used."""
        self.state.spent = self.clock.spent
        self.state.save()

    def _settings(self, entrant: Entrant, extra_settings: dict[str, Any]) -> EncoderSettings:
        planned = self.request.planned
        overrides = {**entrant.overrides, "model": entrant.start.model, "seed": self.request.seed, **extra_settings}
        precisions = (line["precision"] for line in self.state.lines if line.get("start") == entrant.start.name)
        precision = next(filter(None, precisions), None)  # measured by the first run of a start model, and not again
        if precision:
            overrides |= {"precision": precision}
        _, settings = planned.method.choose(planned.config, overrides, lambda: planned.train)
        return settings.for_data(planned.train)

    def _looks_every(self, steps: int) -> int:
        rarest = math.ceil(self.costs().steps_an_evaluation / LOOKS_SHARE)  # of the data alone, so the same on resuming
        return min(steps, max(1, steps // LOOKS, rarest))

    def _job(self, entrant: Entrant, steps: int, *, final: bool) -> CellJob:
        planned = self.request.planned
        limits: dict[str, Any] = {}
        selecting = None
        seed = None
        if steps:
            # Looks at dev before the end would take the time of steps, and select nothing here.
            limits = {"max_steps": steps, "eval_steps": steps}
            seed = self.request.seed
        if final:
            selecting = self.dev
            if steps:
                limits["eval_steps"] = self._looks_every(steps)
        settings = self._settings(entrant, limits)
        splits = Splits(planned.train, selecting, {DEV: self.dev})
        identity = {
            "method": planned.method.name,
            "settings": deciding(settings, self._fingerprints),
            "start": fingerprint_of(settings.model, self._fingerprints),
            "steps": steps,
            **splits.identity(),
        }
        cell = Cell(
            variant=entrant.name,
            dataset=DEV,
            seed=seed,
            method=planned.method,
            settings=settings,
            reading="",
            layers=None,
            overrides={**entrant.overrides, **limits},
            identity=identity,
        )
        return CellJob(cell, splits, cell.folder(self.request.output), "float32")

    def _forget(self, start: str) -> None:
        """Keep of every start model the best trained one alone."""
        trained_lines = [
            line for line in self.state.lines if line.get("start") == start and line["steps"] and line["place"]
        ]
        best = max(trained_lines, key=lambda line: line["dev"], default=None)
        for line in trained_lines:
            if line is not best:
                shutil.rmtree(line["place"], ignore_errors=True)
                line["place"] = None


def _scores_in(folder: Path) -> Scores:
    with np.load(folder / SCORES) as arrays:
        scores: Scores = arrays[f"sts:{DEV}:spearman"]
    return scores
