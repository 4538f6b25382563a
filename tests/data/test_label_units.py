"""Labels with units, percentages and thousands separators; and columns named like distances."""

import pytest

import samesense
from samesense.data import read_pairs
from samesense.data.kinds import kind_of
from samesense.errors import DataError


def table(tmp_path, cells, names="sentence1;sentence2;score"):
    path = tmp_path / "a.csv"
    path.write_text(f"{names}\n" + "".join(f"a dog {i};a cat {i};{cell}\n" for i, cell in enumerate(cells)))
    return path


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["0 %", "59 %", "100%"], [0, 0.59, 1]),
        (["12,5 %", "7,25 %"], [0.125, 0.0725]),
        (["0.5%", "1.25％"], [0.005, 0.0125]),
        (["0,5", "0,25", "1"], [0.5, 0.25, 1]),
        (["0,125", "0,250", "1"], [0.125, 0.25, 1]),
        (["4.667", "3.333", "5"], [4.667, 3.333, 5]),
        (["0.500", "120"], [0.5, 120]),
        (["2,125", "0,500"], [2.125, 0.5]),
    ],
)
@pytest.mark.parametrize("columns", [None, "sentence1,sentence2,score"])
def test_percentages_and_decimals_are_numbers(tmp_path, cells, labels, columns):
    data = samesense.read(table(tmp_path, cells), columns=columns)
    assert data.labels == pytest.approx(labels)


def test_percentages_of_a_column_of_another_name_are_labels_and_no_texts(tmp_path):
    path = table(tmp_path, ["0 %", "59 %", "7 %"], "left;right;alike")
    assert kind_of(path, "left,right,alike") == "pairs"
    assert samesense.read(path, columns="left,right,alike").labels == [0, 0.59, 0.07]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["1,000", "999"], "'1,000', which may be 1000 or 1"),
        (["1,000", "2,500"], "'1,000', which may be 1000 or 1"),
        (["1.000", "999"], "'1.000', which may be 1000 or 1"),
        (["1,000", "2.5"], "'1,000', which may be 1000 or 1"),
        (["512,05", "1,230"], "'1,230', which may be 1230 or 1.23"),
        (["1,000,000", "5"], "marks between thousands"),
        (["1.000,5", "5"], "marks between thousands"),
        (["1 000", "5"], "marks between thousands"),
        (["1'000", "5"], "marks between thousands"),
        (["59 %", "0.4"], "percentages beside plain numbers"),
        (["59 %", "4"], "percentages beside plain numbers"),
        (["1,000 %", "2 %"], "'1,000', which may be 1000 or 1"),
        (["3/5", "4/5"], "Write plain numbers, without a unit"),
        (["4 stars", "1 star"], "Write plain numbers, without a unit"),
        (["4 out of 5", "3 out of 5"], "Write plain numbers, without a unit"),
        (["★★★", "★"], "Write plain numbers, without a unit"),
        (["$5", "$4"], "Write plain numbers, without a unit"),
        (["5 ‰", "7 ‰"], "Write plain numbers, without a unit"),
        (["3/5", "4"], "rows cannot be used"),
        (["4 stars", "1"], "rows cannot be used"),
    ],
)
@pytest.mark.parametrize("columns", [None, "sentence1,sentence2,score"])
def test_what_may_mean_two_numbers_or_has_a_unit_is_refused(tmp_path, cells, reason, columns):
    with pytest.raises(DataError, match=reason):
        samesense.read(table(tmp_path, cells), columns=columns)


def test_percentages_are_refused_where_a_scale_beyond_one_is_given(tmp_path):
    path = table(tmp_path, ["0 %", "59 %"])
    assert read_pairs(path, label_range=(0, 1)).labels == [0, 0.59]
    with pytest.raises(DataError, match="`label_range` goes further"):
        read_pairs(path, label_range=(0, 100))


@pytest.mark.parametrize(
    "name",
    [
        "distance",
        "Distance",
        "dissimilarity",
        "dist",
        "edit_distance",
        "editDistance",
        "cosine distance",
        "is_different",
        "not_duplicate",
        "Levenshtein",
        "dissimilar",
        "Abstand",
        "距离",
    ],
)
@pytest.mark.parametrize("column_named", [False, True])
def test_columns_with_the_name_of_distances_are_refused(tmp_path, name, column_named):
    path = table(tmp_path, ["0", "0.5", "1"], f"sentence1;sentence2;{name}")
    columns = f"sentence1,sentence2,{name}" if column_named else None
    for read in (samesense.read, read_pairs, samesense.doctor):
        with pytest.raises(DataError, match=r"says how different two texts are.*Turn the values round"):
            read(path, columns=columns)


@pytest.mark.parametrize("name", ["similarity", "score", "label", "related", "distant"])
def test_other_names_are_not(tmp_path, name):
    path = table(tmp_path, ["0", "0.5", "1"], f"sentence1;sentence2;{name}")
    assert len(samesense.read(path)) == 3


def test_a_distance_beside_a_score_is_not_in_the_way(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("sentence1,sentence2,score,distance\na,b,1,0\nc,d,0,1\n")
    assert samesense.read(path).labels == [1, 0]


def test_the_doctor_warns_of_labels_that_fall_as_texts_share_more_words(tmp_path):
    words = [f"w{i}" for i in range(10)]
    rows = [(" ".join(words), " ".join([*words[:k], *(f"x{i}{k}" for i in range(10 - k))]), k) for k in range(10)] * 3
    straight = samesense.doctor([(a, b, k / 9) for a, b, k in rows])
    turned = samesense.doctor([(a, b, 1 - k / 9) for a, b, k in rows])
    assert not any("distances" in warning for warning in straight.warnings)
    assert any("labels fall as two texts share more words (Spearman -1.00)" in warning for warning in turned.warnings)


@pytest.mark.parametrize("cells", [["59 %", "0 %", "100 %"], ["0,5", "0,25", "1"], ["0.5", "0.25", "1"]])
def test_labels_without_a_header_line_and_in_memory_are_labels_too(tmp_path, cells):
    rows = [(f"a dog {i}", f"a cat {i}", cell) for i, cell in enumerate(cells)]
    path = tmp_path / "a.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    for source in (path, rows):
        data = samesense.read(source)
        assert len(data) == 3
        assert max(data.labels) == 1


@pytest.mark.parametrize("cells", [["3/5", "4/5"], ["4 stars", "1 star"], ["$5", "$4"]])
def test_units_in_memory_are_refused_and_never_texts(cells):
    with pytest.raises(DataError, match="without a unit"):
        samesense.read([("a", "b", cells[0]), ("c", "d", cells[1])])
