"""The choice of columns, and the messages where none can be chosen."""

import pytest

import samesense
from samesense.data import read_pairs
from samesense.data.columns.guesses import text_column
from samesense.data.columns.pair_columns import Columns, resolve_columns
from samesense.data.conventions.column_names import TEXT_PAIRS
from samesense.data.kinds import detect_kind
from samesense.errors import ConfigError, DataError


@pytest.mark.parametrize("pair", TEXT_PAIRS)
def test_every_known_pair_is_found_in_any_case(pair):
    names = [pair[1].upper(), "id", pair[0].title(), "Label", "Genre"]
    assert resolve_columns(names, None, "x") == Columns(pair[0].title(), pair[1].upper(), "Label", "Genre")


def test_preferences_decide_between_several_columns():
    sick = ["subset", "score", "sentence1", "sentence2", "label"]
    assert resolve_columns(sick, None, "x") == Columns("sentence1", "sentence2", "score", "subset")
    inference = ["premise", "hypothesis", "score", "gold_label"]
    assert resolve_columns(inference, None, "x").label == "gold_label"
    assert resolve_columns(["text1", "text2", "sentence1", "sentence2", "score"], None, "x").text1 == "sentence1"


def test_triples_have_a_negative_in_place_of_a_label():
    assert resolve_columns(["sent0", "sent1", "hard_neg"], None, "x") == Columns("sent0", "sent1", negative="hard_neg")
    override = resolve_columns(["anchor", "positive", "negative", "label"], "anchor,positive,negative", "x")
    assert override == Columns("anchor", "positive", negative="negative")


def test_an_override_names_any_three_columns():
    names = ["q1", "q2", "same", "subset"]
    assert resolve_columns(names, "q1, Q2,same", "x") == Columns("q1", "q2", "same", "subset")


def test_an_override_of_columns_that_are_absent_is_refused():
    with pytest.raises(DataError) as caught:
        resolve_columns(["q1", "q2", "same"], "q1,q3,label", "x.tsv")
    assert str(caught.value) == (
        "x.tsv: `columns` names 'q3', 'label', which this source does not have. Its columns: q1, q2, same. "
        "Use three of these. Where another file of the command has them, give both the same names."
    )


@pytest.mark.parametrize("override", ["a,b", "a,b,", "a,a,b", "a,b,c,d"])
def test_an_override_must_be_three_different_names(override):
    with pytest.raises(ConfigError) as caught:
        resolve_columns(["a", "b", "c"], override, "x.tsv")
    assert str(caught.value) == (
        f"x.tsv: `columns` takes three different names, first,second,label; received {override!r}. Its columns: a, b, "
        "c. Example: `columns` question1,question2,is_duplicate"
    )


def test_positives_without_label_or_negative_are_refused_with_the_reason():
    with pytest.raises(DataError) as caught:
        resolve_columns(["anchor", "positive"], None, "x.tsv")
    assert str(caught.value) == (
        "x.tsv: these rows have no label. Its columns: anchor, positive. Pairs with only positives are trained on "
        "by `method` supmpn `tuples` ragged; CoSENT needs labels or negatives. Add a column 'negative' or 'label', or "
        "name an existing one with `columns` first,second,label."
    )


def test_a_label_beside_a_negative_is_refused():
    with pytest.raises(DataError) as caught:
        resolve_columns(["query", "positive", "negative", "score"], None, "x.tsv")
    assert str(caught.value) == (
        "x.tsv: a row needs either a label or a negative, and this has both columns, 'score' and 'negative'. "
        "Choose one as the third name of `columns` query,positive,score."
    )


@pytest.mark.parametrize(
    ("header", "row", "proposed"),
    [
        (["sentence1", "sentence2", "is_same", "by"], ["a b", "b c", "yes", "7"], "sentence1,sentence2,is_same"),
        (["id", "left", "right", "rating"], ["7", "a b", "c d", "2.5"], "left,right,rating"),
        (["same", "lang", "left", "right"], ["0", "1", "a b", "c d"], "left,right,same"),
        (["left", "right", "label", "who"], ["a b", "c d", "no", "me"], "left,right,label"),
        (["id", "left", "right", "same?"], ["7", "a b", "c d", "1"], '"left,right,same?"'),
    ],
)
def test_what_cannot_be_told_by_names_is_proposed_by_what_columns_hold(tmp_path, header, row, proposed):
    path = tmp_path / "x.csv"
    path.write_text(",".join(header) + "\n" + ",".join(row) + "\n")
    for columns in (None, "a,b", "left,right,absent"):
        with pytest.raises((DataError, ConfigError)) as caught:
            read_pairs(path, columns=columns)
        assert f"Its columns: {', '.join(header)}." in str(caught.value)
        assert f"`columns` {proposed}" in str(caught.value)


