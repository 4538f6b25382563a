"""From documents to a model in one command: Origin, harvest, Surrogate, evaluation and report.

    samesense train documents/ --method context --output mine
    samesense similarity mine "A man is eating." "Someone has a meal."

The folder holds ``origin/`` (with stages of its own), ``harvest/``, ``surrogate/`` (a run folder), ``model/``,
``results.jsonl``, ``report.md`` and ``manifest.json``. Each stage is done once for its inputs; stopped or killed, the
same command goes on; with ``--overwrite`` only the stages that depend on a changed setting are repeated.

Source: Sun et al. 2022 (TACL), section 3; settings in ``configs/context.toml``.
Differs: see :mod:`samesense.recipes.origin.recipe` and :mod:`samesense.recipes.surrogate.recipe`.
"""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from samesense.context.origin.origin import FILE as ORIGIN_FILE
from samesense.encoder.saving.card import RIGHTS, set_rights
from samesense.encoder.saving.storage import save
from samesense.execution.shards.job import SHARDS
from samesense.files import read_json, replacing_folder
from samesense.hashes import source_hash
from samesense.locks import only_writer
from samesense.recipes.context.documents import Documents
from samesense.recipes.context.report import COMPARED, REPORT, SURROGATE, VERDICT, evaluate, speed, write_report
from samesense.recipes.context.settings import ContextSettings, surrogate_settings
from samesense.recipes.harvest.recipe import harvest
from samesense.recipes.held_out.pairs import MODEL
from samesense.recipes.origin import recipe as origin_recipe
from samesense.recipes.run.job import Job
from samesense.recipes.run.model_adapters import adapter_of
from samesense.recipes.run.run_folder import REPORT as PAGE
from samesense.recipes.run.run_folder import RESULTS, data_identity, run_or_resume
from samesense.recipes.run.runner import run as run_job
from samesense.recipes.run.training_run import TrainingRun
from samesense.recipes.stages import Interrupted, Stages, read_stages
from samesense.recipes.surrogate.reading import read_harvest
from samesense.recipes.surrogate.recipe import KEPT, describe_kept, prepare
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.reports import read_results
from samesense.reports.run_verdict import verdict_from
from samesense.results.results import Results
from samesense.training import manifest
from samesense.training.fit import TrainOutput, check_settings

logger = logging.getLogger(__name__)

ORIGIN = "origin"
HARVEST = "harvest"


def run(job: Job[Documents, ContextSettings], *, overwrite: bool = False) -> TrainingRun:
    """Make what is not made yet, up to the report.

    Without a dev set, pairs that are held out of the harvest select. The same call always goes on. Returned are how the
    training of the Surrogate ended, and the results on test and on what was held out.
    """
    settings = job.settings
    output = job.output
    check_settings(settings)  # which is needed last
    pairs = data_identity({"dev": job.dev, "test": job.test, **{f"guard {guard.name}": guard for guard in job.guards}})
    data = {"documents": job.data.fingerprints, **pairs}
    record = manifest.describe("context", settings.model_dump(), data)
    read_stages(output, record["method"])  # raises where nothing may be written, before there is a lock
    later = _Later(job)
    with only_writer(output):
        # Only now, as another process may have made some of them meanwhile.
        stages = Stages(output, record, overwrite=overwrite)
        if not (output / manifest.FILE).is_file():  # before the Origin puts anything there
            manifest.write(output, stages.record)
        sources = list(job.data.sources)
        started = time.perf_counter()
        if not origin_recipe.run(sources, settings.origin_settings(), output / ORIGIN, overwrite=overwrite):
            return TrainingRun(output, TrainOutput(steps=0, seconds=0.0, precision="", interrupted=True), Results())
        # The Origin has stages and a manifest of its own, so that its time is added here.
        stages.spent[ORIGIN] = time.perf_counter() - started
        try:
            stages.run("harvest", later.harvest_inputs(), [HARVEST], later.harvest)
            stages.run("surrogate", later.surrogate_inputs(), [SURROGATE], later.surrogate)
            outputs = [MODEL, RESULTS, COMPARED, VERDICT, PAGE]
            stages.run("evaluation", later.evaluation_inputs(), outputs, later.evaluation)
        except Interrupted:
            return TrainingRun(output, later.train_output(), Results())
        write_report(output)
        stages.record["verdict"] = read_json(output / VERDICT)
        stages.finish()
        logger.info(f"report: {output / REPORT}")
        return TrainingRun(
            output,
            later.train_output(),
            Results(read_results(output / RESULTS)),
            verdict=verdict_from(stages.record["verdict"]),
        )


