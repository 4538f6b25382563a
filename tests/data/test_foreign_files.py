"""Files as other programs export them: read as they were meant, or refused with the row and the fix."""

import json
import logging
import tarfile
from datetime import datetime

import pytest

import samesense
from samesense.data.columns.unread_columns import _UNREAD
from samesense.data.conventions.named_columns import quote_columns
from samesense.data.kinds import detect_kind
from samesense.data.pairs.read import read_pairs
from samesense.data.rows.load import list_rows
from samesense.data.sentences import all_texts
from samesense.data.texts import read_texts
from samesense.data.tuples.read import read_tuples
from samesense.errors import DataError
from samesense.evaluation.suites import find_tasks
from samesense.inference.scoring.columns import text_columns
from samesense.inference.shards.input import split_shards
from tests.messages import listen

PAIRS = [
    ("How do I reset my password?", "How can I change it?", 4.5),
    ("When does the train leave?", "At what time does it leave?", 3.5),
    ("Is the museum open today?", "He plays the violin.", 0.5),
    ("Where can I park my car?", "The lake is frozen.", 0.0),
    ("Who wrote this book?", "Who is its author?", 5.0),
    ("What does it cost?", "How much is it?", 4.0),
]


def write(path, header, rows, separator=","):
    lines = [separator.join(map(str, cells)) for cells in (header, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def refusal(source, read=samesense.read, **options):
    with pytest.raises(DataError) as caught:
        read(source, **options)
    return str(caught.value)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("names", "row"),
    [
        ("sentence1,sentence2,score", "{0},{1},{2}"),
        ("anchor,positive", "{0},{1}"),
        ("text,label", "{0},{2}"),
        ("id,text", "7,{0}"),
    ],
)
def test_a_row_that_repeats_the_header_is_refused(tmp_path, names, row, mark):
    path = tmp_path / "a.csv"
    rows = [row.format(*pair) for pair in PAIRS]
    path.write_text("\n".join([names, *rows[:3], mark + names, *rows[3:], ""]), encoding="utf-8")
    listed = names.replace(",", ", ")
    assert f"{path}, row 5: the row repeats the names of the columns ({listed}), as where" in refusal(path)
    if names == "id,text":
        assert "the row repeats the names" in refusal(path, read_texts)


def test_a_text_that_is_the_name_of_its_only_column_is_a_text(tmp_path):
    (tmp_path / "a.csv").write_text("word\nhouse\nword\ntree\n")
    assert samesense.read(tmp_path / "a.csv", columns="word").texts == ["house", "word", "tree"]


@pytest.mark.parametrize(("mark", "written"), [("^", "'^'"), ("~", "'~'"), ("\x01", r"$'\x01'")])
def test_an_unusual_mark_between_known_names_is_asked_for(tmp_path, mark, written):
    path = write(tmp_path / "a.csv", ("sentence1", "sentence2", "score"), PAIRS, mark)
    assert f"between them. Say that it is between the fields: `delimiter` {written}." in refusal(path)
    assert samesense.read(path, delimiter=mark).pairs() == [pair[:2] for pair in PAIRS]


def test_a_rare_mark_that_stands_as_often_in_each_row_is_asked_for(tmp_path):
    path = write(tmp_path / "a.csv", ("s1", "s2", "sim"), PAIRS, "~")
    assert "'~' stands between them. Say that it is between the fields: `delimiter` '~'." in refusal(path)
    (tmp_path / "b.csv").write_text("q~a\nA text of ~ 5 words\nAnother text\n")
    assert samesense.read(tmp_path / "b.csv").texts == ["A text of ~ 5 words", "Another text"]
    (tmp_path / "c.csv").write_text("Q&A\nR&D costs more\n")
    assert samesense.read(tmp_path / "c.csv").texts == ["R&D costs more"]
    (tmp_path / "d.csv").write_text("Q&A\nR&D costs more\nShe likes B&Bs\n")
    assert refusal(tmp_path / "d.csv").endswith("If it is the name of one column: `delimiter` comma.")
    assert samesense.read(tmp_path / "d.csv", delimiter="comma").texts == ["R&D costs more", "She likes B&Bs"]


@pytest.mark.parametrize(
    ("name", "content", "fix"),
    [
        ("a.csv", "A survey,,\nsentence1,sentence2,score\na,b,1\n", "a title or a comment, delete it"),
        ("a.csv", "# by a tool\n# of 2024\nsentence1,sentence2,score\na,b,1\n", "a title or a comment, delete it"),
        ("a.csv", '"text1","text2","score"\n"1","a","b",1\n', "row.names = FALSE"),
        ("a.csv", " text1 | text2 | score\n-------+-------+------\n a | b | 1\n", "psql --csv"),
        ("a.csv", "x|1|0|A b.|C d.\nx|2|1|E f.|G h.\nx|3|0|I.|J.|more\n", "seems to be data: add a header line"),
    ],
)
def test_what_stands_above_the_rows_is_told_from_texts_with_commas(tmp_path, name, content, fix):
    (tmp_path / name).write_text(content)
    assert fix in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_texts_in_a_column_without_a_name_are_refused(tmp_path, name):
    separator = "," if name == "a.csv" else "\t"
    path = write(tmp_path / name, ("Sentences", "", "Rating"), [("first", "second", "mean"), *PAIRS], separator)
    assert f"{path}, row 2: a column of data needs a name, and column 2, which holds 'second' here, has" in refusal(
        path
    )
    path = write(tmp_path / name, ("Sentences", "", "Rating", ""), [("first", "second", "mean", "note")], separator)
    assert "column 2, which holds 'second'" in refusal(path)
    index = [(f"row {number}", *pair) for number, pair in enumerate(PAIRS)]
    path = write(tmp_path / name, ("", "sentence1", "sentence2", "score"), index, separator)
    assert len(samesense.read(path)) == len(PAIRS)


def test_the_three_header_lines_of_qualtrics_are_no_texts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('StartDate,Q1\nStart Date,Your text?\n"{""ImportId"":""start""}","{""ImportId"":""QID1""}"\n1,A.\n')
    assert f"{path}, row 3: the row holds the identifiers of the questions, as Qualtrics writes them" in refusal(path)


def test_the_second_header_line_of_surveymonkey_is_no_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Respondent ID,What is wrong?,Rate it\n,Open-Ended Response,Response\n1,It breaks.,4\n2,Slow.,3\n")
    assert f"{path}, row 2: the row says 'Open-Ended Response', which SurveyMonkey writes" in refusal(path)


def test_texts_as_bytes_of_python_are_warned_of_once(tmp_path):
    rows = [(f"b'{first}'", f'b"{second}"', score) for first, second, score in PAIRS]
    path = write(tmp_path / "a.tsv", ("sentence1", "sentence2", "score"), rows, "\t")
    messages = listen()
    for _ in range(2):
        samesense.read(path)
    assert [
        f"{path}: the texts of column {name!r} are written as bytes of Python, such as " in message
        for name, message in zip(("sentence1", "sentence2"), messages, strict=True)
    ] == [True, True]


def test_texts_as_bytes_of_python_are_warned_of_wherever_texts_are_read(tmp_path):
    texts = [f"b'{first}'" for first, _, _ in PAIRS]
    labels = ["even" if row % 2 else "odd" for row in range(len(texts))]
    path = write(tmp_path / "a.tsv", ("text", "label"), zip(texts, labels, strict=True), "\t")
    anchors = write(tmp_path / "b.tsv", ("anchor", "positive"), [(text, text[::-1]) for text in texts], "\t")
    readings = {
        path: [read_texts, lambda source: read_texts(source, "text"), lambda source: list(all_texts(source))],
        anchors: [read_tuples, lambda source: text_columns(list_rows(source), None, str(source))],
    }
    for source, reads in readings.items():
        for read in reads:
            _UNREAD.clear()
            messages = listen()
            read(str(source))
            assert sum("are written as bytes of Python" in message for message in messages) == 1


def test_objects_are_named_where_texts_are_read(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"pair": {"a": first, "b": second}} for first, second, _ in PAIRS])
    for read in (read_texts, lambda source: text_columns(list_rows(source), None, str(source))):
        assert "By the first rows, column 'pair' holds objects, which are not read" in refusal(path, read)