def test_labels_in_words_are_proposed_as_labels_and_three_texts_in_both_forms(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        "left,right,verdict\n"
        + "".join(f"a {number},b {number},{'nein' if number % 2 else 'ja'}\n" for number in range(6))
    )
    with pytest.raises(DataError, match=r"Names that need no option .* `columns` left,right,verdict$"):
        detect_kind(path)
    path.write_text("query,good,bad\na b,c d,e f\n")
    with pytest.raises(DataError, match=r": `columns` query,good; or, if the third .*: `columns` query,good,bad$"):
        detect_kind(path)


def test_the_column_of_the_longer_texts_is_proposed():
    with pytest.raises(DataError, match=r"`columns` body$"):
        text_column(rows(customer=["Ann B", "Bob"], body=["it is not here yet", "where is it, please?"]), None, "x.tsv")


def test_a_missing_label_column_is_named():
    with pytest.raises(DataError) as caught:
        resolve_columns(["sentence1", "sentence2", "is_same"], None, "x.tsv")
    assert str(caught.value).startswith(
        "x.tsv: a label column could not be found. Its columns: sentence1, sentence2, is_same. Labelled pairs have two "
        "columns of texts and one of labels. Known names of texts: sentence1/sentence2, "
    )


def rows(**columns):
    return list(enumerate((dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)), 1))


@pytest.mark.parametrize(
    ("table", "columns", "taken"),
    [
        (rows(id=["1", "2"], body=["a b", "7"]), None, "body"),
        (rows(Text=["a"], title=["b"]), None, "Text"),
        (rows(body=["1", "2"]), None, "body"),
        (rows(sentence1=["a"], sentence2=["b"]), "Sentence2", "sentence2"),
        (rows(body=["a"], label=["good"], score=[0.5], tags=[["x"]]), None, "body"),
    ],
)
def test_the_only_column_of_texts_is_taken_or_the_one_that_is_named(table, columns, taken):
    assert text_column(table, columns, "x.tsv") == taken


@pytest.mark.parametrize(
    ("table", "columns", "error", "message"),
    [
        (
            rows(title=["a"], body=["b"], n=[1]),
            None,
            DataError,
            "x.tsv: several columns hold texts (title, body). Its columns: title, body, n. Name the one to read: "
            "`columns` title",
        ),
        (
            rows(text=["z"], sentence1=["a"], sentence2=["b"]),
            None,
            DataError,
            "x.tsv: several columns hold texts (text, sentence1, sentence2). Its columns: text, sentence1, sentence2. "
            "Name the one to read: `columns` text",
        ),
        (
            rows(n=["1"], m=["2"]),
            None,
            DataError,
            "x.tsv: no column of texts could be found. Its columns: n, m. Name the one to read: `columns` NAME",
        ),
        (
            rows(n=["1"]),
            "m",
            DataError,
            "x.tsv: `columns` names 'm', which this source does not have. Its columns: n. Name one.",
        ),
        (
            rows(n=["1"]),
            "n,m",
            ConfigError,
            "x.tsv: one text a row is read here, so that `columns` takes one name; got 'n,m'.",
        ),
    ],
)
def test_a_column_of_texts_that_is_not_clear_is_asked_for(table, columns, error, message):
    with pytest.raises(error) as caught:
        text_column(table, columns, "x.tsv")
    assert str(caught.value) == message


BOTH = [
    {"sentence1": "a b", "sentence2": "b c", "label": "0", "score": "4.5"},
    {"sentence1": "c d", "sentence2": "d e", "label": "1", "score": "1.5"},
]


def both_in(tmp_path, form):
    if form == "rows":
        return BOTH, "Rows in memory"
    if form == "frame":
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame(BOTH), "DataFrame in memory"
    path = tmp_path / "both.csv"
    path.write_text("\n".join([",".join(BOTH[0]), *(",".join(row.values()) for row in BOTH)]) + "\n")
    return path, str(path)


@pytest.mark.parametrize("form", ["file", "rows", "frame"])
def test_of_two_columns_of_labels_it_is_said_which_is_read_and_how_to_take_the_other(tmp_path, form, caplog):
    source, name = both_in(tmp_path, form)
    assert samesense.read(source).labels == [4.5, 1.5]
    assert [(record.levelname, record.message) for record in caplog.records] == [
        (
            "WARNING",
            f"{name}: the labels are those of column 'score', not 'label'. To take 'label' instead: "
            "`columns` sentence1,sentence2,label",
        )
    ]
    assert "by the columns sentence1, sentence2 and score, and not by label; " in samesense.doctor(source).read_as
    caplog.clear()
    assert samesense.read(source, columns="sentence1,sentence2,label").labels == [0.0, 1.0]
    assert samesense.read(source, columns="sentence1,sentence2,score").labels == [4.5, 1.5]
    assert not caplog.records


def test_names_of_inference_take_the_class_and_say_so(caplog):
    rows = [{"premise": "a", "hypothesis": "b", "score": 0.2, "label": word} for word in ("entailment", "neutral")]
    assert samesense.read(rows).kind == "nli"
    assert "those of column 'label', not 'score'" in caplog.text
