"""Section triplets: from documents with sections to a model that tells sentences of one section from those of another.

    samesense train documents.jsonl.gz --method sections --model runs/surrogate --output runs/sections

Triplets that are in a table already are labelled pairs of kind triplet: ``samesense train triplets.tsv --loss
triplet``.

Source: Ein Dor et al. 2018 for the triplets; Reimers and Gurevych 2019 for the objective; settings in
    ``configs/sections.toml``.
Differs: triplets are drawn from any documents, see :func:`~samesense.data.section_triplets.draw_section_triplets`.
"""

from __future__ import annotations

from sentence_transformers import SentenceTransformer

from samesense.losses.triplet import Triplet
from samesense.recipes.run.job import Job, TrainingInputs
from samesense.recipes.sections.data import SectionsSettings, SectionTriplets
from samesense.training.dataset import as_dataset


def prepare(model: SentenceTransformer, job: Job[SectionTriplets, SectionsSettings]) -> TrainingInputs:
    """Return what a model is trained on."""
    settings = job.settings
    return TrainingInputs(
        dataset=as_dataset(job.data.columns()),
        loss=lambda: Triplet(
            model,
            distance=settings.distance,
            triplet_margin=settings.triplet_margin,
            mini_batch_num_tokens=settings.mini_batch_num_tokens,
        ),
        summary=[job.data.summary],
    )