@pytest.mark.parametrize("date", [datetime(2024, 5, 4), datetime(2024, 5, 4).date()])
def test_a_frame_of_dates_and_numbers_in_one_column_is_refused(date):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PAIRS, columns=["sentence1", "sentence2", "score"])
    frame["day"] = date
    assert len(samesense.read(frame)) == len(PAIRS)
    frame["score"] = pandas.Series([date, None, 3, *range(len(PAIRS) - 3)], dtype=object)
    assert "row 3: column 'score' holds dates and numbers" in refusal(frame)


def test_columns_beside_a_guessed_one_are_named(tmp_path):
    options = [{"id": "A", "text": "A"}]
    rows = [{"text": text, "options": options, "accept": ["A"], "answer": "accept"} for text, _, _ in PAIRS]
    path = write_lines(tmp_path / "a.jsonl", rows)
    messages = listen()
    samesense.read(path)
    assert f"{path}: not read: options, accept, answer" in messages


def test_two_texts_in_a_list_are_to_be_written_into_two_columns(tmp_path):
    for name in ("texts", "set"):
        path = write_lines(tmp_path / f"{name}.jsonl", [{name: list(pair[:2]), "label": pair[2]} for pair in PAIRS])
        assert f"{path}: column {name!r} holds lists of two texts each" in refusal(path)


