"""Data of every kind, through the doctor, the method that follows from it, a few steps of training, and the scores."""

import json

import pandas as pd
import pytest
from datasets import Dataset

import samesense
from samesense.data.kinds import detect_kind
from samesense.data.tuples.convert import tuples_of_classes
from samesense.errors import DataError
from samesense.recipes.planning.plan import plan
from samesense.recipes.reading import Reading
from tests.conftest import WORDS

TEXTS = [" ".join(WORDS[(7 * at + 5 * step) % len(WORDS)] for step in range(2 + at % 6)) for at in range(48)]
ONE, OTHER, THIRD = TEXTS[:16], TEXTS[16:32], TEXTS[32:]
ROWS = list(zip(ONE, OTHER, THIRD, strict=True))
NLI = ("entailment", "neutral", "contradiction")


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(header, rows):
    return "\n".join(["\t".join(header), *("\t".join(map(str, row)) for row in rows)]) + "\n"


def each(*cells):
    """Rows of the three texts of each number, in which functions of the number stand for other cells."""
    return [[cell(at, *texts) if callable(cell) else texts[cell] for cell in cells] for at, texts in enumerate(ROWS)]


LISTS = [{"query": a, "pos": [b, f"{b} {c}"], "neg": [c][: at % 2]} for at, (a, b, c) in enumerate(ROWS)]
INFERENCE = [{"premise": a, "hypothesis": b, "label": NLI[at % 3]} for at, (a, b, _) in enumerate(ROWS)]
FILES = {
    "scored": ("a.tsv", table(("sentence1", "sentence2", "score"), each(0, 1, lambda at, *_: at % 6))),
    "binary": ("a.tsv", table(("text1", "text2", "label"), each(0, 1, lambda at, *_: at % 2))),
    "nli": ("a.jsonl", lines(INFERENCE)),
    "positives": ("a.tsv", table(("anchor", "positive"), each(0, 1))),
    "questions and answers": ("a.tsv", table(("id", "question", "answer"), each(lambda at, *_: at, 0, 1))),
    "triplets": ("a.tsv", table(("anchor", "positive", "negative"), each(0, 1, 2))),
    "columns": ("a.tsv", table(("query", "pos_1", "pos_2", "negative_1"), each(0, 1, lambda *_: "", 2))),
    "lists": ("a.jsonl", lines(LISTS)),
    "classes": ("a.tsv", table(("text", "label"), [(text, f"class {at % 4}") for at, text in enumerate(TEXTS)])),
    "headlines": ("a.tsv", table(("headline", "topic"), [(text, "abcd"[at % 4]) for at, text in enumerate(TEXTS)])),
    "sentences": ("a.txt", "\n".join(TEXTS)),
    "a column": ("a.tsv", table(("id", "body"), enumerate(TEXTS))),
}
EXPECTED = {
    "scored": ("pairs", True, "cosent"),
    "binary": ("pairs", True, "cosent"),
    "nli": ("pairs", True, "cosent"),
    "positives": ("tuples", True, "supmpn"),
    "questions and answers": ("tuples", True, "supmpn"),
    "triplets": ("pairs", True, "supmpn"),
    "columns": ("tuples", True, "supmpn"),
    "lists": ("tuples", True, "supmpn"),
    "classes": ("classes", True, "supmpn"),
    "headlines": ("classes", False, "supmpn"),
    "sentences": ("texts", True, "simcse"),
    "a column": ("texts", False, "simcse"),
}
"""Kind, whether it is certain, and the method that follows."""


@pytest.fixture
def put(tmp_path):
    def write(name):
        file, content = FILES[name]
        path = tmp_path / name / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        return path

    return write


@pytest.mark.parametrize("name", FILES)
def test_what_the_doctor_says_decides_the_method(name, put):
    source = put(name)
    kind, sure, method = EXPECTED[name]
    report = samesense.doctor(source)
    assert (detect_kind(source).kind, report.sure, f"; method {method} " in report.read_as) == (kind, sure, True)
    assert report.read_as in report.lines()[1]
    assert ("a guess: if it is wrong" in report.read_as) != sure
    planned = plan(source, dev="none")
    assert planned.method.name == method
    assert planned.lines()[0] == f"a{source.suffix}: {report.read_as}; `method` overrides"


