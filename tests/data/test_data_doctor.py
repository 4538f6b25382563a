"""The report on a file, counted by hand."""

import json
from pathlib import Path

import pytest

import samesense
from samesense.data import concat, examine, read_pairs
from samesense.data.pairs.read import read_bare_pairs
from samesense.data.pairs.targets import labels_as_classes, labels_from_0_to_1
from samesense.errors import DataError
from samesense.recipes.held_out.pairs import write_pairs
from tests.messages import listen

SHARED = Path(__file__).parents[2].parent / "shared/data"
ROWS = [
    ("x", 1, "A dog sleeps.", "The dog is asleep."),
    ("x", 0, "The dog is asleep.", "A dog sleeps."),
    ("x", 1, "A dog sleeps.", "The dog is asleep."),
    ("y", 1, "one two three four five six", "one two three four five six"),
    ("y", 0, "It rains", "No, it's dry!"),
]


def put(tmp_path, name, rows):
    path = tmp_path / name
    lines = ["subset\tscore\tsentence1\tsentence2", *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_pairs(path)


def test_the_counts_of_a_small_file(tmp_path):
    data = put(tmp_path, "small.tsv", ROWS)
    test = put(tmp_path, "test.tsv", [("", 1, "no its dry", "it  RAINS."), ("", 0, "a", "b")])
    report = examine(data, against={"test": test, "itself": data})
    assert (report.rows, report.kind, report.scale) == (5, "binary", (0, 1))
    assert report.label_counts == {"0": 2, "1": 3}
    assert report.label_quantiles == {"min": 0.0, "25%": 0.0, "50%": 1.0, "75%": 1.0, "max": 1.0}
    assert report.positive_share == 0.6
    assert report.distinct_sentences == 5
    assert (report.length_unit, report.words_median, report.words_p99) == ("words", 3.5, 6.0)
    assert (report.duplicate_pairs, report.conflicting_pairs, report.equal_pairs) == (2, 1, 1)
    assert (report.subsets, report.overlaps) == ({"x": 3, "y": 2}, {"test": 1, "itself": 3})
    assert report.warnings == [
        "1 pair is also in test: a score on it would be inflated",
        "3 pairs are also in itself: a score on it would be inflated",
        "1 pair is given different labels: decide which one is right",
        "2 of 5 rows repeat an earlier pair: they count more than the others",
    ]
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()


def test_the_report_in_words(tmp_path):
    report = examine(put(tmp_path, "small.tsv", ROWS[2:]))
    assert report.lines() == [
        "small.tsv: 3 binary pairs, labels 0 to 1 (median 1.0)",
        "  labels: 0: 1, 1: 2 (66.7 % positive)",
        "  scale: 0 to 1",
        "  sentences: 5 distinct; words: median 3.5, 99 % have at most 6",
        "  repeated pairs: 0; pairs with different labels: 0; pairs of equal sentences: 1",
        "  subsets: x: 1, y: 2",
    ]


def test_text_without_spaces_is_measured_in_characters(tmp_path):
    report = examine(put(tmp_path, "zh.tsv", [("", 1, "花呗分期", "花呗 怎么分期"), ("", 0, "买手机", "天气")]))
    assert (report.length_unit, report.words_median) == ("characters", 3.5)


def test_many_different_labels_are_told_in_quantiles(tmp_path):
    report = examine(put(tmp_path, "s.tsv", [("", i / 4, f"a {i}", f"b {i}") for i in range(21)]))
    assert report.label_counts is None
    assert report.lines()[:2] == [
        "s.tsv: 21 scored pairs, labels 0 to 5 (median 2.5)",
        "  labels: min 0, 25% 1.25, 50% 2.5, 75% 3.75, max 5",
    ]


def test_few_positives_are_pointed_out(tmp_path):
    report = examine(put(tmp_path, "few.tsv", [("", int(i == 0), f"a {i}", f"b {i}") for i in range(40)]))
    assert report.warnings == ["only 2.5 % of the pairs are positive: a threshold will be unreliable"]


def test_classes_are_named_and_left_out_rows_told(tmp_path):
    path = tmp_path / "nli.tsv"
    path.write_text("premise\thypothesis\tlabel\na\tb\tneutral\na\tc\tentailment\na\td\t-\n")
    report = examine(read_pairs(path))
    assert report.label_counts == {"neutral": 1, "entailment": 1}
    assert report.lines()[-1] == "  left out: 0 bad rows, 1 without a label"


def test_two_classes_of_inference_have_the_names_that_the_data_give_them(tmp_path):
    path = tmp_path / "rte.tsv"
    path.write_text("premise\thypothesis\tlabel\na\tb\tNot entailment\na\tb\tentailment\nc\td\tentailment\n")
    data = read_pairs(path)
    report = examine(data)
    assert report.label_counts == {"not_entailment": 1, "entailment": 2}
    assert report.conflicts[0].labels == ["not_entailment", "entailment"]
    assert "  labels: not_entailment: 1, entailment: 2" in report.lines()
    assert labels_as_classes(data).summary == "2 classes (not_entailment, entailment)"
    assert labels_from_0_to_1(data).summary == "not_entailment 0, entailment 1"
    assert read_pairs(write_pairs(tmp_path, data.take([0, 2]))).zero_class == "not_entailment"
    three = read_pairs([("a", "b", "contradiction"), ("a", "c", "entailment")])
    assert examine(concat([data, three])).label_counts == {"contradiction": 2, "entailment": 3}


def test_two_classes_of_inference_by_numbers_have_the_names_of_their_order(tmp_path):
    path = tmp_path / "rte.tsv"
    path.write_text("sentence1\tsentence2\tlabel\na\tb\t0\na\tc\t1\n")
    for order, zero in (("entailment,not_entailment", "not_entailment"), ("contradiction,entailment", "contradiction")):
        assert examine(read_pairs(path, label_order=order)).label_counts == {zero: 1, "entailment": 1}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published data sets are not beside this checkout")
@pytest.mark.parametrize(
    ("name", "rows", "kind"),
    [
        ("en/stsb.train", 5749, "scored"),
        ("en/mrpc.train", 4076, "binary"),
        ("nli/cad.train", 8330, "nli"),
        ("zh/atec.dev", 10000, "binary"),
    ],
)
def test_published_data_is_read_whole(name, rows, kind):
    data = read_pairs(SHARED / f"{name}.tsv.gz")
    assert (len(data), data.kind, data.dropped, data.dropped_unlabelled) == (rows, kind, 0, 0)


def test_minus_one_beside_zero_and_one_is_pointed_at(tmp_path):
    rows = "".join(f"{i % 3 - 1}\ta {i}\tb {i}\n" for i in range(9))
    (tmp_path / "hidden.tsv").write_text("label\tsentence1\tsentence2\n" + rows)
    assert examine(read_pairs(tmp_path / "hidden.tsv")).warnings == [
        "the labels are -1, 0 and 1: if -1 marks pairs without a label, leave those rows out"
    ]


def test_texts_of_punctuation_alone_are_compared_as_they_are(tmp_path):
    data = put(tmp_path, "a.tsv", [("", 1, "!", "?"), ("", 0, "a", "b")])
    other_file = put(tmp_path, "b.tsv", [("", 1, "...", ","), ("", 0, "?", "!")])
    assert examine(data, against={"other": other_file}).overlaps == {"other": 1}


def test_other_data_need_no_labels_that_can_be_read(tmp_path):
    data = put(tmp_path, "a.tsv", ROWS)
    path = tmp_path / "hidden.jsonl"
    rows = [
        {"anchor": "It rains!", "positive": "No. Its dry", "negative": "x", "label": "-"},
        {"anchor": "x", "positive": None, "negative": "y"},
        {"anchor": "a dog sleeps", "positive": "y", "negative": "The dog is asleep"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    messages = listen()
    pairs = read_bare_pairs(path)
    assert messages == [f"{path}: left out: 1 of 6 pairs, which lack a text"]
    assert pairs == [
        ("It rains!", "No. Its dry"),
        ("It rains!", "x"),
        ("x", "y"),
        ("a dog sleeps", "y"),
        ("a dog sleeps", "The dog is asleep"),
    ]
    assert examine(data, against={"hidden": pairs}).overlaps == {"hidden": 2}
    assert read_bare_pairs(path, columns="positive,anchor,score")[1:] == [("y", "a dog sleeps")]
    with pytest.raises(DataError, match="`columns` names 'absent', which this source does not have"):
        read_bare_pairs(path, columns="anchor,absent,score")
    path.write_text("")
    with pytest.raises(DataError, match="there are no rows"):
        read_bare_pairs(path)


def test_several_sources_are_held_against_all_rows_of_an_iterator(tmp_path):
    files = [put(tmp_path, f"{name}.tsv", ROWS) for name in ("a", "b")]
    rows = ((first, second, label) for _, label, first, second in ROWS)
    first, second = samesense.doctor([str(file.source) for file in files], against=[rows])
    assert first.overlaps == second.overlaps and sum(first.overlaps.values()) > 0


def test_texts_in_the_quotes_of_another_program_and_texts_that_say_none_are_warned_of(tmp_path):
    rows = [("x", 1, '"one""two""three"', '"a title"'), ("x", 0, "nan", "N/A"), ("x", 0, "a", '"b" and "c"')]
    quoted, empty = examine(put(tmp_path, "t.tsv", rows)).warnings
    assert quoted.startswith("1 texts are in double quotes, with doubled ones inside")
    assert empty.startswith("'N/A', 'nan' occur as texts")


def test_backslashes_before_quotes_are_warned_of():
    (warning,) = examine(read_pairs([(r"He said \"no\" to it", "b", 1), ("c", "d", 0)])).warnings
    assert warning.startswith("1 texts have backslashes before quotes, such as")


def test_quotes_of_windows_that_became_control_characters_are_warned_of():
    data = read_pairs([("\u0093a\u0094", "b", 1), ("c", "d", 0)])
    (warning,) = examine(data).warnings
    assert warning.startswith("1 texts hold control characters in place of curly quotes or dashes")
    assert warning.endswith("convert from WINDOWS-1252")


def test_pairs_of_a_text_with_itself_are_warned_of_where_they_are_most():
    rows = [(f"text {index}", f"text {index}", index % 2) for index in range(4)]
    warning = (
        "4 of 4 pairs are a text with itself, which teaches nothing: check that the two columns of texts are the "
        "right ones"
    )
    assert warning in examine(read_pairs(rows)).warnings
    others = [(f"one {index}", f"other {index}", index % 2) for index in range(4)]
    assert not any("with itself" in line for line in examine(read_pairs([*rows, *others])).warnings)