def test_labels_in_lists_are_no_texts(tmp_path):
    rows = [{"a": first, "b": second, "c": ["yes" if score > 2 else "no"]} for first, second, score in PAIRS]
    path = write_lines(tmp_path / "a.jsonl", rows)
    for columns in (None, "a,b,c", "a,c"):
        message = refusal(path, columns=columns)
        assert f"{path}: column 'c' holds lists of one label each, such as 'yes'" in message
        assert "frame['c'].str[0]" in message


def test_classes_in_lists_are_to_be_written_as_they_are(tmp_path):
    rows = [{"id": row, "text": pair[0], "label": ["pos" if row % 2 else "neg"]} for row, pair in enumerate(PAIRS * 2)]
    message = refusal(write_lines(tmp_path / "doccano.jsonl", rows))
    assert "column 'label' holds lists of one label each, such as 'neg'" in message
    assert "frame['label'].str[0]" in message


def test_a_tar_archive_is_to_be_unpacked(tmp_path):
    (tmp_path / "a.csv").write_text("text\nA first text.\n")
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.csv.tar.xz", "w:xz"), ("a.tgz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as archive:
            archive.add(tmp_path / "a.csv", "a.csv")
        assert f"npack it: tar -xf {tmp_path / name}" in refusal(tmp_path / name)


