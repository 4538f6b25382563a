"""From documents to a model in one command: Origin, harvest, Surrogate, evaluation and report.

    samesense train documents/ --method context --output mine
    samesense similarity mine "A man is eating." "Someone has a meal."

The folder holds ``origin/`` (with stages of its own: corpus, discriminator, generator), ``harvest/`` (whose shards
choose contexts as sentences come), ``surrogate/`` (a run folder), ``model/``, ``results.jsonl``, ``report.md`` and
``manifest.json``. Each stage is done once for its inputs; stopped or killed, the same command goes on; with
``--overwrite`` a changed setting has the stages made anew that depend on it, and no others.

Source: Sun et al. 2022 (TACL), section 3; settings in ``configs/context.toml``.
Differs: see :mod:`samesense.recipes.origin.recipe` and :mod:`samesense.recipes.surrogate.recipe`.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samesense.context.origin.origin import FILE as ORIGIN_FILE
from samesense.data import PairData
from samesense.files import only_writer, read_json, replacing_folder
from samesense.recipes.context.documents import Documents, read_documents
from samesense.recipes.context.report import COMPARED, judged, speed, write_report
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.harvest.recipe import harvest
from samesense.recipes.origin import recipe as origin_recipe
from samesense.recipes.origin.stages import Interrupted, Stages, fingerprint
from samesense.recipes.run_folder import identity
from samesense.recipes.runner import Trained
from samesense.recipes.surrogate import recipe as surrogate_recipe
from samesense.recipes.surrogate.data import SHARDS
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.reports import read_results
from samesense.training import manifest
from samesense.training.fit import TrainOutput

logger = logging.getLogger(__name__)

__all__ = ["ContextSettings", "read", "run"]

ORIGIN, HARVEST, SURROGATE, MODEL = "origin", "harvest", "surrogate", "model"
RESULTS, REPORT = "results.jsonl", "report.md"


def read(sources: Sequence[str], settings: ContextSettings) -> Documents:
    """Return the sources; see :func:`~samesense.data.documents.running.running_documents` for what can be one."""
    return read_documents(sources)


def run(
    train: Documents,
    settings: ContextSettings,
    output: Path,
    *,
    dev: PairData | None = None,
    test: PairData | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> Trained:
    """Make what is not made yet, up to the report.

    Args:
        train: documents.
        settings: see :class:`ContextSettings`.
        output: folder.
        dev: labelled pairs for selection by Spearman; without them, pairs that are held out of the harvest.
        test: labelled pairs on which the start point and the Surrogate are judged.
        resume: of no effect: the same call always goes on.
        overwrite: replace stages that were made with other inputs.

    Returns:
        The model folder, how the training of the Surrogate ended, and the results on ``test`` and on what was held out.

    Raises:
        ConfigError, DataError, ModelError, OutputError: as soon as it is known that it cannot end well.
    """
    way = _Way(train, settings, output, dev, test)
    data = {"documents": train.prints, **identity({"dev": dev, "test": test})}
    stages = Stages(output, manifest.describe("context", settings.model_dump(), data), overwrite=overwrite)
    with only_writer(output):
        if not (output / manifest.FILE).is_file():  # before the Origin puts anything there
            manifest.write(output, stages.record)
        made = origin_recipe.run(
            list(train.sources),
            settings.origin_settings(),
            output / ORIGIN,
            overwrite=overwrite,
        )  # fmt: skip
        if not made:
            return Trained(output / MODEL, TrainOutput(0, 0.0, "", None, None, interrupted=True), [])
        try:
            stages.run("harvest", way.harvest_inputs(), [HARVEST], way.harvest)
            stages.run("surrogate", way.surrogate_inputs(), [SURROGATE], way.surrogate)
            stages.run("evaluation", way.evaluation_inputs(), [MODEL, RESULTS, COMPARED], way.evaluation)
        except Interrupted:
            return Trained(output / MODEL, way.outcome(), [])
        write_report(output)
        stages.finish()
        logger.info(f"report: {output / REPORT}")
        return Trained(output / MODEL, way.outcome(), read_results(output / RESULTS))


@dataclass(frozen=True)
class _Way:
    """What the stages after the Origin are given, what decides them, and what they do."""

    train: Documents
    settings: ContextSettings
    output: Path
    dev: PairData | None
    test: PairData | None

    def harvest_inputs(self) -> dict[str, Any]:
        """Return the content of the Origin, its own stages among it, and what is harvested."""
        folder = self.output / ORIGIN
        made = {name: stage["inputs"] for name, stage in manifest.read(folder)["stages"].items()}
        scheme = read_json(folder / ORIGIN_FILE)
        if scheme["language_model"] is not None:
            scheme["language_model"] = fingerprint(scheme["language_model"])
        return {"origin": made, "scoring": scheme, "settings": self.settings.harvest_settings().identity()}

    def harvest(self) -> list[str]:
        """Harvest, or go on."""
        settings = self.settings.harvest_settings()
        return harvest(self.output / ORIGIN, self.output / HARVEST, settings).lines()

    def surrogate_inputs(self) -> dict[str, Any]:
        """Return the content of the harvest and of the start point, and how it is learnt."""
        own = {name: getattr(self.settings, name) for name in SurrogateSettings.model_fields}
        return {
            "harvest": fingerprint(str(self.output / HARVEST / SHARDS)),
            "settings": own,
            "start": fingerprint(self.settings.model),
            **identity({"dev": self.dev}),
        }

    def surrogate(self) -> list[str]:
        """Train the Surrogate, or go on, and judge what it kept."""
        settings = SurrogateSettings(**{n: getattr(self.settings, n) for n in SurrogateSettings.model_fields})
        folder = self.output / SURROGATE
        harvested = surrogate_recipe.read([str(self.output / HARVEST)], settings)
        if not _is_trained(folder):
            trained = surrogate_recipe.run(
                harvested, settings, folder, dev=self.dev or harvested.dev,
                resume=(folder / manifest.FILE).is_file(), overwrite=True,
            )  # fmt: skip
            if trained.outcome.interrupted:
                raise Interrupted
        kept = surrogate_recipe.describe_kept(manifest.read(folder)[surrogate_recipe.KEPT])
        return [kept, f"{speed(folder, harvested.held.pairs()):,.0f} pairs a second, each sentence read once"]

    def evaluation_inputs(self) -> dict[str, Any]:
        """Return the content of the model, and what it is judged on."""
        return {
            "model": fingerprint(str(self.output / SURROGATE / MODEL)),
            **identity({"dev": self.dev, "test": self.test}),
        }

    def evaluation(self) -> list[str]:
        """Put the model in its place, and judge it beside its start point."""
        with replacing_folder(self.output / MODEL) as beside:
            shutil.copytree(self.output / SURROGATE / MODEL, beside, dirs_exist_ok=True)
        given = [data for data in (self.dev, self.test) if data is not None]
        return judged(self.output, self.settings, given)

    def outcome(self) -> TrainOutput:
        """Return how the training of the Surrogate ended."""
        record = manifest.read(self.output / SURROGATE)
        return TrainOutput(**record["outcome"])


def _is_trained(folder: Path) -> bool:
    return (folder / MODEL).is_dir() and manifest.read(folder)["status"] == "finished"
