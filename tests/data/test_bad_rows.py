"""Bad rows are collected and reported together, or left out and counted on request."""

import json

import pytest

from samesense.data import read_pairs
from samesense.errors import ConfigError, DataError

TEXT_FIX = "give the text or delete the row"
GOOD = [{"sentence1": "a", "sentence2": "b", "score": 0.5}, {"sentence1": "c", "sentence2": "d", "score": 1}]


def put(tmp_path, rows):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("bad", "column", "what", "fix"),
    [
        ({"sentence1": None}, "sentence1", "there is no text", TEXT_FIX),
        ({"sentence2": ""}, "sentence2", "the text is empty", TEXT_FIX),
        ({"sentence2": "\u3000 \n"}, "sentence2", "the text is empty", TEXT_FIX),
        ({"sentence1": 7}, "sentence1", "a text is needed, received int '7'", TEXT_FIX),
        (
            {"sentence1": {"text": "a"}},
            "sentence1",
            "a text is needed, received dict \"{'text': 'a'}\"",
            "write its text into a column of its own; in pandas, json_normalize does so",
        ),
        (
            {"sentence1": ["x"]},
            "sentence1",
            "a text is needed, received list \"['x']\"",
            "write a row for each item of the list; in pandas: frame.explode",
        ),
        (
            {"sentence1": "bad \ud800"},
            "sentence1",
            "the text holds half of a surrogate pair, which is no character",
            TEXT_FIX,
        ),
        ({"score": None}, "score", "there is no label", "give a label or delete the row"),
        ({"score": " "}, "score", "there is no label", "give a label or delete the row"),
        ({"score": "0,5"}, "score", "label '0,5' is not a number", "write decimals with a point"),
        (
            {"score": "high"},
            "score",
            "label 'high' is not a finite number, true or false, yes or no, or a known class such as duplicate or "
            "not_duplicate",
            "write one of these",
        ),
        ({"score": float("nan")}, "score", "there is no label", "give a label or delete the row"),
        (
            {"score": float("inf")},
            "score",
            "label inf is not a finite number, true or false, yes or no, or a known class such as duplicate or "
            "not_duplicate",
            "write one of these",
        ),
        (
            {"score": [1]},
            "score",
            "label of type list is not a number",
            "write one number in the label column",
        ),
    ],
)
def test_every_kind_of_bad_row(tmp_path, bad, column, what, fix):
    path = put(tmp_path, [*GOOD, {**GOOD[0], **bad}])
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    assert str(caught.value) == (
        f"{path}: 1 of 3 rows cannot be used.\n"
        f"  row 3, column {column!r}: {what}. Fix: {fix}.\n"
        "Correct these rows, or leave them out with `drop_bad_rows`."
    )
    data = read_pairs(path, drop_bad_rows=True)
    assert (data.pairs(), data.labels, data.dropped) == ([("a", "b"), ("c", "d")], [0.5, 1.0], 1)


def test_a_class_that_is_unknown_among_known_ones(tmp_path):
    rows = [{"premise": "a", "hypothesis": "b", "label": label} for label in ("neutral", "entailment", "maybe", 7)]
    path = put(tmp_path, rows)
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    fix = "Fix: correct the label, or write - if there is none."
    rule = "is not one of contradiction, not_entailment, neutral, entailment"
    assert str(caught.value) == (
        f"{path}: 2 of 4 rows cannot be used.\n"
        f"  row 3, column 'label': label 'maybe' {rule}. {fix}\n"
        f"  row 4, column 'label': label 7 {rule}. {fix}\n"
        "Correct these rows, or leave them out with `drop_bad_rows`."
    )


def test_the_first_few_of_many_are_shown_in_order(tmp_path):
    rows = [*GOOD, *({**GOOD[0], "sentence1": "", "score": "x"} for _ in range(4))]
    with pytest.raises(DataError) as caught:
        read_pairs(put(tmp_path, rows), limit_reported=3)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("pairs.jsonl: 4 of 6 rows cannot be used.")
    assert [line.split(":")[0] for line in lines[1:4]] == [
        "  row 3, column 'sentence1'",
        "  row 3, column 'score'",
        "  row 4, column 'sentence1'",
    ]
    assert lines[4] == "  and 5 more."


def test_dropping_every_row_is_refused(tmp_path):
    path = put(tmp_path, [{**GOOD[0], "sentence1": ""}, {**GOOD[1], "score": "x"}])
    with pytest.raises(DataError) as caught:
        read_pairs(path, drop_bad_rows=True)
    assert str(caught.value) == (
        f"{path}: no row is left of 2; 2 cannot be used and 0 have no label (-, -1 or empty, as in test parts with "
        "hidden labels). Give a file with labels."
    )


def test_a_triple_becomes_a_positive_and_a_negative_pair(tmp_path):
    path = put(tmp_path, [{"anchor": "a", "positive": "b", "negative": "c"}, {"anchor": "d", "positive": "e"}])
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    assert str(caught.value) == (
        f"{path}: 1 of 2 rows cannot be used.\n"
        f"  row 2, column 'negative': there is no text. Fix: {TEXT_FIX}.\n"
        "Correct these rows, or leave them out with `drop_bad_rows`."
    )
    data = read_pairs(path, drop_bad_rows=True)
    assert data.pairs() == [("a", "b"), ("a", "c")]
    assert (data.labels, data.kind, data.scale, data.label_column) == ([1.0, 0.0], "triplet", (0.0, 1.0), "negative")


def test_label_options_do_not_fit_triples(tmp_path):
    path = put(tmp_path, [{"anchor": "a", "positive": "b", "negative": "c"}])
    with pytest.raises(ConfigError) as caught:
        read_pairs(path, label_range=(0, 1))
    assert str(caught.value) == (
        f"{path}: `label_order` and `label_range` are for a label column, and this source has triplets with negatives "
        "in column 'negative'. Leave them out."
    )
