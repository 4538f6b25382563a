"""Data as found in practice: other names, delimiters, labels and objects are detected or refused."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from datasets import Dataset, DatasetDict

import samesense
from samesense.data.kinds import detect_kind
from samesense.data.pairs.read import read_pairs
from samesense.data.rows.line_formats import refuse_other_format
from samesense.errors import ConfigError, DataError
from tests.messages import listen

TEXTS = [
    ("How do I reset my password?", "Choose Forgot password.", "The shop opens at nine."),
    ("When does the train leave?", "It leaves at noon.", "A password has eight letters."),
    ("Is the museum open today?", "It is closed on Mondays.", "The train has a dining car."),
    ("Where can I park my car?", "Behind the station.", "Nine out of ten agree."),
    ("Who wrote this book?", "A teacher from Leeds.", "The lake is frozen."),
    ("What does it cost?", "Four pounds a day.", "He plays the violin."),
]


def table(tmp_path, header, rows, name="data.csv"):
    path = tmp_path / name
    lines = [header, *(",".join(f'"{cell}"' for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("header", "columns", "kind"),
    [
        ("question,answer,negative", (0, 1, 2), "tuples"),
        ("query,document,negative", (0, 1, 2), "tuples"),
        ("anchor,entailment,contradiction", (0, 1, 2), "tuples"),
        ("question,answer,negative_1,negative_2", (0, 1, 2, 2), "tuples"),
        ("id,category,question,answer", ("7", "travel", 0, 1), "tuples"),
        ("Sentence 1,Sentence-2,Similarity Score", (0, 1, "2.5"), "pairs"),
        ("q1,q2,isDuplicate", (0, 1, "1"), "pairs"),
        ("sentence1,sentence2,rating", (0, 1, "4"), "pairs"),
        ("text,category", (0, "travel"), "classes"),
        ("date,body", ("2024-01-01", 1), "texts"),
        ("url,headline", ("https://a.org/1", 1), "texts"),
    ],
)
def test_a_table_is_what_its_names_and_cells_say(tmp_path, header, columns, kind):
    rows = [[row[cell] if isinstance(cell, int) else cell for cell in columns] for row in TEXTS]
    assert detect_kind(table(tmp_path, header, rows)).kind == kind


def test_a_semicolon_in_quotes_is_one_of_the_text(tmp_path):
    (tmp_path / "a.csv").write_text('id;body\n1;"one; and two"\n2;two\n')
    assert samesense.read(tmp_path / "a.csv").texts == ["one; and two", "two"]


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("sentence1;sentence2;similarity (0-5, expert)", ["A cat;A dog;4,5", "A cat;Rain;0,5"]),
        ('sentence1,sentence2,"similarity, 0 to 5"', ["A cat,A dog,4.5", "A cat,Rain,0.5"]),
    ],
)
def test_a_comma_in_a_name_is_no_delimiter(tmp_path, header, rows):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *rows, ""]))
    data = samesense.read(path)
    assert (data.pairs(), list(data.labels)) == ([("A cat", "A dog"), ("A cat", "Rain")], [4.5, 0.5])
    columns = detect_kind(path).columns
    assert list(samesense.read(path, columns=columns).labels) == [4.5, 0.5]


def test_two_delimiters_that_fit_equally_are_asked_for(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name;price, EUR\nblue chair;1,50\nred chair;2,50\n")
    with pytest.raises(DataError, match=r"by commas and by semicolons.*`delimiter` comma, or `delimiter` semicolon"):
        samesense.read(path)
    texts = samesense.read(path, delimiter="semicolon", columns='"price, EUR"').texts
    assert samesense.read(path, delimiter="semicolon", columns="Price, eur").texts == texts
    assert texts == samesense.read(path, delimiter="semicolon", columns="price, EUR").texts == ["1,50", "2,50"]


def test_columns_that_are_not_read_are_named_and_that_is_a_guess(tmp_path):
    path = table(tmp_path, "text,summary,keywords", [(first, second, three) for first, second, three in TEXTS])
    detected = detect_kind(path)
    assert (detected.kind, detected.sure, detected.columns) == ("texts", False, "text")
    assert "the column text, without summary and keywords" in detected.line


def test_anchors_with_positives_are_read_with_their_negatives(tmp_path):
    data = samesense.read(table(tmp_path, "question,answer,negative", TEXTS))
    assert (data.anchors[0], data.positives[0], data.negatives[0]) == (TEXTS[0][0], [TEXTS[0][1]], [TEXTS[0][2]])


def test_intents_of_many_classes_are_classes(tmp_path):
    rows = [
        (f"Sentence number {number} of many, all of them different", f"intent {number % 77}") for number in range(400)
    ]
    assert detect_kind(table(tmp_path, "text,intent", rows)).kind == "classes"


@pytest.mark.parametrize(
    ("names", "second"),
    [
        ("text,label,label_text", ["sport news of today", "politics of the world"]),
        ("review,label,label_name", ["bad", "good"]),
        ("text,label,user", ["joe", "ann brown", "bob"]),
        ("sentence,aspect,label", ["battery", "screen", "price"]),
    ],
)
def test_a_column_of_few_words_beside_a_label_is_no_second_text(tmp_path, names, second):
    names = names.split(",")
    rows = [
        {"label": number % 2, names[0]: f"{TEXTS[number % 6][0]} {number}"} | {"row": number} for number in range(48)
    ]
    (other,) = {*names[1:]} - {"label"}
    for row in rows:
        row[other] = second[row.pop("row") % len(second)]
    detected = detect_kind(rows)
    assert (detected.kind, detected.columns, detected.sure) == ("classes", f"{names[0]},label", False)
    assert f"without {other}; for pairs of the two, `columns` " in detected.line


@pytest.mark.parametrize("label", [lambda number: number % 3 // 2, lambda number: number % 5 / 4])
def test_answers_that_repeat_are_second_texts(label):
    """Canned answers are longer than a name, and a label judges each of them now so, now so."""
    rows = [
        {"question": f"{TEXTS[number % 6][0]} {number}", "reply": TEXTS[number % 4][1], "label": label(number)}
        for number in range(48)
    ]
    assert (detect_kind(rows).kind, detect_kind(rows).columns) == ("pairs", "question,reply,label")


def test_a_table_of_pairs_without_a_header_line_is_refused(tmp_path):
    path = table(tmp_path, '"A man eats food.","Someone has a meal."', [row[:2] for row in TEXTS])
    with pytest.raises(DataError, match=r"first line of a table names its columns, and 'A man eats food\.' seems"):
        detect_kind(path)


def test_a_long_name_of_long_texts_is_a_name(tmp_path):
    path = table(tmp_path, "question of the customer", [(row[0],) for row in TEXTS])
    assert samesense.read(path).texts[0] == TEXTS[0][0]


@pytest.mark.parametrize(
    ("header", "cells", "proposed"),
    [
        ("test_id,question1,question2", ("{at}", 0, 1), "question1,question2"),
        ("pair_id,first,second,rating", ("10{at}", 0, 1, "4"), "first,second,rating"),
        ("date,user name,review,rating", ("2024-01-0{at}", 0, 1, "4"), '"user name,review,rating"'),
    ],
)
def test_no_identifier_is_proposed_as_a_label(tmp_path, header, cells, proposed):
    rows = [
        [row[cell] if isinstance(cell, int) else cell.format(at=number) for cell in cells]
        for number, row in enumerate(TEXTS, 1)
    ]
    with pytest.raises(DataError) as caught:
        read_pairs(table(tmp_path, header, rows))
    assert str(caught.value).endswith(f"`columns` {proposed}")


@pytest.mark.parametrize(
    ("header", "labels", "proposed"),
    [
        ("rel,votes", ("ab", "31"), "votes"),
        ("rel,grade", ("ab", "20"), "grade"),
        ("votes,rel", ("31", "20"), "rel"),
        ("votes,relevance", ("31", ["relevant", "irrelevant"]), "relevance"),
        ("not_relevant,votes", ("01", "31"), "votes"),
    ],
)
def test_the_label_that_is_proposed_is_a_judgement_in_numbers_or_classes(tmp_path, header, labels, proposed):
    rows = [(*row[:2], *(values[number % 2] for values in labels)) for number, row in enumerate(TEXTS)]
    with pytest.raises(DataError) as caught:
        read_pairs(table(tmp_path, f"first,second,{header}", rows))
    assert str(caught.value).endswith(f"`columns` first,second,{proposed}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1,sentence2,score\na,b,1\nc,d,0\n", "has the names of columns, so that it is a table"),
        ("a\tb\n" * 30 + "c\td\t\n", "have as many tabs each (1), so that it is a table"),
        (
            '{"sentence1": "a", "sentence2": "b"}\n' * 3,
            "each line is a JSON object, and its name does not end in .jsonl",
        ),
        ("| a | b |\n| --- | :-: |\n| c | d |\n", "it is a table drawn with lines, which is not read. Write CSV"),
        (" a | b\n---+---\n c | d\n", "it is a table drawn with lines"),
        ('["a", "b", 1]\n["c", "d", 0]\n', "does not end in .jsonl. Write each row as an object, such as {"),
        ('["a", "b"]\n["c", "d"]\n', "each line is a JSON list, and its name does not end in .jsonl. Rename it."),
        ('[\n "a",\n "b"\n]\n', "it is a JSON list, and its name does not end in .json. Write the texts one a line"),
        ('[\n {"text": "a"}\n]\n', "it is a JSON list, and its name does not end in .json. Rename it."),
        ("__label__a A text.\n__label__b Another.\n", "its lines are labels and texts as fastText reads them"),
        ("INSERT INTO t VALUES (1, 'a');\nINSERT INTO t VALUES (2, 'b');\n", "its lines are statements of SQL"),
        ("101 0 d12 1\n101 0 d7 0\n102 0 d3 2\n", "its lines are relevance judgements of TREC"),
        ("101 Q0 d12 1 14.8 bm25\n101 Q0 d7 2 13.1 bm25\n102 Q0 d7 1 9 bm25\n", "its lines are rankings of TREC"),
        ("7 Q0 d12 1 14.8 bm25\n8 Q0 d7 1 -3.1e-2 bm25\n9 Q0 d7 1 9 bm25\n", "its lines are rankings of TREC"),
        ("1\n00:00:01,000 --> 00:00:02,500\nHello.\n\n2\n00:00:03,000 --> 00:00:04,000\nBye.\n", "subtitles"),
        ("WEBVTT\n\n00:01.000 --> 00:02.500\nHello.\n\n00:03.000 --> 00:04.000 align:start\nBye.\n", "subtitles"),
        ("- sentence1: A.\n  sentence2: B.\n- sentence1: C.\n  sentence2: D.\n", "it is YAML"),
        ("<data>\n <pair id='1'>\n  <text1>A.</text1>\n  <text2>B.</text2>\n </pair>\n</data>\n", "its lines are XML"),
    ],
)
def test_a_table_by_the_name_of_a_text_is_refused(tmp_path, content, message):
    path = tmp_path / "pairs.txt"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        detect_kind(path)
    assert message in str(caught.value)
    assert str(caught.value).endswith("give the file as standard input (-), or as JSON lines with a key text.")


def test_a_pipe_is_not_to_be_renamed():
    with pytest.raises(DataError, match=r"\.jsonl\. Write it to a file with that ending\. If each line is a text"):
        refuse_other_format(['["a", "b"]', '["c", "d"]'], "/dev/stdin")


@pytest.mark.parametrize(
    "content",
    [
        "Arsenal 0 Chelsea 2\nEverton 0 Leeds 1\nFulham 0 Hull 3\n",
        "".join(f"We met on day {day}.\n" for day in range(9))
        + "- Decision: none\n  Owner: Ann\n- Decision: later\n  Owner: Ben\n",
        "- Anna: Hello.\n- Ben: Good day.\n- Anna: How are you?\n",
        "<s> a b </s>\n<s> c d </s>\n<s> e f </s>\n",
        "Born in Ulm, Germany, 1879\nA life, a book, a prize\nHe wrote it, they say, in 1905\n",
        "Chapter 1 page 3\nChapter 2 page 9\n",
        "The train runs 10:00 --> 12:00\nA text\nAnother one\n",
    ],
)
def test_texts_that_resemble_other_formats_are_texts(tmp_path, caplog, content):
    path = tmp_path / "texts.txt"
    path.write_text(content)
    assert samesense.read(path).texts == content.splitlines()
    assert not caplog.records


@pytest.mark.parametrize(
    ("content", "doubt"),
    [
        ("Home | News\nSport | News\nArts | News\n", "its lines have 2 fields each, separated by '|', as a table may"),
        ("a|b|4.8\nc|d|0\ne|f|1e-3\n", "its lines have 3 fields each, separated by '|', as a table may"),
        ("1;A b, c.;5\n2;D, e.;4\n3;F.;0\n", "its lines have 3 fields each, separated by ';', as a table may"),
        ("12 Main St, Ulm, 89073\n3 Oak Ave, Bonn, 53111\n9 Hay Rd, Kiel, 24103\n", "separated by ',', as a table may"),
        ("4.8\n0\n2.25\n", "its lines are numbers. If they are the labels of another file, write both into one table."),
    ],
)
def test_lines_that_may_be_a_table_are_texts_with_one_warning(tmp_path, content, doubt):
    path = tmp_path / "texts.txt"
    path.write_text(content)
    messages = listen()
    assert samesense.read(path).texts == content.splitlines()
    assert len(samesense.read(path)) == 3
    assert len(messages) == 1
    assert messages[0].startswith(f"{path}: each line is read as one text, and ")
    assert doubt in messages[0]


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (["Not a duplicate", "Duplicate"], [0.0, 1.0]),
        (["non-paraphrase", "paraphrase"], [0.0, 1.0]),
        (["same", "different"], [1.0, 0.0]),
        (["T", "F"], [1.0, 0.0]),
        (["no match", "match"], [0.0, 1.0]),
        (["irrelevant", "relevant"], [0.0, 1.0]),
        (["E", "N"], [2.0, 1.0]),
        (["c", "e"], [0.0, 2.0]),
        (["Not-Entailment", "entails"], [0.0, 2.0]),
        (["0,25", "4,5"], [0.25, 4.5]),
        ([np.int64(1), np.int64(0)], [1.0, 0.0]),
        ([np.bool_(True), np.bool_(False)], [1.0, 0.0]),
        ([np.float32(0.5), np.float32(2)], [0.5, 2.0]),
        ([Decimal("0.5"), Decimal(2)], [0.5, 2.0]),
        ([Fraction(1, 2), Fraction(2)], [0.5, 2.0]),
    ],
)
def test_labels_as_people_write_them(labels, values):
    data = read_pairs(
        [{"sentence1": "a b", "sentence2": f"c {number}", "label": label} for number, label in enumerate(labels)]
    )
    assert data.labels == values


def test_y_and_n_are_yes_and_no():
    assert read_pairs([("a", "b", "y"), ("c", "d", "n")]).labels == [1.0, 0.0]


def test_a_hidden_label_among_named_classes_leaves_its_row_out():
    rows = [("a", "b", "duplicate"), ("c", "d", "not_duplicate"), ("e", "f", "-"), ("g", "h", "")]
    assert (len(read_pairs(rows)), read_pairs(rows).dropped_unlabelled) == (2, 2)


@pytest.mark.parametrize("third", ["1999", "No", "neutral"])  # a number, a label and a class, read as texts
def test_the_form_of_tuples_is_decided_once(third):
    rows = [TEXTS[0], TEXTS[1], ("When was it?", "In 1998.", third)]
    assert samesense.read(rows).pairs()[-1] == ("When was it?", third)


def objects():
    pandas = pytest.importorskip("pandas")
    pairs = [(first, second, float(number)) for number, (first, second, _) in enumerate(TEXTS)]
    columns = {"sentence1": [p[0] for p in pairs], "sentence2": [p[1] for p in pairs], "score": [p[2] for p in pairs]}
    from sentence_transformers import InputExample

    return {
        "columns": columns,
        "a single split": DatasetDict(train=Dataset.from_dict(columns)),
        "examples": [InputExample(texts=[first, second], label=label) for first, second, label in pairs],
        "an array": pandas.DataFrame(columns).to_numpy(),
        "a frame of tuples": pandas.DataFrame(pairs),
        "a frame": pandas.DataFrame(columns),
    }


@pytest.mark.parametrize("name", ["columns", "a single split", "examples", "an array", "a frame of tuples", "a frame"])
def test_objects_that_hold_pairs(name):
    data = samesense.read(objects()[name])
    assert data.pairs() == [row[:2] for row in TEXTS]
    assert data.labels == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_examples_without_labels_are_positives():
    from sentence_transformers import InputExample

    data = samesense.read([InputExample(texts=[first, second]) for first, second, _ in TEXTS])
    assert (data.anchors, data.positives) == ([row[0] for row in TEXTS], [[row[1]] for row in TEXTS])
    labelled = [
        InputExample(texts=[first, second], label=number // 5) for number, (first, second, _) in enumerate(TEXTS)
    ]
    assert samesense.read(labelled).labels == [0.0] * 5 + [1.0]


def test_an_array_with_named_cells_is_read_by_their_names():
    pandas = pytest.importorskip("pandas")
    rows = [(number, second, first) for number, (first, second, _) in enumerate(TEXTS)]
    frame = pandas.DataFrame(rows, columns=["score", "sentence2", "sentence1"])
    for array in (frame.to_records(), frame.to_records(index=False)):
        data = samesense.read(array)
        assert data.pairs() == [row[:2] for row in TEXTS]
        assert data.labels == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("kind", ["series", "array", "set", "arrow", "frame", "column", "tuple"])
def test_objects_that_hold_texts(kind):
    pandas = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    texts = sorted(row[0] for row in TEXTS)
    values_of_kind = {
        "series": pandas.Series(texts),
        "array": np.array(texts),
        "set": set(texts),
        "arrow": pa.chunked_array([texts]),
        "frame": pandas.DataFrame({"text": texts}),
        "column": Dataset.from_dict({"text": texts})["text"],
        "tuple": tuple(texts),
    }
    assert samesense.read(values_of_kind[kind]).texts == texts


def test_json_as_others_write_it(tmp_path):
    rows = [list(row[:2]) for row in TEXTS]
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert samesense.read(lists).positives == [[row[1]] for row in rows]
    columns = tmp_path / "columns.json"
    columns.write_text(
        json.dumps({"text1": [r[0] for r in rows], "text2": [r[1] for r in rows], "score": [1, 2, 3, 4, 5, 0]})
    )
    assert read_pairs(columns).labels[0] == 1.0
    under = tmp_path / "under.json"
    under.write_text(
        json.dumps({"data": [{"text1": a, "text2": b, "score": number} for number, (a, b) in enumerate(rows)]})
    )
    assert read_pairs(under).labels == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    misnamed = tmp_path / "list.jsonl"
    misnamed.write_text(json.dumps([{"text1": "a", "text2": "b", "score": 1}]))
    with pytest.raises(DataError, match=r"a list of rows\. Rename the file to end in .json"):
        read_pairs(misnamed)


def test_read_takes_every_kind_but_documents_and_one_at_a_time(tmp_path):
    assert samesense.read([(first, second) for first, second, _ in TEXTS]).positives[0] == [TEXTS[0][1]]
    classes = [{"text": first, "label": number % 2} for number, (first, _, _) in enumerate(TEXTS)]
    assert len(samesense.read(classes)) == 6
    with pytest.raises(DataError, match="of one kind, and no documents"):
        samesense.read([{"title": "a", "sections": [{"heading": "b", "sentences": ["c"]}]}])
    with pytest.raises(ConfigError, match="are for labelled data"):
        samesense.read(["a text", "another"], label_range=(0, 5))