def test_backslashes_before_quotes_are_named(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\n"He said \\"no\\", and left",1\n"It rains.",0\n')
    message = refusal(tmp_path / "a.csv")
    assert "backslashes stand before quotes" in message
    assert "escapechar='\\\\'" in message


def test_ratings_of_label_studio_are_to_be_written_as_numbers(tmp_path):
    rows = [{"text1": a, "text2": b, "rating": [{"rating": round(score)}]} for a, b, score in [*PAIRS, *PAIRS]]
    for read in (samesense.read, find_tasks):
        message = refusal(write_lines(tmp_path / "a.jsonl", rows), read)
        assert "holds lists of one label each, such as {'rating': 4}" in message
        assert "in pandas: frame['rating'].str[0].str['rating']. " in message


STUDIO = {"id": 7, "annotation_id": 9, "annotator": 1, "lead_time": 3.25, "created_at": "2024-01-02T10:00:00Z"}


@pytest.mark.parametrize("annotators", [1, 2])
def test_the_rating_of_label_studio_is_the_label_and_not_the_annotator(tmp_path, annotators):
    rows = [
        {**STUDIO, "id": number, "annotator": number % annotators, "text1": a, "text2": b, "rating": score}
        for number, (a, b, score) in enumerate(PAIRS)
    ]
    assert read_pairs(write_lines(tmp_path / "a.jsonl", rows)).labels == [score for _, _, score in PAIRS]
    named = [{"first" if name == "text1" else name: value for name, value in row.items()} for row in rows]
    assert refusal(write_lines(tmp_path / "a.jsonl", named), read_pairs).endswith("`columns` first,text2,rating")


def test_ratings_in_lists_are_named_where_labels_are_needed(tmp_path):
    rows = [{**STUDIO, "text1": a, "text2": b, "rating": [{"rating": round(score)}]} for a, b, score in PAIRS * 2]
    path = write_lines(tmp_path / "a.jsonl", rows)
    assert refusal(path, read_pairs).endswith("`columns` text1,text2,rating")
    assert "write one number in the label column" in refusal(path, read_pairs, columns="text1,text2,rating")


def test_a_folder_of_beir_is_to_be_joined(tmp_path):
    write_lines(tmp_path / "corpus.jsonl", [{"_id": "d1", "title": "", "text": PAIRS[0][1]}])
    write_lines(tmp_path / "queries.jsonl", [{"_id": "q1", "text": PAIRS[0][0]}])
    (tmp_path / "qrels").mkdir()
    qrels = write(tmp_path / "qrels" / "test.tsv", ("query-id", "corpus-id", "score"), [("q1", "d1", 1)] * 9, "\t")
    for source, start in ((tmp_path, "this is a folder of BEIR"), (qrels, "These are judgements of BEIR")):
        for read in (samesense.read, find_tasks):
            message = refusal(source, read)
            assert start in message and "columns query and positive" in message and str(source) in message


def test_triples_of_identifiers_are_no_texts(tmp_path):
    path = write(tmp_path / "a.tsv", (1000, 70, 90), [(1001, 73, 95), (1002, 76, 100)], "\t")
    assert "two text columns could not be found" in refusal(path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.jsonl", "a.json"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
        ("<!DOCTYPE html>\n<html><body>404, not found</body></html>\n", "a web page, perhaps of an error"),
        ("{\\rtf1\\ansi\nA text.\\par\n}\n", "save it as plain text"),
        ('<?xml version="1.0"?>\n<rows/>\n', "this is XML"),
    ],
)
def test_texts_of_another_format_are_known_by_their_beginning(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    assert message in refusal(tmp_path / name)


@pytest.mark.parametrize("text", ["\u200b", "\ufeff", " \u200e ", "\u00ad"])
def test_texts_that_show_nothing_are_bad(text, caplog):
    rows = [(*pair[:2], pair[2]) for pair in PAIRS]
    rows[2] = (text, "b", 1.0)
    assert "row 3, column 'sentence1': the text holds only characters that show nothing" in refusal(rows)
    assert samesense.read(["a", text, "b c"]).left_out["empty"] == 1


@pytest.mark.parametrize("text", ["\\N", "#N/A", "#NAME?", "<NA>", "#WERT!"])
def test_marks_of_missing_values_are_no_texts(tmp_path, text):
    rows = [*PAIRS[:2], (text, "b", 1.0)]
    path = write(tmp_path / "a.csv", ("sentence1", "sentence2", "score"), rows)
    assert f"row 4, column 'sentence1': the text is {text}, by which programs mark" in refusal(path)
    assert f"row 3, column 'sentence': the text is {text}" in refusal(["a", "b", text], read_texts)


def test_every_kind_warns_of_words_that_may_mark_a_missing_text():
    for source in (
        ["a b", "NULL", "c d"],
        [("a b", "c d"), ("NULL", "e f")],
        [{"text": text, "label": label} for text, label in (("a", 1), ("b", 0), ("NULL", 1))],
        [("a b", "c d", 1), ("NULL", "e f", 0)],
    ):
        assert any("'NULL' occur as texts" in warning for warning in samesense.doctor(source).warnings), source


def test_a_mark_without_width_is_no_part_of_a_name(tmp_path):
    path = write(tmp_path / "a.csv", ("\ufeff\ufeffsentence1", "sentence2\u200b", "score"), PAIRS)
    assert detect_kind(path).sure


@pytest.mark.parametrize(
    ("header", "cells", "proposed"),
    [
        ("HITId,Input.a,Input.b,Answer.x", "3X{0},{1},{2},{3}", "Input.a,Input.b,Answer.x"),
        ("ResponseId,Q1,Q2,Q3", "R_{0},{1},{2},{3}", "Q1,Q2,Q3"),
        ("key,first,second,alike", "doc-{0},{1},{2},{3}", "first,second,alike"),
        ("sku,name,description,brand", "A{0},{1},{2},x", "name,description"),
        ("text1,text2,status,alike", "{1},{2},done,{3}", "text1,text2,alike"),
    ],
)
def test_keys_and_statuses_are_not_proposed_as_columns(tmp_path, header, cells, proposed):
    rows = [cells.format(number, *pair).split(",") for number, pair in enumerate(PAIRS)]
    assert refusal(write(tmp_path / "a.csv", header.split(","), rows)).endswith(f"`columns` {proposed}")


def test_a_key_beside_texts_is_not_said_to_hold_texts(tmp_path, caplog):
    rows = [(f"x{number}", *pair) for number, pair in enumerate(PAIRS)]
    read_pairs(write(tmp_path / "a.csv", ("uid", "text_a", "text_b", "score"), rows))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("read", [samesense.read, samesense.doctor, read_texts])
def test_a_status_beside_objects_is_not_read_for_the_texts(tmp_path, read):
    rows = [{"id": "u", "status": "completed", "fields": {"a": a, "b": b}, "score": score} for a, b, score in PAIRS]
    path = write_lines(tmp_path / "a.jsonl", rows)
    assert "'status', repeats a few of them, and column 'fields' holds objects" in refusal(path, read)
    assert read_texts(path, columns="status") == ["completed"] * len(PAIRS)


def test_objects_that_hold_texts_are_said_to_be_left_unread(tmp_path, caplog):
    rows = [{"query": a, "answers": {"text": [b], "start": [0]}} for a, b, _ in PAIRS]
    path = write_lines(tmp_path / "a.jsonl", rows)
    assert "without answers (a guess" in detect_kind(path).line
    read_texts(path)
    assert any("column 'answers' holds texts and is not read" in record.getMessage() for record in caplog.records)
    settings = [{"query": a, "meta": {"lang": "en", "by": "web"}} for a, _, _ in PAIRS]
    assert "meta" not in detect_kind(write_lines(tmp_path / "b.jsonl", settings)).line


def test_texts_in_objects_alone_are_refused_with_the_column(tmp_path):
    rows = [{"messages": [{"role": "user", "content": a}, {"role": "assistant", "content": b}]} for a, b, _ in PAIRS]
    message = refusal(write_lines(tmp_path / "a.jsonl", rows))
    assert "column 'messages' holds objects, which are not read" in message and "json_normalize" in message


def test_keys_beside_objects_are_not_proposed_as_texts(tmp_path):
    rows = [{"_index": "a", "_type": "doc", "_score": 1, "_source": {"title": a, "body": b}} for a, b, _ in PAIRS]
    assert "column '_source' holds objects, which are not read" in refusal(write_lines(tmp_path / "a.jsonl", rows))


def test_texts_in_lists_with_a_label_each_are_no_documents(tmp_path):
    rows = [{"sentences": [a, b, "c"], "labels": ["x", "y", "x"]} for a, b, _ in PAIRS]
    path = write_lines(tmp_path / "a.jsonl", rows)
    assert "'labels' a label for each of them" in refusal(path)
    assert "frame.explode(['sentences', 'labels']). If they are documents, leave the labels out" in refusal(path)


def test_objects_of_parquet_are_told_by_their_type(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {"set": ["done"] * 6, "data": [{"a": a, "b": b} for a, b, _ in PAIRS]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert "column 'data' holds objects" in refusal(tmp_path / "a.parquet")


@pytest.mark.parametrize("answers", [("Y", "N"), ("1", "0"), ("true", "false")])
def test_two_texts_beside_yes_and_no_are_asked_for(tmp_path, answers):
    rows = [(*pair[:2], answers[number % 2]) for number, pair in enumerate(PAIRS)]
    path = write(tmp_path / "a.csv", ("text", "duplicate_text", "is_dup"), rows)
    assert refusal(path).endswith("Name two texts and the label: `columns` text,duplicate_text,is_dup")


@pytest.mark.parametrize("declaration", ["sep=\t", '"sep=\t"', "sep=;"])
def test_a_declared_mark_may_be_a_tab(tmp_path, declaration):
    mark = declaration.strip('"')[-1]
    path = tmp_path / "a.csv"
    rows = [mark.join(("sentence1", "sentence2", "score")), *(mark.join(map(str, pair)) for pair in PAIRS)]
    path.write_bytes("\r\n".join([declaration, *rows, ""]).encode())
    assert samesense.read(path).labels == [pair[2] for pair in PAIRS]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("b'He said no.'", "1 texts are written as bytes of Python, such as"),
        ("Passwort zur\u00c3\u00bcck", "1 texts seem to be UTF-8 that was read in another encoding, such as"),
        ("it\u00e2\u20ac\u2122s", "1 texts seem to be UTF-8 that was read in another encoding, such as"),
        ("it\u0092s", "1 texts hold control characters"),
    ],
)
def test_every_kind_warns_of_texts_that_a_program_has_changed(text, warning):
    for source in (["a b", text], [("a b", "c d"), (text, "e f")], [("a b", "c d", 1), (text, "e f", 0)]):
        assert any(line.startswith(warning) for line in samesense.doctor(source).warnings)
    for fine in ("\u00c2ge \u00c3o", "S\u00c3O PAULO", "ch\u00e2teau", "big", "b'"):
        assert samesense.doctor(["a b", fine]).warnings == []


@pytest.mark.parametrize("name", ["logit", "rerank_score", "Teacher Score"])
def test_scores_beside_positives_are_never_left_unread_in_silence(tmp_path, name):
    path = write(tmp_path / "a.csv", ("query", "passage", name), PAIRS)
    assert f"For labelled pairs: `columns` {quote_columns(f'query,passage,{name}')}; if" in refusal(path)
    assert samesense.read(path, columns=f"query,passage,{name}").labels == [score for _, _, score in PAIRS]


@pytest.mark.parametrize("name", ["cluster", "cluster_id", "Group ID"])
def test_groups_of_texts_are_never_left_unread_in_silence(tmp_path, name):
    path = write(tmp_path / "a.csv", (name, "text"), [(number // 2, a) for number, (a, _, _) in enumerate(PAIRS)])
    assert f"without {name} (a guess: if it is wrong, give other `columns` than text)" in detect_kind(path).line
    assert detect_kind(path, f"text,{name}").kind == "classes"


@pytest.mark.parametrize("words", ["Entailment. Neutral. Contradiction.", "0:entailment 1:neutral 2:contradiction"])
def test_classes_of_inference_are_to_be_written_in_words(tmp_path, words):
    labels = words.split() * 2
    rows = [(a, b, label) for (a, b, _), label in zip(PAIRS, labels, strict=True)]
    path = write(tmp_path / "a.csv", ("premise", "hypothesis", "label"), rows)
    assert refusal(path).endswith("Write entailment, neutral and contradiction.")


def test_addresses_of_mail_are_no_texts(tmp_path):
    rows = [(f"joe.{number}@x-y.org", a, round(score)) for number, (a, _, score) in enumerate(PAIRS)]
    path = write(tmp_path / "a.csv", ("Email Address", "Any comments?", "Rate it"), rows)
    assert samesense.read(path).texts == [a for a, _, _ in PAIRS]


def test_a_label_is_never_left_unread_in_silence(tmp_path):
    rows = [
        {"label": str(i % 3), "label_desc": "news", "sentence": a, "keywords": b} for i, (a, b, _) in enumerate(PAIRS)
    ]
    assert (detect_kind(rows).kind, detect_kind(rows).columns) == ("classes", "sentence,label")
    unnamed = [{"abst": a, "keyword": ["a", "b"], "label": i % 2} for i, (a, _, _) in enumerate(PAIRS)]
    assert "without label (a guess" in detect_kind(write_lines(tmp_path / "a.jsonl", unnamed)).line


@pytest.mark.parametrize(
    ("names", "cells"),
    [("split,sentence1,sentence2,score", "{part},{0},{1},{2}"), ("part,text,label", "{part},{0},{number}")],
)
def test_parts_in_one_file_are_said_to_be_read_together(tmp_path, names, cells, caplog):
    parts = ("train", "dev", "test") * 2
    rows = [
        cells.format(*pair, part=part, number=number % 2).split(",")
        for number, (part, pair) in enumerate(zip(parts, PAIRS, strict=True))
    ]
    path = write(tmp_path / "a.csv", names.split(","), rows)
    for _ in range(2):
        samesense.read(path)
    (message,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        f"{path}: column {names.split(',')[0]!r} names parts of the data, such as 'train', and is not read" in message
    )


@pytest.mark.parametrize(
    ("content", "fix"),
    [
        ('{"text": {"0": "a", "1": "b"}, "label": {"0": 1, "1": 0}}', "the keys 'text', 'label'. Put the rows"),
        (
            '{"meta": {"n": 1}, "rows": [{"text": "a"}]}',
            "the rows are in the list 'rows', write it alone: jq '.[\"rows\"]'",
        ),
        ('{"train": [["a", "x"]], "test": [["b", "y"], ["c", "x"]]}', "Put the rows into a list"),
        ('{\n "text": "a"\n}\n{\n "text": "b"\n}\n', "put on one line each by jq -c ."),
    ],
)
def test_other_forms_of_json_are_refused_with_the_fix(tmp_path, content, fix):
    (tmp_path / "a.json").write_text(content)
    assert fix in refusal(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("content", "fix"),
    [
        ("{'text': 'a'}\n{'text': 'b'}\n", "Rows of Python are written as JSON by json.dumps(row)"),
        ('{"text": "a"},\n{"text": "b"}\n', "Take the commas between the lines off"),
        ('{"text": "a"} {"text": "b"}\n', "Put each object on one line: jq -c ."),
        ('{\n "text": "a"\n}\n', "Put each object on one line: jq -c ."),
        ('{"text": "a"\n', "Correct the line; a JSON list belongs in a file that ends in .json"),
    ],
)
def test_lines_that_are_no_json_are_refused_with_the_fix(tmp_path, content, fix):
    (tmp_path / "a.jsonl").write_text(content)
    assert fix in refusal(tmp_path / "a.jsonl")


def test_positives_that_are_their_anchors_are_counted_where_none_is_left():
    assert "no anchor has a positive among 2, besides 2 that are their anchor" in refusal(
        [{"anchor": text, "positive": text} for text in ("a b", "c d")], read_tuples
    )


READERS = {
    "read": samesense.read,
    "dedup and the like": read_texts,
    "training": lambda path: list(all_texts(path)),
    "shards": lambda path: split_shards([str(path)], 10),
}


MAILBOX = """From joe@x.org Mon May  1 10:00:00 2024
Received: from mail.x.org (mail.x.org [192.0.2.1])
\tby mx.y.org; Mon, 1 May 2024 10:00:00 +0200
From: Joe <joe@x.org>
To: ann@y.org
Subject: The train to Leeds
X-Spam: no

Hello Ann,
when does it leave?

"""

WIKI = """<doc id="12" url="https://en.wikipedia.org/wiki?curid=12" title="Leeds">
Leeds

Leeds is a city. It lies in the north.

</doc>
"""


def test_a_dialogue_is_no_mail(tmp_path):
    (tmp_path / "a.txt").write_text("From: here to there.\nTo: me it is far.\nTo: you it is near.\nJoe: Well.\n")
    assert len(samesense.read(tmp_path / "a.txt")) == 4


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", '"sentence1" "sentence2"\n"a b" "c d"\n', "has the names of columns, so that it is a table"),
        ("a.tab", "one two\tthree\nfour\tfive\n", "have as many tabs each (1), so that it is a table"),
        ("a.psv", "sentence1|sentence2\na|b\n", "has the names of columns, so that it is a table"),
        ("a.txt", "+----+----+\n| a  | b  |\n+----+----+\n| c  | d  |\n", "it is a table drawn with lines"),
        ("a.de-en", "ein Haus ||| a house\nSchnee ||| snow\n", "have as many marks ||| each (1)"),
        ("a.txt", '{"text": "a"}\n{"text": "b"}\n', "each line is a JSON object"),
        ("Inbox", MAILBOX, "its lines are mails with their headers. Write the texts alone"),
        ("a.mbox", "Hello.\n", "a name in .mbox is that of mails"),
        ("a.txt", MAILBOX.partition("\n")[2], "its lines are mails with their headers"),
        ("a.txt", '#: a.c:1\nmsgid "Open"\nmsgstr "Öffnen"\n\nmsgid "No"\nmsgstr "Nein"\n', "translations of gettext"),
        ("wiki_00", WIKI, "with --json, and end the name in .jsonl. If each line"),
    ],
)
def test_a_table_by_the_name_of_a_text_is_refused_by_every_reader(tmp_path, name, content, message, reader):
    (tmp_path / name).write_text(content)
    assert message in refusal(tmp_path / name, READERS[reader])


def test_lists_of_texts_are_said_to_be_left_unread(tmp_path, caplog):
    rows = [{"query": a, "pos": [b], "tags": ["x", "y z"]} for a, b, _ in PAIRS]
    assert len(read_texts(write_lines(tmp_path / "a.jsonl", rows), columns=None)) == len(PAIRS)
    (message,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "column 'pos' holds texts and is not read" in message


def test_the_index_of_a_frame_may_hold_names_of_any_length(tmp_path):
    path = tmp_path / "r.csv"
    rows = [f'"Mazda RX4 Wag {number}","{a}","{b}",{number % 2}' for number, (a, b, _) in enumerate(PAIRS)]
    path.write_text("\n".join(['"","sentence1","sentence2","score"', *rows]) + "\n", encoding="utf-8")
    assert samesense.read(path).sentences1 == [a for a, _, _ in PAIRS]


JIRA = """Summary,Issue key,Labels,Labels,Description,Comment,Comment
Login fails,A-1,ui,,The button does nothing.,Joe: Which browser is it?,Ann: It is fixed now.
Slow page,A-2,ui,web,It takes long to open.,,
Wrong sum,A-3,,,The total is off by one.,Joe: I see it too.,
"""


def test_columns_of_the_same_name_are_refused_only_where_they_are_asked_for(tmp_path):
    path = tmp_path / "jira.csv"
    path.write_text(JIRA)
    assert read_texts(path, "Summary") == ["Login fails", "Slow page", "Wrong sum"]
    assert read_tuples(path, columns="Summary,Description").anchors == ["Login fails", "Slow page", "Wrong sum"]
    message = refusal(path, read_texts, columns="Comment")
    assert "'Comment', which this source does not have" in message and "Comment (1), Comment (2)" in message
    assert "several columns hold texts" in refusal(path, read_texts)


@pytest.mark.parametrize("names", ["text1,text2,label,label", "text,id,label,Label"])
def test_labels_of_the_same_name_are_refused(tmp_path, names):
    rows = [(a, b, number % 2, number % 3) for number, (a, b, _) in enumerate(PAIRS)]
    path = write(tmp_path / "a.csv", names.split(","), rows)
    for read in (samesense.read, samesense.doctor):
        assert "stands more than once. Rename the columns, or choose some by `columns`: " in refusal(path, read)


def test_numbers_below_one_of_several_columns_without_a_name_are_refused(tmp_path):
    names = ("text", "", "", "label")
    path = write(tmp_path / "a.csv", names, [(a, "", "", i % 2) for i, (a, _, _) in enumerate(PAIRS)])
    assert len(samesense.read(path)) == len(PAIRS)
    path = write(tmp_path / "a.csv", names, [(a, i, "", i % 2) for i, (a, _, _) in enumerate(PAIRS)])
    assert "column 2, which holds '0' here, has none" in refusal(path)


def test_a_row_that_repeats_columns_of_the_same_name_is_refused(tmp_path):
    (tmp_path / "jira.csv").write_text(JIRA + JIRA)
    assert "row 5: the row repeats the names" in refusal(tmp_path / "jira.csv", read_texts, columns="Summary")


@pytest.mark.parametrize("separator", ["\t", ","])
def test_the_first_row_is_never_proposed_as_the_name_of_a_column(tmp_path, separator):
    name = "a.tsv" if separator == "\t" else "a.csv"
    rows = [(number % 4, a, b) for number, (a, b, _) in enumerate(PAIRS)]
    path = write(tmp_path / name, rows[0], rows[1:], separator)
    assert "seems to be a text. Add a header line, or give `header` no" in refusal(path, read_texts)


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_rows_in_lists_are_to_be_written_one_by_one(tmp_path, name):
    pandas = pytest.importorskip("pandas")
    first, second, scores = (list(cells) for cells in zip(*PAIRS, strict=True))
    frame = pandas.DataFrame({"sent1": [first], "sent2": [second], "labels": [[int(score > 2) for score in scores]]})
    if name == "a.parquet":
        frame.to_parquet(tmp_path / name)
    else:
        frame.to_json(tmp_path / name, orient="records", lines=True)
    for read in (samesense.read, samesense.doctor, find_tasks, read_texts):
        message = refusal(tmp_path / name, read)
        assert "'sent1', 'sent2' and 'labels' hold lists of the same length" in message
        assert "frame.explode(['sent1', 'sent2', 'labels'])" in message
    for read in (samesense.read, read_pairs):
        assert "in pandas: frame.explode" in refusal(tmp_path / name, read, columns="sent1,sent2,labels")


def test_a_question_with_a_sentence_and_a_label_is_a_pair_and_no_sentence_with_a_class(tmp_path):
    rows = [(f"Q{i}", a, "Title", b, int(score > 2)) for i, (a, b, score) in enumerate(PAIRS)]
    path = write(tmp_path / "a.csv", ("QuestionID", "Question", "DocumentTitle", "Sentence", "Label"), rows)
    assert refusal(path).endswith("`columns` Question,Sentence,Label")


def test_an_empty_column_decides_no_kind(tmp_path):
    rows = [{"title": a, "document": "", "answers": {"text": [b]}} for a, b, _ in PAIRS]
    path = write_lines(tmp_path / "a.jsonl", rows)
    assert detect_kind(path).kind == "texts"
    assert "without answers" in detect_kind(path).line


def test_lists_that_are_not_read_are_no_fault_of_the_texts(tmp_path):
    rows = [(number // 2, a, "[]", "['x']") for number, (a, _, _) in enumerate(PAIRS)]
    path = write(tmp_path / "a.csv", ("paraphrase_set_id", "paraphrase", "lists", "tags"), rows)
    assert "frame.explode" not in refusal(path)
    assert refusal(path, read_texts).endswith("Name the one to read: `columns` paraphrase")


def test_one_text_that_is_repeated_makes_no_classes_of_the_others(tmp_path):
    bodies = ["[removed]" if number % 3 else b for number, (_, b, _) in enumerate(PAIRS * 4)]
    rows = [(f"{a} {number}", body) for number, ((a, _, _), body) in enumerate(zip(PAIRS * 4, bodies, strict=True))]
    rows = [(title, f"{body} {number}" if body != "[removed]" else body) for number, (title, body) in enumerate(rows)]
    path = write(tmp_path / "a.csv", ("title", "selftext"), rows)
    assert detect_kind(path, "title,selftext").kind == "tuples"


def test_files_without_an_ending_in_a_folder_are_told_what_to_do(tmp_path):
    for name in ("sci/1", "sci/2", "rec/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("From: joe@x.org\n\nIt rains.\n")
    for read in (samesense.read, read_texts):
        assert "or end the names of its texts in .txt" in refusal(tmp_path, read)


@pytest.mark.parametrize("name", ["rank", "bm25_rank"])
def test_ranked_answers_are_not_all_positives(tmp_path, name):
    rows = [(a, b, number % 4 + 1) for number, (a, b, _) in enumerate(PAIRS)]
    path = write(tmp_path / "a.csv", ("question", "answer", name), rows)
    assert "seems to rank the texts of an anchor" in refusal(path)
    assert len(samesense.read(path, columns="question,answer")) == len(PAIRS)
    rows = [(a, b, 1) for a, b, _ in PAIRS]
    assert len(samesense.read(write(tmp_path / "b.csv", ("question", "answer", name), rows))) == len(PAIRS)


@pytest.mark.parametrize("mark", [",", ";", " | ", "#"])
def test_several_classes_in_a_cell_are_warned_of_once(tmp_path, caplog, mark):
    labels = [f"a{mark}b", "b", "a"]
    rows = [(f'"{a}"', f'"{labels[number % 3]}"') for number, (a, _, _) in enumerate(PAIRS)]
    path = write(tmp_path / "a.csv", ("text", "labels"), rows)
    for _ in range(2):
        samesense.read(path)
    (message,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"column 'labels' seems to hold several classes in a cell, such as {labels[0]!r}" in message
    caplog.clear()
    samesense.read([(a, ["x", "x,y", "z"][number % 3]) for number, (a, _, _) in enumerate(PAIRS * 3)])
    assert not [record for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize("name", ["lang", "Language", "locale"])
def test_codes_of_languages_are_no_texts(tmp_path, name):
    rows = [(a, ["en", "de"][number % 2]) for number, (a, _, _) in enumerate(PAIRS)]
    path = write(tmp_path / "a.csv", ("phrase", name), rows)
    assert read_texts(path) == [a for a, _, _ in PAIRS]
    refusal(path, lambda source: text_columns(list_rows(source), None, str(source)))
