"""Probes: is a sentence closer to a paraphrase than to a sentence with the same words and another meaning?

Rank correlations hardly show whether a model understands negation, numbers, or who does what to whom, because few pairs
of test sets depend on it. Each probe is an English sentence, a paraphrase in other words or another construction, and a
sentence that shares most of its words and means something else.

Source: the sentences were written for this package, by hand and from templates; the idea is that of Naik et al. 2018
    (stress tests for inference) and Ribeiro et al. 2020 (CheckList).
"""

from __future__ import annotations

from pathlib import Path

from samesense.data.rows.load import read_rows
from samesense.data.rows.table_options import table_options
from samesense.evaluation.sections import SectionTask
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import Task

FILE = Path(__file__).with_name("probes.tsv")


class ProbeTask(SectionTask):
    """Share of probes whose sentence scores higher with its paraphrase; a tie is an error."""

    suite = "probes"


def _tasks() -> list[Task]:
    """Return a task for each kind of probe: negation, numbers, roles and word order."""
    kinds: dict[str, list[tuple[str, str, str]]] = {}
    with table_options():
        rows = [cells for _, cells in read_rows(FILE)]
    for cells in rows:
        texts = str(cells["anchor"]), str(cells["same"]), str(cells["different"])
        kinds.setdefault(str(cells["probe"]), []).append(texts)
    return [ProbeTask(probes, kind, note="English, written for this package") for kind, probes in kinds.items()]


SUITE = Suite(
    task=ProbeTask,
    data="English probes that come with the library: 55 each of negation, numbers, roles and word order",
    figures="share of sentences closer to one of the same meaning than to one of the same words",
    metrics=("accuracy",),
    own_tasks=_tasks,
)
