"""What each method trains on: the function that gives the training inputs for a start model and a job."""

from __future__ import annotations

from samesense.recipes.cosent import recipe as cosent
from samesense.recipes.mixed import recipe as mixed
from samesense.recipes.run.job import Prepare
from samesense.recipes.sections import recipe as sections
from samesense.recipes.supmpn import recipe as supmpn
from samesense.recipes.surrogate import recipe as surrogate
from samesense.recipes.unsupervised import rankcse, simcse

PREPARE: dict[str, Prepare] = {
    "cosent": cosent.prepare,
    "simcse": simcse.prepare,
    "rankcse": rankcse.prepare,
    "supmpn": supmpn.prepare,
    "sections": sections.prepare,
    "surrogate": surrogate.prepare,
    "mixed": mixed.prepare,
}
"""By the name of each method that is one training."""
