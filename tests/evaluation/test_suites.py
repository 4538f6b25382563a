"""From folders, files and names to tasks; missing and incomparable ones."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

import samesense
from samesense.data import BENCHMARKS
from samesense.data.benchmarks.comparability import why_not_comparable
from samesense.errors import ConfigError, DataError, ModelError
from samesense.evaluation import SUITES, averages, find_tasks
from samesense.reports import read_results
from tests.command import run_command
from tests.evaluation.toy import exact_minimum
from tests.models import made_model

WORDS = "the red blue old cat dog eats runs sings today in on a house river".split()


def sentence(source):
    return " ".join(source.choices(WORDS, k=5)).capitalize() + "."


def write_pairs(path, rows, highest=5, subset="", seed=0, recurring=0):
    source = random.Random(seed)
    lines = ["subset\tscore\tsentence1\tsentence2"]
    for i in range(rows):
        first = "One query that recurs." if i < recurring else sentence(source)
        lines.append(f"{subset}\t{i % (highest + 1)}\t{first}\t{sentence(source)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(("sts12.test", "sts13.test", "stsb.dev", "stsb.test", "sickr.test")):
        write_pairs(tmp_path / f"{name}.tsv", 30, seed=number, recurring=6)
    for name in ("mrpc.train", "mrpc.test", "paws.test"):
        write_pairs(tmp_path / f"{name}.tsv", 24, highest=1, seed=len(name))
    write_pairs(tmp_path / "afs.tsv", 40, subset="GC")
    return tmp_path


def overlap(pairs):
    return np.array([len(set(a.split()) & set(b.split())) + 0.01 * len(b) for a, b in pairs], dtype=float)


CANDIDATE = made_model(overlap, name="overlap", protocol="shared words", seed=1)


def names(tasks):
    return [(task.suite, task.dataset) for task in tasks]


def test_tasks_come_by_suite_and_in_the_order_of_the_catalogue(folder):
    tasks, missing, _ = find_tasks(folder, ["ranking", "sts", "geometry", "binary", "argument"])
    scored = ["sts12.test", "sts13.test", "stsb.test", "sickr.test"]
    assert names(tasks) == [
        *(("ranking", name) for name in scored),
        *(("sts", name) for name in scored),
        ("geometry", "stsb.dev"),
        ("binary", "mrpc.test"),
        ("binary", "paws.test"),
        ("argument", "afs"),
    ]
    assert missing == ["sts14", "sts15", "sts16"]


def test_what_is_missing_is_only_of_languages_at_hand(folder, tmp_path):
    write_pairs(tmp_path / "more" / "bq.test.tsv", 20, highest=1)
    _, missing, _ = find_tasks([folder, tmp_path / "more"], ["sts"])
    assert missing == ["sts14", "sts15", "sts16", "atec", "lcqmc", "pawsx", "stsb-zh"]


def test_protocols_name_text_rows_and_what_is_not_comparable(folder):
    tasks, *_ = find_tasks(folder, ["sts", "binary", "ranking", "argument"])
    for task in tasks:
        for row in task.evaluate(CANDIDATE).results:
            benchmark = BENCHMARKS[task.dataset.split(".")[0]]
            published = benchmark.rows["test" if "test" in benchmark.rows else ""]
            assert row.dataset == task.dataset
            assert row.protocol.startswith("shared words; ")
            assert f"{task.dataset}: raw text, " in row.protocol
            assert f"rows instead of {published}" in why_not_comparable(row.protocol)
            assert not benchmark.note or benchmark.note in row.protocol


def test_a_set_of_published_size_carries_no_warning(tmp_path):
    write_pairs(tmp_path / "stsb.test.tsv", 1379)
    (task,), *_ = find_tasks(tmp_path)
    assert {why_not_comparable(row.protocol) for row in task.evaluate(CANDIDATE).results} == {""}


def test_binary_thresholds_come_from_dev_or_where_there_is_none_from_train(folder):
    (mrpc, paws), *_ = find_tasks(folder, ["binary"])
    protocols = {row.metric: row.protocol for row in mrpc.evaluate(CANDIDATE).results}
    assert "fitted for it on 24 pairs of mrpc.train.tsv" in protocols["accuracy"]
    assert [row.metric for row in paws.evaluate(CANDIDATE).results] == ["average_precision"]


def test_averages_of_what_was_judged(folder):
    tasks, *_ = find_tasks(folder)
    rows = [row for task in tasks for row in task.evaluate(CANDIDATE).results]
    (average,) = averages(rows)
    assert average.dataset == "sts-avg-4 of 7"
    figures = [row.value for row in rows if row.subset == "all" and row.metric == "spearman"]
    assert average.value == pytest.approx(sum(figures) / 4, abs=1e-4)


def test_the_first_source_counts(folder, tmp_path):
    other_folder = tmp_path / "other"
    write_pairs(other_folder / "sts12.test.tsv", 12)
    assert len(find_tasks([other_folder, folder])[0][0].data) == 12
    assert len(find_tasks([folder, other_folder])[0][0].data) == 30


def test_files_are_benchmarks_by_name_or_the_user_s_own(folder, tmp_path):
    own_file = write_pairs(tmp_path / "own" / "mine.tsv", 20, recurring=5)
    tasks, missing, _ = find_tasks([folder / "sts12.test.tsv", own_file], ["sts", "ranking", "geometry"])
    assert names(tasks) == [
        ("sts", "sts12.test"),
        ("sts", "mine.tsv"),
        ("ranking", "sts12.test"),
        ("ranking", "mine.tsv"),
        ("geometry", "mine.tsv"),
    ]
    assert "raw text, 20 rows" in tasks[1].evaluate(CANDIDATE).results[0].protocol
    assert "stsb" in missing


def test_options_of_reading_make_a_file_ones_own_under_any_name(tmp_path):
    path = tmp_path / "sts12.test.tsv"
    path.write_text("score\tjudged\tsentence1\tsentence2\n5\t0\ta\tb\n0\t5\tc\td\n1\t3\te\tf\n")
    (benchmark_task,), (own_task,) = (
        find_tasks(path, **options).tasks for options in ({}, {"reading": {"columns": "sentence1,sentence2,judged"}})
    )
    assert (benchmark_task.dataset, own_task.dataset) == ("sts12.test", "sts12.test.tsv")
    assert own_task.data.labels == [0.0, 5.0, 3.0]


def test_a_folder_saved_by_datasets_is_the_user_s_own(tmp_path):
    datasets = pytest.importorskip("datasets")
    pairs = {"sentence1": ["A b.", "C d.", "E f."], "sentence2": ["G.", "H.", "I."], "score": [2.5, 0.0, 5.0]}
    datasets.Dataset.from_dict(pairs).save_to_disk(tmp_path / "saved")
    assert names(find_tasks(tmp_path / "saved").tasks) == [("sts", str(tmp_path / "saved"))]


def test_own_pairs_that_no_suite_takes_are_named_and_refused_where_nothing_else_is_there(transfer, tmp_path):
    own_file = write_pairs(tmp_path / "own" / "mine.tsv", 20)
    belongs = f"{own_file}: this belongs to sts, ranking, geometry, binary, and the suites asked for are transfer."
    assert find_tasks([transfer, own_file], ["transfer"]).unfit == [belongs]
    with pytest.raises(ConfigError, match=re.escape(f"{belongs} Ask for suite sts, or give other data.")):
        find_tasks([own_file], ["transfer"])


def test_sentences_without_classes_are_refused_by_their_kind(tmp_path):
    texts = tmp_path / "corpus.jsonl"
    texts.write_text('{"_id": "d1", "text": "Where is my parcel?"}\n' * 10, encoding="utf-8")
    for suite in ("transfer", "sts", "retrieval", "classes"):
        with pytest.raises(DataError, match="these are unlabelled sentences, by the column text"):
            find_tasks([texts], [suite])


def test_sentences_with_classes_belong_to_their_suite(tmp_path):
    labelled = tmp_path / "intents.csv"
    rows = [f"Where is parcel {number},delivery\nHow do I pay {number},billing\n" for number in range(10)]
    labelled.write_text("text,label\n" + "".join(rows), encoding="utf-8")
    for suite in ("transfer", "sts", "retrieval"):
        with pytest.raises(ConfigError, match="this belongs to classes, and the suites asked for are"):
            find_tasks([labelled], [suite])
    (task,) = find_tasks([labelled], ["classes"]).tasks
    assert (task.dataset, task.note) == ("intents.csv", "20 texts of 2 classes")
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2,label\n" + "a b,c d,1\ne f,g h,0\n" * 10, encoding="utf-8")
    with pytest.raises(ConfigError, match="this belongs to sts, ranking, geometry, binary"):
        find_tasks([pairs], ["classes"])
    few = tmp_path / "few.csv"
    few.write_text("text,label\n" + "".join(rows[:3]), encoding="utf-8")
    found = find_tasks([labelled, few], ["classes"])
    assert [task.dataset for task in found.tasks] == ["intents.csv"]
    assert found.unfit == [
        "classes on few.csv: accuracy takes 20 texts to test, of two classes or more; got 6 of 2. Give more texts."
    ]


def test_classes_are_read_by_the_columns_that_are_named(tmp_path):
    path = tmp_path / "tickets.csv"
    rows = [f"{number},Where is {number}?,delivery\n{number},Which card pays {number}?,pay\n" for number in range(10)]
    path.write_text("id,body,topic\n" + "".join(rows), encoding="utf-8")
    (task,) = find_tasks([path], ["classes"], reading={"columns": "body,topic"}).tasks
    assert task.note == "20 texts of 2 classes"


def test_own_files_of_one_name_are_told_apart(tmp_path):
    paths = [write_pairs(tmp_path / subfolder / "test.tsv", 10) for subfolder in ("a", "b")]
    tasks, missing, _ = find_tasks(paths)
    assert [task.dataset for task in tasks] == ["a/test.tsv", "b/test.tsv"]
    assert missing == []


def test_an_own_file_that_does_not_fit_a_suite_is_reported(folder, tmp_path):
    own_file = write_pairs(tmp_path / "mine.tsv", 20)
    tasks, _, unfit = find_tasks([folder / "sts12.test.tsv", own_file], ["ranking"])
    assert names(tasks) == [("ranking", "sts12.test")]
    assert len(unfit) == 1
    assert unfit[0].startswith("ranking on mine.tsv: ")
    with pytest.raises(DataError, match=r"(?s)Suite 'ranking' has no data: ranking on mine.tsv"):
        find_tasks(own_file, ["ranking"])
    tasks, _, unfit = find_tasks(own_file, ["sts", "ranking"])
    assert names(tasks) == [("sts", "mine.tsv")]
    assert unfit[0].startswith("Suite 'ranking' has no data: ranking on mine.tsv: ")


def test_a_hub_name_and_a_benchmark_s_name_are_loaded_from_the_hub(monkeypatch):
    datasets = pytest.importorskip("datasets")
    calls = []

    def load_dataset(name, config, *, split):
        calls.append((name, config, split))
        pairs = {"sentence1": ["A b.", "C d.", "E f."], "sentence2": ["G.", "H.", "I."], "score": [2.5, 0.0, 5.0]}
        return datasets.Dataset.from_dict(pairs)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    tasks, *_ = find_tasks(["sts16", "owner/pairs:dev"])
    assert names(tasks) == [("sts", "sts16.test"), ("sts", "owner/pairs:dev")]
    assert calls == [("owner/pairs", None, "dev"), ("mteb/sts16-sts", None, "test")]


@pytest.mark.parametrize(
    ("sources", "suites", "error", "message"),
    [
        (["sts99"], ["sts"], DataError, r"sts99: this is no folder, file, hub name .*Benchmarks: sts12, "),
        (["no/such.tsv"], ["sts"], DataError, "no/such.tsv: there is no such file"),
        (["mpqa"], ["transfer"], DataError, "mpqa: no usable copy on the hub"),
        (
            ["sts12"],
            ["binary"],
            ConfigError,
            "sts12: this belongs to sts, ranking, and the suites asked for are binary",
        ),
        ([], ["sts"], DataError, r"'sts' needs `data`"),
        (["."], ["sts", "stss"], ConfigError, "The suites are sts, transfer, .*; received stss"),
        (["."], [], ConfigError, "received none"),
    ],
)
def test_what_is_not_found_is_refused(tmp_path, monkeypatch, sources, suites, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        find_tasks(sources, suites)


def test_a_suite_without_any_set_says_what_was_looked_for_and_where(tmp_path):
    write_pairs(tmp_path / "stsb.test.tsv", 20)
    with pytest.raises(DataError) as caught:
        find_tasks([tmp_path], ["transfer"])
    assert [str(caught.value)] == find_tasks([tmp_path], ["sts", "transfer"]).unfit
    for fragment in (
        "Suite 'transfer'",
        "mr, cr, subj, mpqa, sst2, trec, mrpc",
        str(tmp_path),
        "sts12.test.tsv",
        "downstream",
    ):
        assert fragment in str(caught.value)


def encode(texts):
    """Bags of words: a class that one word tells can be read off."""
    return np.array([[text.split().count(word) for word in [*WORDS, *KINDS]] for text in texts], dtype=np.float32)


KINDS = ("NUM", "HUM", "LOC", "0", "1")
READER = made_model(overlap, encode, name="bag", protocol="bag of words")


def write_readable(path, classes):
    """Write sentences that hold the name of their class as a word."""
    source = random.Random(len(classes))
    lines = [f"{kind}\t{sentence(source)} {kind} {sentence(source)}" for kind in classes]
    path.write_text("\n".join(["label\tsentence", *lines]) + "\n", encoding="utf-8")


@pytest.fixture
def transfer(tmp_path):
    write_readable(tmp_path / "subj.tsv", ["0", "1"] * 15)
    write_readable(tmp_path / "sst2.train.tsv", ["0", "1"] * 20)
    write_readable(tmp_path / "sst2.dev.tsv", ["1", "0"] * 5)
    write_readable(tmp_path / "sst2.test.tsv", ["1", "1", "0"] * 5)
    write_readable(tmp_path / "trec.train.tsv", ["NUM", "LOC", "HUM"] * 12)
    write_readable(tmp_path / "trec.test.tsv", ["NUM", "HUM"] * 4)
    for split in ("train", "test"):
        write_pairs(tmp_path / f"mrpc.{split}.tsv", 200, highest=1, seed=len(split))
    return tmp_path


def test_transfer_tasks_have_the_shape_of_their_set(transfer, monkeypatch):
    # SentEval's own classifier does not learn from so few rows
    monkeypatch.setattr("samesense.evaluation.classifier.train_layers", exact_minimum)
    tasks, missing, _ = find_tasks(transfer, ["transfer"], fast=True)
    assert names(tasks) == [("transfer", name) for name in ("subj", "sst2", "trec", "mrpc")]
    assert missing == ["mr", "cr", "mpqa"]
    judged = {task.dataset: task.evaluate(READER).results for task in tasks}
    assert [row.metric for row in judged["mrpc"]] == ["accuracy", "f1"]
    first_rows = {name: rows[0] for name, rows in judged.items()}
    assert {name: row.n for name, row in first_rows.items()} == {"mrpc": 200, "subj": 30, "sst2": 15, "trec": 8}
    shapes = {"mrpc": "|u - v|", "subj": "5 outer folds", "sst2": "chosen on dev", "trec": "chosen on 5 folds of train"}
    assert all(words in first_rows[name].protocol for name, words in shapes.items())
    assert [first_rows[name].value for name in ("subj", "sst2", "trec")] == [1.0, 1.0, 1.0]


def test_transfer_protocols_name_every_split_and_fast_is_not_comparable(transfer):
    for fast, folds in ((True, "5 folds instead of 10, "), (False, "")):
        _, _, trec, _ = find_tasks(transfer, ["transfer"], fast=fast).tasks
        (row,) = trec.evaluate(READER).results
        assert "trec.train: raw text, 36 rows; trec.test: raw text, 8 rows; six coarse classes; " in row.protocol
        assert why_not_comparable(row.protocol) == (
            f"{folds}trec.train has 36 rows instead of 5452, trec.test has 8 rows instead of 500"
        )


@pytest.mark.parametrize("absent", ["sst2.train", "sst2.dev", "sst2.test", "mrpc.train"])
def test_a_set_with_a_split_missing_is_missing(transfer, absent):
    (transfer / f"{absent}.tsv").unlink()
    tasks, missing, _ = find_tasks(transfer, ["transfer"], fast=True)
    assert len(tasks) == 3
    assert absent.split(".")[0] in missing


def test_every_suite_of_the_catalogue_is_registered_and_documented():
    of_benchmarks = {suite for row in BENCHMARKS.values() for suite in row.suites}
    assert of_benchmarks | {"sections", "retrieval", "classes", "probes"} == set(SUITES)
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    rows = [f"| `{suite.name}` | {suite.data} | {suite.figures} |" for suite in SUITES.values()]
    assert "\n".join(rows) in page
    assert re.findall(r"``(\w+)``", samesense.evaluate.__doc__.partition("suites: ")[2].partition(", as in")[0]) == [
        *SUITES
    ]


def test_every_average_is_over_members_of_its_suite():
    for suite in SUITES.values():
        for average in suite.averages:
            assert average.metric in suite.metrics
            assert all(suite.name in BENCHMARKS[member.split(".")[0]].suites for member in average.members)


def test_rows_in_memory_are_pairs_of_the_user_s_own(folder):
    rows = [("A b.", "A b.", 5.0), ("C d.", "C e.", 3.0), ("F.", "G.", 0.0)]
    assert len(find_tasks(rows).tasks) == 1
    assert [len(task.data) for task in find_tasks([folder / "sts12.test.tsv", rows]).tasks] == [30, 3]


def test_what_was_evaluated_before_a_failure_is_kept(tmp_path, monkeypatch):
    for name in ("a", "b"):
        write_pairs(tmp_path / f"{name}.tsv", 40)
    scores = iter([lambda pairs: overlap(pairs), lambda pairs: np.full(len(pairs), np.nan)])
    model = made_model(lambda pairs: next(scores)(pairs), name="made", protocol="made")
    with pytest.raises(ModelError):
        samesense.evaluate(model, [tmp_path / "a.tsv", tmp_path / "b.tsv"], output=tmp_path / "r.jsonl")
    assert {row.dataset for row in read_results(tmp_path / "r.jsonl")} == {"a.tsv"}


def test_documents_give_section_triplets(tmp_path):
    sections = [{"sentences": [f"Section {s} says {i}." for i in range(4)]} for s in range(3)]
    path = tmp_path / "documents.jsonl"
    path.write_text(json.dumps({"sections": sections}) + "\n" + json.dumps({"sections": sections[:2]}))
    (task,), missing, _ = find_tasks(path, ["sections"])
    assert (task.suite, task.dataset, len(task.triplets), missing) == ("sections", "documents.jsonl", 18, [])
    with pytest.raises(ConfigError, match="belongs to sections, and the suites asked for are sts"):
        find_tasks(path, ["sts"])


def test_documents_of_one_name_are_told_apart(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        sections = [{"sentences": [f"Section {s} of {name} says {i}." for i in range(4)]} for s in range(3)]
        (tmp_path / name / "docs.jsonl").write_text(json.dumps({"sections": sections}))
    first, second = find_tasks([tmp_path / "a" / "docs.jsonl", tmp_path / "b" / "docs.jsonl"], ["sections"]).tasks
    assert (first.dataset, second.dataset) == ("a/docs.jsonl", "b/docs.jsonl")


def test_sections_without_documents(folder):
    with pytest.raises(DataError, match="Suite 'sections' needs documents"):
        find_tasks(folder, ["sections"])


def test_own_pairs_of_other_names_are_read_by_columns(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("id,left,right,same\n1,a,b,yes\n2,c,d,no\n3,e,f,no\n")
    (task,) = find_tasks(str(path), reading={"columns": "left,right,same"}).tasks
    assert list(task.texts()) == ["a", "c", "e", "b", "d", "f"]
    for flags, message in (
        ((), "Name two texts and the label: --columns left,right,same"),
        (
            ("--columns", "left,other,same"),
            "--columns names 'other', which this source does not have",
        ),
    ):
        code, _, err = run_command(capsys, "compare", "m", "--data", path, "--output", tmp_path / "r.html", *flags)
        assert (code, message in err) == (2, True)
