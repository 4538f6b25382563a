"""Column detection by cells: lists, numbers, labels, and texts that only begin like a list."""

import numpy as np
import pytest

import samesense
from samesense.errors import DataError

PAIRS = "".join(f"s {number},o {number},{number % 2}\n" for number in range(20))


@pytest.fixture
def read(tmp_path):
    def written(content, **options):
        path = tmp_path / "data.csv"
        path.write_text(content, encoding="utf-8")
        return samesense.read(str(path), **options)

    return written


@pytest.mark.parametrize("text", ["[ ] buy milk", "[[Paris]] is nice", "\"['a']\""])
def test_one_text_that_looks_like_a_list_changes_no_file(read, text):
    data = read(f"sentence1,sentence2,label\n{PAIRS}todo,{text},1\n")
    assert (data.kind, len(data)) == ("binary", 21)
    assert len(read("sentences\n" + "".join(f"text {n}\n" for n in range(20)) + f"{text}\n")) == 21


def test_texts_of_wikis_and_lists_of_tasks_are_positives(read):
    data = read("query,positive\nfrance,[[Paris]] is the capital\ntodo,[ ] buy milk today\n")
    assert data.positives[0] == ["[[Paris]] is the capital"]


@pytest.mark.parametrize("names", ["query,positive,negative", "anchor,positive,negative", "text,text_pos,text_neg"])
def test_a_label_beside_a_negative_is_not_left_aside(read, names):
    with pytest.raises(DataError, match="either a label or a negative, and this has both"):
        read(f"{names},label\na,b,c,1\nd,e,f,0\n")


@pytest.mark.parametrize("name", ["relevance", "rel", "is_correct", "rating", "Grade"])
def test_what_is_judged_bad_is_no_positive(read, name):
    content = f"query,document,{name}\na b,c d,2\na b,e f,0\n"
    with pytest.raises(DataError, match="how well the texts of a row belong together"):
        read(content)
    assert len(read(content, columns="query,document")) == 1
    assert read(content.replace(",2\n", ",3.5\n"), columns=f"query,document,{name}").labels == [3.5, 0.0]


def test_judgements_that_are_all_the_same_judge_nothing(read):
    assert len(read("query,document,relevance\na b,c d,1\nk l,e f,1\n")) == 2


@pytest.mark.parametrize("name", ["editdistance", "cosinedist", "CosineDissimilarity", "Unterschied"])
def test_distances_in_one_word_are_no_labels(read, name):
    with pytest.raises(DataError, match="how different two texts are"):
        read(f"sentence1,sentence2,{name}\na b,c d,0.1\nk l,e f,0.9\n")


def test_a_word_that_ends_like_a_distance_is_none(read):
    assert read("sentence1,sentence2,artdist\na b,c d,0.1\nk l,e f,0.9\n").labels == [0.1, 0.9]


@pytest.mark.parametrize("cells", [("59 %", "0 %"), ("0.1", "0.9")])
def test_numbers_are_no_negatives(read, cells):
    with pytest.raises(DataError, match="has the name of negatives, which are texts, and holds numbers"):
        read("anchor,positive,negative\n" + "".join(f"a b,c d,{cell}\n" for cell in cells))


def test_arrays_in_cells_are_lists():
    cells = [np.array(["x", "y"], dtype=object), np.array(["z"], dtype=object)]
    data = samesense.read({"query": ["a", "b"], "pos": cells})
    assert data.positives == [["x", "y"], ["z"]]


def test_an_encoding_of_seven_bits_is_named(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes("猫がいます。\n犬がいます。\n".encode("iso2022_jp"))
    with pytest.raises(DataError, match="It is ISO-2022-JP: give `encoding` iso2022_jp"):
        samesense.read(str(path))
    assert list(samesense.read(str(path), encoding="iso2022_jp").texts) == ["猫がいます。", "犬がいます。"]
