"""Anchors with positives and negatives in every layout; unreadable ones are refused with row and fix."""

import gzip
import json

import numpy as np
import pytest

from samesense.data.tuples.read import read_tuples
from samesense.errors import ConfigError, DataError

NLI = [
    ("A dog runs.", "An animal moves.", "entailment"),
    ("It rains.", "Water falls.", "entailment"),
    ("A dog runs.", "The dog is old.", "neutral"),
    ("A dog runs.", "A dog sleeps.", "contradiction"),
    ("A dog runs.", "A dog moves.", "entailment"),
    ("It rains.", "The sun shines.", "contradiction"),
    ("It rains.", "Nobody knows.", "-"),
]


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def nli(path, rows=NLI, names=("premise", "hypothesis", "label")):
    return jsonl(path, [dict(zip(names, row, strict=True)) for row in rows])


def sides(data):
    return data.anchors, data.positives, data.negatives


WANTED = (
    ["A dog runs.", "It rains."],
    [["An animal moves.", "A dog moves."], ["Water falls."]],
    [["A dog sleeps."], ["The sun shines."]],
)


def test_nli_rows_are_grouped_by_premise(tmp_path):
    data = read_tuples(nli(tmp_path / "nli.jsonl"))
    assert sides(data) == WANTED
    assert data.neutrals == [["The dog is old."], []]
    assert data.left_out["rows without a label"] == 1
    assert data.name == "nli.jsonl"
    assert data.summary()[-1] == "left out: 1 rows without a label"
    again = read_tuples(nli(tmp_path / "snli.jsonl", names=("sentence1", "sentence2", "gold_label")))
    assert again.sha256 == data.sha256


def test_classes_may_be_initials(tmp_path):
    path = nli(tmp_path / "nli.jsonl", [(a, b, label[0]) for a, b, label in NLI])
    assert sides(read_tuples(path)) == WANTED


def test_integer_classes_need_their_order(tmp_path):
    codes = {"entailment": 0, "neutral": 1, "contradiction": 2, "-": -1}
    path = nli(tmp_path / "nli.jsonl", [(a, b, codes[label]) for a, b, label in NLI])
    assert sides(read_tuples(path, label_order="entailment,neutral,contradiction")) == WANTED
    with pytest.raises(DataError, match="`label_order` entailment,neutral,contradiction"):
        read_tuples(path)
    with pytest.raises(ConfigError, match="`label_order` takes two or three different names"):
        read_tuples(path, label_order="yes,no")


LAYOUTS = {
    "lists.jsonl": [
        {"query": "A dog runs.", "pos": ["An animal moves.", "A dog moves."], "neg": ["A dog sleeps."], "id": 3},
        {"query": "It rains.", "pos": ["Water falls."], "neg": ["The sun shines."], "pos_scores": [0.5]},
    ],
    "texts.jsonl": [
        {"anchor": "A dog runs.", "positive": "An animal moves.", "negative": "A dog sleeps."},
        {"anchor": "It rains.", "positive": "Water falls.", "negative": "The sun shines."},
        {"anchor": "A dog runs.", "positive": "A dog moves.", "negative": "A dog sleeps."},
    ],
    "numbered.jsonl": [
        {
            "anchor": "A dog runs.",
            "positive_1": "An animal moves.",
            "positive_2": "A dog moves.",
            "negative_1": "A dog sleeps.",
            "negative_2": "",
        },
        {"anchor": "It rains.", "positive_1": "Water falls.", "positive_2": None, "negative_1": "The sun shines."},
    ],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_lists_and_columns(tmp_path, name):
    data = read_tuples(jsonl(tmp_path / name, LAYOUTS[name]))
    assert sides(data) == WANTED
    assert data.neutrals == [[], []]


def test_simcse_csv_json_in_cells_and_parquet_lists(tmp_path):
    (tmp_path / "nli_for_simcse.csv").write_text(
        'sent0,sent1,hard_neg\nA dog runs.,An animal moves.,A dog sleeps.\n"It rains.",Water falls.,The sun shines.\n'
        "A dog runs.,A dog moves.,A dog sleeps.\n"
    )
    cells = [["query", "positives", "negatives"]]
    cells += [[row["query"], json.dumps(row["pos"]), json.dumps(row["neg"])] for row in LAYOUTS["lists.jsonl"]]
    text = "".join("\t".join(row) + "\n" for row in cells)
    (tmp_path / "cells.tsv.gz").write_bytes(gzip.compress(text.encode()))
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{key: row[key] for key in ("query", "pos", "neg")} for row in LAYOUTS["lists.jsonl"]]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "lists.parquet")
    datasets = [read_tuples(tmp_path / name) for name in ("nli_for_simcse.csv", "cells.tsv.gz", "lists.parquet")]
    assert [sides(data) for data in datasets] == [WANTED] * 3
    assert len({data.sha256 for data in datasets}) == 1


def test_rows_of_an_anchor_are_merged_or_not(tmp_path):
    path = jsonl(tmp_path / "texts.jsonl", LAYOUTS["texts.jsonl"])
    apart = read_tuples(path, group_anchors=False)
    assert apart.anchors == ["A dog runs.", "It rains.", "A dog runs."]
    assert apart.positives == [["An animal moves."], ["Water falls."], ["A dog moves."]]
    assert read_tuples(path).left_out["repeated rows"] == 1  # the negative occurs twice


