"""The probes of the library: their content, and their figures."""

import pytest

import samesense
from samesense.evaluation.probes import _tasks as probe_tasks
from samesense.evaluation.suites import find_tasks
from tests.evaluation.toy import candidate


def words(text):
    return {word.strip(".,") for word in text.lower().split()}


def test_there_are_fifty_probes_and_more_of_each_kind_and_none_twice():
    tasks = {task.dataset: task.triplets for task in probe_tasks()}
    assert list(tasks) == ["negation", "numbers", "roles", "word-order"]
    assert min(map(len, tasks.values())) >= 50
    probes = [probe for probes_of_kind in tasks.values() for probe in probes_of_kind]
    assert len({anchor for anchor, _, _ in probes}) == len(probes)
    assert all(len({text.casefold() for text in probe}) == 3 for probe in probes)
    assert all(text.strip() == text and text.endswith(".") for probe in probes for text in probe)


@pytest.mark.parametrize("kind", ["negation", "numbers", "roles", "word-order"])
def test_words_alone_do_not_solve_a_probe_and_meaning_does(kind):
    (task,) = [task for task in probe_tasks() if task.dataset == kind]
    overlap = candidate(lambda first, second: len(words(first) & words(second)) / len(words(first) | words(second)))
    (result,) = task.evaluate(overlap).results
    assert (result.task, result.metric, result.n) == ("probes", "accuracy", len(task.triplets))
    assert result.value < 0.1
    same = {(anchor, second) for anchor, second, _ in task.triplets}
    assert task.evaluate(candidate(lambda *pair: float(pair in same))).results[0].value == 1.0


def test_the_suite_needs_no_data_and_stands_beside_others(tmp_path):
    assert [task.dataset for task in find_tasks((), ["probes"]).tasks] == ["negation", "numbers", "roles", "word-order"]
    path = tmp_path / "pairs.tsv"
    path.write_text("sentence1\tsentence2\tscore\na b\ta c\t1\nd\te\t0\nf g\tf h\t3\n")
    assert [task.suite for task in find_tasks(path, ["sts", "probes"]).tasks] == ["sts", *["probes"] * 4]
    report = samesense.compare(["python:tests.evaluation.test_probes:lengths"], suites=["probes"], speed=False)
    values = {row.dataset: row.value for row in report.results if row.task == "probes"}
    assert set(values) == {"negation", "numbers", "roles", "word-order"}
    assert values["numbers"] < 0.5


def lengths(texts):
    return [[len(text), 100.0] for text in texts]