QUICK = ("positives", "headlines")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FILES]
)
def test_each_kind_is_trained_on_and_scored(name, put, tiny_trunk, toy_pairs, tmp_path):
    run = samesense.train(
        put(name),
        dev="none",
        test=toy_pairs / "test.tsv",
        output=tmp_path / "run",
        model=str(tiny_trunk),
        batch_size=8,
        max_steps=2,
        precision="float32",
        learning_rate=1e-2,
    )
    before, after = (row.value for row in run.results if row.metric == "spearman")
    assert before != after
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["method"] == EXPECTED[name][2]


def test_what_is_in_memory_is_told_like_files(put):
    frame = pd.read_csv(put("positives"), sep="\t")
    lists = Dataset.from_list([json.loads(line) for line in put("lists").read_text().splitlines()])
    generator = ({"text": text, "label": "ab"[at % 2]} for at, text in enumerate(TEXTS))
    for source, method in ((frame, "supmpn"), (lists, "supmpn"), (generator, "supmpn"), (TEXTS, "simcse")):
        planned = plan(source, dev="none")
        assert (planned.method.name, len(planned.train) > 1) == (method, True)
    rows = [(a, b, at % 6) for at, (a, b, _) in enumerate(ROWS)]
    assert len(plan(TEXTS, dev=iter(rows), test=(row for row in rows)).test) == 16
    assert plan(rows, dev="none").method.name == "cosent"


def test_pairs_that_belong_together_have_no_copies_of_the_anchor(put):
    assert plan(put("positives"), dev="none").settings.tuples == "ragged"
    named = plan(put("positives"), dev="none", method="supmpn")
    assert (named.settings.tuples, named.settings.batch_size) == ("ragged", 64)
    papers = [plan(put("positives"), dev="none", config=name).settings for name in ("supmpn", "supmpn-large")]
    assert [(one.tuples, one.batch_size) for one in papers] == [("padded", 256), ("padded", 200)]
    assert plan(put("positives"), dev="none", settings={"tuples": "padded"}).settings.tuples == "padded"


def test_folders_of_documents_are_sentences_of_which_the_start_is_kept_unless_they_help(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "one.txt").write_text("It rains. The sun is away.\n\nThe river is slow.\n")
    assert "; method simcse " in samesense.doctor(folder).read_as
    planned = plan(folder)
    assert (planned.method.name, planned.config, planned.settings.keep_start) == (
        "simcse",
        "simcse-unlabelled",
        "unless-better",
    )
    assert list(planned.train.texts) == ["It rains.", "The sun is away.", "The river is slow."]
    assert plan(folder, method="simcse").settings.keep_start == "never"


def test_a_table_that_is_called_a_text_is_refused(put, tmp_path):
    path = tmp_path / "table.txt"
    path.write_text(FILES["scored"][1])
    with pytest.raises(DataError, match=r"as many tabs each \(2\).*Rename it"):
        plan(path)
    with pytest.raises(DataError, match=r"missing\.txt: there is no such file"):
        plan(tmp_path / "missing.txt")


def test_columns_that_are_named_are_told_by_what_they_hold(put):
    answers, headlines = put("questions and answers"), put("headlines")
    assert samesense.doctor(answers, columns="question,answer").counts == {"anchors": 16, "positives": 16}
    assert samesense.doctor(answers, columns="question").counts == {"texts": 16}
    assert samesense.doctor(headlines, columns="headline,topic").counts["classes"] == 4
    triplets = put("triplets")
    reading = Reading(columns="positive,anchor,negative")
    assert plan(triplets, dev="none", reading=reading).method.name == "supmpn"
    triplets.write_text(triplets.read_text().replace("negative", "bad"))
    planned = plan(triplets, dev="none", reading=Reading(columns="anchor,positive,bad"))
    assert (planned.method.name, planned.train.negatives[0]) == ("supmpn", [THIRD[0]])


def test_classes_are_no_negatives_of_themselves():
    data = tuples_of_classes(["a", "b", "c", "d", "e", "a", "e"], list("xxyyzxy"), source="s", name="s")
    assert data.anchors == ["a", "b", "c", "d"]
    assert data.positives == [["b"], ["a"], ["d"], ["c"]]
    assert data.classes == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert data.left_out == {"sentences of several classes": 1, "repeated rows": 1}
    assert data.summary()[0] == "4 anchors of 2 classes with 4 positives and 0 negatives"
    many = tuples_of_classes([f"text {at}" for at in range(90)], ["x", "y"] * 45, source="s", name="s")
    for anchor, own in zip(many.anchors, many.positives, strict=True):
        assert len(set(own)) == len(own) == 20 and anchor not in own
        assert {many.classes[text] for text in own} == {many.classes[anchor]}