def test_sources_of_several_layouts_are_joined(tmp_path):
    lists = jsonl(
        tmp_path / "lists.jsonl", [{"query": "A dog runs.", "pos": ["It hurries."], "neg": ["An animal moves."]}]
    )
    data = read_tuples([nli(tmp_path / "nli.jsonl"), str(lists)])
    assert data.positives == [["A dog moves.", "It hurries."], ["Water falls."]]
    assert data.left_out["partners given both ways"] == 1
    assert data.name == "nli.jsonl + lists.jsonl"


def test_keys_that_only_some_rows_have(tmp_path):
    rows = [{"query": "a", "pos": ["b"]}, {"query": "c", "pos": [], "neg": ["d"]}, {"pos": ["f"], "query": "e"}]
    data = read_tuples(jsonl(tmp_path / "x.jsonl", rows))
    assert sides(data) == (["a", "c", "e"], [["b"], [], ["f"]], [[], ["d"], []])


def test_named_columns_may_be_absent_from_rows(tmp_path):
    rows = [{"q": "a"}, {"q": "b", "good": "c", "bad": "d"}, {"q": "e", "good": "f"}, {"good": "g"}]
    path = jsonl(tmp_path / "a.jsonl", rows)
    with pytest.raises(DataError) as caught:
        read_tuples(path, columns="q,good,bad")
    assert "row 1, column 'q': the anchor stands alone" in str(caught.value)
    assert "row 4, column 'q': there is no text" in str(caught.value)
    data = read_tuples(path, columns="q,good,bad", drop_bad_rows=True)
    assert sides(data) == (["b", "e"], [["c"], ["f"]], [["d"], []])
    with pytest.raises(DataError, match="names 'worse', which this source does not have"):
        read_tuples(path, columns="q,good,worse")


def test_rows_are_taken_with_their_own_fingerprint(tmp_path):
    data = read_tuples(nli(tmp_path / "nli.jsonl"))
    subset = data.take(np.array([1, 0]))
    assert sides(subset) == tuple(column[::-1] for column in WANTED)
    assert subset.sha256 != data.sha256
    assert subset.take([1, 0]).sha256 == data.sha256


BAD = [
    ({"query": "", "pos": ["x"]}, "row 2, column 'query': the text is empty"),
    ({"query": "q", "pos": ["x", " "]}, "row 2, column 'pos': the text is empty"),
    ({"query": "q", "pos": [3]}, "row 2, column 'pos': a text is needed, received int '3'"),
    ({"query": "q", "pos": []}, "row 2, column 'query': the anchor stands alone"),
    ({"query": "q", "pos": ["\ud800"]}, "row 2, column 'pos': the text holds half of a surrogate pair"),
    ({"premise": "p", "hypothesis": "h", "label": "maybe"}, "row 2, column 'label': label 'maybe' is not entailment"),
    (
        {"premise": "p", "hypothesis": None, "label": "neutral"},
        "row 2, column 'hypothesis': there is no text",
    ),
]

NLI_ROW = {"premise": "a", "hypothesis": "b", "label": "entailment"}


@pytest.mark.parametrize(("row", "message"), BAD)
def test_a_bad_row_is_named_or_left_out(tmp_path, row, message):
    path = tmp_path / "x.jsonl"
    good = {"query": "a", "pos": ["b"]} if "query" in row else NLI_ROW
    path.write_text("".join(json.dumps(r) + "\n" for r in (good, row)))
    with pytest.raises(DataError) as error:
        read_tuples(path)
    assert f"{path}: 1 of 2 rows cannot be used." in str(error.value)
    assert message in str(error.value)
    data = read_tuples(path, drop_bad_rows=True)
    assert (data.anchors, data.positives, data.left_out["bad rows"]) == (["a"], [["b"]], 1)


def test_what_is_no_such_data(tmp_path):
    with pytest.raises(DataError, match=r"an anchor and columns of positives .* Its columns: text, score\. Accepted"):
        read_tuples(jsonl(tmp_path / "a.jsonl", [{"text": "x", "score": 1}]))
    with pytest.raises(DataError, match="no anchor has a positive among 1"):
        read_tuples(jsonl(tmp_path / "b.jsonl", [{"query": "x", "neg": ["y"]}]))
    (tmp_path / "c.jsonl").write_text("")
    with pytest.raises(DataError, match="there are no rows"):
        read_tuples(tmp_path / "c.jsonl")
    scored = jsonl(tmp_path / "d.jsonl", [{"sentence1": "x", "sentence2": "y", "label": 3.2}])
    with pytest.raises(DataError, match=r"label 3\.2 is not entailment, neutral or contradiction"):
        read_tuples(scored)


def test_a_later_row_of_no_known_layout_is_named(tmp_path):
    path = jsonl(tmp_path / "x.jsonl", [{"query": "a", "pos": ["b"]}, {"query": "c"}])
    with pytest.raises(DataError, match=r"x\.jsonl, row 2: an anchor and columns of positives .* Its columns: query\."):
        read_tuples(path)


def test_columns_of_other_names_are_named(tmp_path):
    rows = [{"q": "a", "yes": ["b", "c"], "no": "d", "gold_label": "entailment"}]
    path = jsonl(tmp_path / "x.jsonl", rows)
    data = read_tuples(path, columns="q,yes,no")
    assert (data.anchors, data.positives, data.negatives) == (["a"], [["b", "c"]], [["d"]])
    assert read_tuples(path, columns="Q,yes").negatives == [[]]
    assert read_tuples(path, columns="q,no,gold_label").positives == [["d"]]
    for columns, message in (
        ("q", "takes an anchor, a positive"),
        ("q,none", "names 'none', which this source does not"),
    ):
        with pytest.raises((ConfigError, DataError), match=message):
            read_tuples(path, columns=columns)