@dataclass(frozen=True)
class _Later:
    """The stages after the Origin: what decides each, and what it does."""

    job: Job[Documents, ContextSettings]

    def harvest_inputs(self) -> dict[str, Any]:
        """Return the content of the Origin, its own stages among it, and what is harvested."""
        folder = self.job.output / ORIGIN
        stage_inputs = {name: stage["inputs"] for name, stage in manifest.read(folder)["stages"].items()}
        scheme = read_json(folder / ORIGIN_FILE)
        if scheme["language_model"] is not None:
            # By content: another model may lie in the same folder later.
            scheme["language_model"] = source_hash(scheme["language_model"])
        return {"origin": stage_inputs, "scoring": scheme, "settings": self.job.settings.harvest_settings().identity()}

    def harvest(self) -> list[str]:
        """Harvest, or go on."""
        settings = self.job.settings.harvest_settings()
        output = self.job.output
        return harvest(output / ORIGIN, output / HARVEST, settings).lines()

    def _taught(self) -> SurrogateSettings:
        """Return the settings of the Surrogate without what the evaluation alone takes."""
        return surrogate_settings(self.job.settings, guard=(), report=True, license=None, language=())

    def surrogate_inputs(self) -> dict[str, Any]:
        """Return the content of the harvest and of the start model, and how it is learnt."""
        return {
            "harvest": source_hash(str(self.job.output / HARVEST / SHARDS)),
            # Where metrics are sent does not change the model.
            "settings": self._taught().model_dump(exclude={"report_to"}),
            "start": source_hash(self.job.settings.model),
            **data_identity({"dev": self.job.dev}),
        }

    def surrogate(self) -> list[str]:
        """Train the Surrogate, or go on, and evaluate what it kept."""
        settings = self._taught()
        folder = self.job.output / SURROGATE
        harvested = read_harvest([str(self.job.output / HARVEST)], settings)
        settings = settings.for_data(harvested)
        dev = self.job.dev or harvested.dev
        job = Job(method="surrogate", data=harvested, settings=settings, output=folder, dev=dev)
        if not run_or_resume(folder, partial(run_job, job, prepare)):
            raise Interrupted
        selected = describe_kept(manifest.read(folder)[KEPT])
        measured = speed(folder, harvested.held.pairs())
        speed_text = f"{measured.median:,.0f} ({measured.low:,.0f} to {measured.high:,.0f}) pairs a second"
        return [selected, f"{speed_text}, each sentence read once"]

    def evaluation_inputs(self) -> dict[str, Any]:
        """Return the content of the model, what it is evaluated on, and what is written of it."""
        guards = {f"guard {guard.name}": guard for guard in self.job.guards}
        return {
            "model": source_hash(str(self.job.output / SURROGATE / MODEL)),
            **self.job.settings.model_dump(include={"keep_start", "report", *RIGHTS}),
            **data_identity({"dev": self.job.dev, "test": self.job.test, **guards}),
        }

    def evaluation(self) -> list[str]:
        """Evaluate the Surrogate beside its start model, and put the one that is kept in ``model/``."""
        settings = self.job.settings
        output = self.job.output
        verdict, lines = evaluate(output, self.job)
        with replacing_folder(output / MODEL) as beside:
            if verdict.keep_reason:
                save(adapter_of(settings).build(settings), beside, overwrite=True)
            else:
                # The temporary folder is there already.
                shutil.copytree(output / SURROGATE / MODEL, beside, dirs_exist_ok=True)
                set_rights(beside, settings.license, settings.language)
        if not verdict.keep_reason:
            return lines
        return [f"kept: {verdict.keep_reason}", *lines]

    def train_output(self) -> TrainOutput:
        """Return how the training of the Surrogate ended."""
        return TrainOutput(**manifest.read(self.job.output / SURROGATE)["outcome"])
