"""The rules of each file format, and the full text of every refusal."""

import gzip
import subprocess
import sys
from zipfile import ZipFile

import pytest

from samesense.data import load_rows, read_pairs
from samesense.data.conventions.named_columns import quote_columns
from samesense.data.kinds import detect_kind
from samesense.data.sentences import all_texts
from samesense.errors import DataError

UNKNOWN = (
    "The bytes do not prove in which encoding it is: name the one that it was written in by `encoding`, such as cp1252 "
    "(Western Europe), cp1250 (Central Europe), cp1251 (Cyrillic), cp1254 (Turkish), gb18030 and big5 (Chinese), cp932 "
    "(Japanese), cp949 (Korean), or re-save as UTF-8"
)


def refusal(source, **options):
    with pytest.raises(DataError) as caught:
        read_pairs(source, **options)
    return str(caught.value)


def refusal_of_tell(source):
    with pytest.raises(DataError) as caught:
        detect_kind(source)
    return str(caught.value)


def put(path, text):
    path.write_bytes(text.encode("utf-8"))
    return path


def test_importing_the_data_layer_loads_no_heavy_library():
    code = (
        "import sys; sys.modules['torch'] = None; import samesense.data; "
        "sys.exit(' '.join(name for name in ('datasets', 'pandas', 'pyarrow') if name in sys.modules) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_three_columns_that_end_in_a_number_need_no_header(tmp_path):
    path = put(tmp_path / "zh.tsv", "花呗分期\t花呗怎么分期\t1\n买手机\t天气很好\t0\n")
    assert list(load_rows(path)) == [
        (1, {"text1": "花呗分期", "text2": "花呗怎么分期", "label": "1"}),
        (2, {"text1": "买手机", "text2": "天气很好", "label": "0"}),
    ]
    assert read_pairs(path).kind == "binary"
    commas = put(tmp_path / "zh.csv", '"花呗,分期",花呗怎么分期,1\n买手机,天气很好,0\n')
    assert read_pairs(commas).pairs() == [("花呗,分期", "花呗怎么分期"), ("买手机", "天气很好")]


def test_a_known_name_in_the_first_line_makes_it_a_header(tmp_path):
    path = put(tmp_path / "odd.tsv", "Score\tb\t2\n")
    assert list(load_rows(path)) == []


def test_four_columns_without_a_header_are_refused_with_the_way_out(tmp_path):
    path = put(tmp_path / "four.tsv", "one\ttwo\tthree\t1\nfour\tfive\tsix\t0\n")
    assert refusal(path) == (
        f"{path}: two text columns could not be found. Its columns: one, two, three, 1. Labelled pairs have two "
        "columns of texts and one of labels. Known names of texts: sentence1/sentence2, sentence_a/sentence_b, "
        "text1/text2, text_a/text_b, premise/hypothesis, question1/question2, anchor/positive, query/positive, "
        "sent0/sent1; of labels: score, scores, similarity, similarity_score, label, labels, gold_label, "
        "is_duplicate, isduplicate, duplicate, relatedness_score. A file without a header line needs one, or `header` "
        "no, unless it has exactly three columns, text, text and a number."
    )


def test_csv_rows_are_numbered_by_the_line_they_start_on(tmp_path):
    text = 'sentence1,sentence2,score\r\n"two\r\nlines",b,1\r\n\r\n"a ""quoted"" word","c\nd\ne",0\r\nlast,row,0.5\r\n'
    rows = list(load_rows(put(tmp_path / "lines.csv", text)))
    assert [number for number, _ in rows] == [2, 5, 8]
    assert rows[0][1]["sentence1"] == "two\r\nlines"
    assert rows[1][1] == {"sentence1": 'a "quoted" word', "sentence2": "c\nd\ne", "score": "0"}


def test_tsv_has_no_quoting_and_takes_either_line_end(tmp_path):
    path = put(tmp_path / "quotes.tsv", 'sentence1\tsentence2\tscore\r\n"open\tit\'s "so"\t1\r\n\r\nc\td\t0')
    rows = list(load_rows(path))
    assert rows[0] == (2, {"sentence1": '"open', "sentence2": 'it\'s "so"', "score": "1"})
    assert rows[1][0] == 4


def test_a_field_may_be_larger_than_the_default_of_the_csv_module(tmp_path):
    path = put(tmp_path / "long.csv", f"sentence1,sentence2,score\n{'x' * 200_000},b,1\nc,d,0\n")
    assert len(read_pairs(path).sentences1[0]) == 200_000


@pytest.mark.parametrize(
    ("cells", "count", "fix"),
    [
        ("a\tb", 2, "Write a line break inside a text as a space; where texts stand in quotes: `quoting` csv."),
        (
            "a\tb\t1\textra",
            4,
            "Write a tab inside a text as a space; name a comma-separated file .csv; if the last fields are notes, cut "
            "them off: cut -f1-3.",
        ),
    ],
)
def test_a_tsv_row_with_the_wrong_number_of_fields_is_refused(tmp_path, cells, count, fix):
    path = put(tmp_path / "ragged.tsv", f"sentence1\tsentence2\tscore\na\tb\t1\n{cells}\n")
    assert refusal(path) == (
        f"{path}, row 3: every row must have the 3 fields of the header (sentence1, sentence2, score); this one has "
        f"{count}. {fix}"
    )


def test_a_csv_row_with_the_wrong_number_of_fields_is_refused(tmp_path):
    path = put(tmp_path / "ragged.csv", 'sentence1,sentence2,score\n"a\nb",c,1\nwell, well,d,1\n')
    assert refusal(path) == (
        f"{path}, row 4: every row must have the 3 fields of the header (sentence1, sentence2, score); this one has 4. "
        "A text with commas in it must stand in double quotes."
    )


def test_a_csv_quote_that_never_closes_is_refused_where_it_opens(tmp_path):
    path = put(tmp_path / "open.csv", 'sentence1,sentence2,score\na,b,1\n"c,d,0\ne,f,1\n')
    assert refusal(path) == (
        f"{path}, row 3: the row breaks the quoting rules of CSV (unexpected end of data). A text with a comma, a "
        "quote or a line break stands in double quotes, which are closed, and a quote inside it is doubled; where "
        "quotes are characters like any other: `quoting` none."
    )


@pytest.mark.parametrize("column", ["label", "Label "])
def test_a_repeated_column_name_is_refused_where_it_is_needed(tmp_path, column):
    path = put(tmp_path / "twice.tsv", f"text1\ttext2\tlabel\t{column}\nabc\tbc d\t1\t0\ncd e\tfg h\t0\t1\n")
    assert refusal(path) == (
        f"{path}: a label column could not be found. Its columns: text1, text2, label (1), {column.strip()} (2). Names "
        "that need no option are sentence1, sentence2, label. Name two texts and the label: `columns` "
        '"text1,text2,label (1)"'
    )
    assert read_pairs(path, columns=f"text1,text2,{column.strip()} (2)").labels == [0.0, 1.0]
    assert "does not have" in refusal(path, columns="text1,text2,label")


@pytest.mark.parametrize("line", ["0,a cat,a dog,0", "A cat.,A cat.,yes"])
def test_a_repeated_name_that_seems_to_be_data_asks_for_a_header_line(tmp_path, line):
    path = put(tmp_path / "bare.csv", f"{line}\n{line}\n")
    assert refusal(path).endswith("stands more than once. The first line seems to be data: add a header line.")


def test_a_json_line_that_is_not_json_is_refused(tmp_path):
    path = put(tmp_path / "bad.jsonl", '{"text1": "a"}\n\n{"text1": \n')
    assert refusal(path) == (
        f"{path}, row 3: every line must be one JSON object; this one is not JSON (Expecting value: line 2 column 1 "
        "(char 11)). Correct the line; a JSON list belongs in a file that ends in .json."
    )


@pytest.mark.parametrize("name", ["twice.jsonl", "twice.json"])
def test_a_repeated_key_is_refused_and_loses_no_value(tmp_path, name):
    path = put(tmp_path / name, '{"text": "a"}\n{"text": "first", "id": 1, "text": "second"}\n')
    problem = "the keys of an object must differ; 'text' stands more than once, with the values 'first' and 'second'. "
    assert refusal(path) == f"{path}, row 2: {problem}Rename one, or make them a list."
    path = put(tmp_path / "nested.jsonl", '{"text": "a", "more": [{"x": 1, "x": 2}]}\n')
    assert "row 1: the keys of an object must differ; 'x' stands more than once, with the values 1 and 2" in refusal(
        path
    )
    path = put(tmp_path / "list.json", '[{"text": "a"},\n {"text": "first", "text": "second"}]')
    assert refusal(path) == f"{path}: {problem}Rename one, or make them a list."


def test_a_json_line_that_is_no_object_is_refused(tmp_path):
    path = put(tmp_path / "list.jsonl", '["a", "b", 1]\n')
    assert refusal(path) == (
        f"{path}, row 1: a row must be a JSON object with named columns; received a list. "
        'Write it as {"sentence1": ..., "sentence2": ..., "score": ...}.'
    )


def test_a_json_file_is_one_list_or_an_object_a_line(tmp_path):
    lines = put(
        tmp_path / "lines.json", '{"text1": "a", "text2": "b", "score": 1}\n{"text1": "c", "text2": "d", "score": 0}\n'
    )
    assert read_pairs(lines).labels == [1.0, 0.0]
    broken = put(tmp_path / "broken.json", '[{"a": 1},\n')
    assert refusal(broken).startswith(
        f"{broken}: the file must be one JSON list of objects, or one object a line; it is not"
    )
    single = put(tmp_path / "single.json", '{"a": 1}')
    assert refusal(single) == (
        f"{single}: the file must be one JSON list of objects; received an object with the keys 'a'. "
        "Put the rows into a list, or one on each line of a .jsonl file; in pandas: frame.to_json(path, "
        'orient="records").'
    )


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path):
    path = put(tmp_path / "pairs.txt", "a\tb\t1\n")
    assert refusal(path) == (
        f"{path}: the end of the file name says the format, which is none of .tsv, .csv, .jsonl, .ndjson, "
        ".json, .parquet (or one of these with .gz, .bz2, .xz, .zip). Rename or convert the file."
    )


def test_a_file_that_is_not_gzip_is_refused(tmp_path):
    path = put(tmp_path / "plain.tsv.gz", "text1\ttext2\tlabel\n")
    assert refusal(path) == (
        f"{path}: this must be a gzip file that can be read to its end; after 0 lines: Not a gzipped file (b'te'). "
        "Download it again, or take .gz off the name if it is not compressed."
    )


def test_a_gzip_file_cut_short_is_refused(tmp_path):
    path = tmp_path / "cut.tsv.gz"
    path.write_bytes(gzip.compress(b"text1\ttext2\tlabel\na\tb\t1\n")[:-6])
    assert refusal(path).startswith(f"{path}: this must be a gzip file that can be read to its end; after ")


def test_a_broken_or_zipped_parquet_file_is_refused(tmp_path):
    path = put(tmp_path / "broken.parquet", "PAR1 but not really")
    assert refusal(path).startswith(f"{path}: this is not a whole Parquet file (")
    zipped = put(tmp_path / "pairs.parquet.gz", "")
    assert refusal(zipped) == (
        f"{zipped}: Parquet compresses by itself and is not read inside gzip. Unpack it: gunzip {zipped}"
    )


def test_text_that_is_not_utf8_is_refused_with_its_encoding_where_the_bytes_prove_it(tmp_path):
    path = tmp_path / "windows.tsv"
    path.write_bytes("élan\tb\t1\n".encode("utf-16"))
    assert refusal(path) == (
        f"{path}, row 1: text must be UTF-8; byte 0xff at position 0 of the line is not. It is UTF-16: give `encoding` "
        "utf_16, or re-save as UTF-8, for example: iconv -f UTF-16 -t UTF-8 "
        f"{path} > {tmp_path}/windows.utf8.tsv"
    )
    path.write_bytes("élan\tb\t1\n".encode("latin-1"))
    assert refusal(path) == (
        f"{path}, row 1: text must be UTF-8; byte 0xe9 at position 0 of the line is not. {UNKNOWN}."
    )


def test_text_of_excel_that_is_not_utf8_says_how_to_save_it(tmp_path):
    path = tmp_path / "my pairs.csv"
    path.write_bytes("text1,text2,label\n“a”,b,1\n".encode("cp1252"))
    assert refusal(path).endswith(f'{UNKNOWN} (in Excel, save as "CSV UTF-8").')


def test_a_repeated_column_name_of_parquet_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [pa.array(["a"]), pa.array(["b"]), pa.array([1.0]), pa.array([0.0])]
    path = tmp_path / "twice.parquet"
    pq.write_table(pa.Table.from_arrays(columns, names=["text1", "text2", "score", "score"]), path)
    assert refusal(path) == f"{path}: column names must differ; 'score' stands more than once. Rename the columns."


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.json", "a.txt"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"x\ty\t1\n", mtime=0), "compressed by gzip. To read it, end its name in .gz."),
        (
            b"PK\x03\x04\x14\0\x06\0\x08\0",
            "a ZIP archive. To read it, unpack it; the name of an archive of one text file may end in .zip",
        ),
        (b"PAR1\x15\x04\x15\0\n\xff", "a Parquet file. To read it, end its name in .parquet."),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0",
            'a file of an old Office, such as .xls. To read it, save the sheet as "CSV UTF-8"',
        ),
    ],
)
def test_files_that_are_no_text_are_known_by_their_first_bytes(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    assert f"{tmp_path / name}: this is no text, but {message}" in refused_by_any_reader(tmp_path / name)


@pytest.mark.parametrize("name", ["a.xlsx", "a.csv", "a.ods"])
def test_a_workbook_says_how_to_read_it_under_any_name(tmp_path, name):
    path = tmp_path / name
    with ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        archive.writestr("xl/workbook.xml", "<x/>")
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    assert refusal_of_tell(path) == str(caught.value)
    assert str(caught.value) == (
        f'{path}: this is no text, but a workbook, as Excel has them. To read it, save the sheet as "CSV UTF-8"; or '
        f'in Python: samesense.read(pandas.read_excel("{path}"))'
    )


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.txt"])
@pytest.mark.parametrize(
    ("content", "row", "expected_message"),
    [
        ("a text\nmore\n".encode("utf-16-le"), 1, "it holds NUL characters. It is UTF-16LE: give"),
        ("a text\nmore\n".encode("utf-16-be"), 1, "it holds NUL characters. It is UTF-16BE: give"),
        ("Ein Löwe\nund 你好，世界\n".encode("utf-16-le"), 1, "It is UTF-16LE: give"),
        (bytes(range(128, 256)) * 4 + b"\0\xff\0\xfe" * 3, 1, "The file holds NUL bytes and looks binary"),
        (b"\0\1\0\2\3\4\0\5\6\7\0" * 9, 1, "The file holds NUL bytes and looks binary"),
        (b"\0\x11\0\x80\0\xff\0\xd9\xdc\x02" * 9, 1, "The file holds NUL bytes and looks binary"),
        ("蚂蚁花呗\n怎么还款\n多少钱\n".encode("utf-16-le"), 1, "iconv -f UTF-16LE -t UTF-8"),
        ("蚂蚁花呗怎么还款，什么时候能开通\n".encode("gb18030") * 2, 1, "iconv -f GB18030 -t UTF-8"),
        ("蚂蚁花呗怎么还款\n".encode("gb18030"), 1, UNKNOWN),
        ("Ça coûte\n".encode("latin-1"), 1, UNKNOWN),
        ('{"text": "Ça"}\n'.encode() + "Ça coûte\n".encode("latin-1"), 2, "rows before it are. The row is damaged"),
        (b'{"text": "b"}\na\0b\n', 2, "a text holds no NUL character, and this line does. Take it out: tr -d '\\000'"),
        (b'{"a": 1}\r{"a": 2}\r', 1, "if carriage returns do, convert the file: tr '\\r' '\\n'"),
    ],
)
def test_bytes_that_are_no_lines_of_utf8_are_refused_in_every_text_format(
    tmp_path, name, content, row, expected_message
):
    (tmp_path / name).write_bytes(content)
    message = refused_by_any_reader(tmp_path / name)
    assert message.startswith(f"{tmp_path / name}, row {row}: ")
    assert expected_message in message


def refused_by_any_reader(path):
    with pytest.raises(DataError) as caught:
        list(all_texts(path))
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.txt", "a.txt.gz"])
def test_a_line_without_end_is_refused_before_it_is_held(tmp_path, name, monkeypatch):
    monkeypatch.setattr("samesense.data.rows.text.LONGEST_ROW", 2**20)
    content = b"a" * 2**20 + b"\n" + b"b" * 2**24
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    with pytest.raises(DataError, match="row 1: a row has at most 1 MB, and this one goes on"):
        list(all_texts(tmp_path / name))


def test_carriage_returns_within_the_quotes_of_csv_are_kept(tmp_path):
    path = put(tmp_path / "a.csv", 'text\n"one\rcell"\n')
    assert list(all_texts(path)) == ["one\rcell"]
    bare = put(tmp_path / "b.csv", "text\ra\rb\r")
    assert "convert the file: tr '\\r' '\\n'" in refused_by_any_reader(bare)


def test_nul_in_json_is_refused_with_its_row(tmp_path):
    path = put(tmp_path / "a.jsonl", '{"text": "a"}\n{"text": "a\\u0000b"}\n')
    assert "row 2, column 'text': the text holds NUL" in refused_by_any_reader(path)
    pairs = put(tmp_path / "b.jsonl", '{"text1": "a\\u0000", "text2": "b", "score": 1}\n')
    assert "row 1, column 'text1': the text holds NUL" in refusal(pairs)


def test_one_column_may_hold_any_mark(tmp_path):
    path = put(tmp_path / "a.tsv", "body\nwell, well; it | is\nyes\n")
    assert list(all_texts(path)) == ["well, well; it | is", "yes"]
    assert list(all_texts(put(tmp_path / "b.csv", "text\n"))) == []


@pytest.mark.parametrize("first", ["A man eats.", "a man eats all of it", "a man eats fish", "什么时候？"])
def test_a_table_of_texts_without_a_header_line_is_refused(tmp_path, first):
    message = refused_by_any_reader(put(tmp_path / "a.csv", f"{first}\nA dog runs\n"))
    assert (
        f"the first line of a table names its columns, and {first!r} seems to be a text. Add a header line, "
        "or give `header` no" in message
    )
    assert message.splitlines()[0].endswith(f"If it is the name of a column: `columns` {quote_columns(first)}")


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Timestamp,What is your question?,Rating", "2024/01/02,A dog runs.,5"),
        ("id,What would you like us to know about you?", "7,A dog runs."),
        ("who,What now?", "Ann,A dog runs."),
    ],
)
def test_a_name_that_ends_like_a_text_is_none_beside_other_names(tmp_path, header, row):
    path = put(tmp_path / "a.csv", f"{header}\n{row}\n")
    name = header.split(",")[1]
    assert list(all_texts(path, columns=name)) == ["A dog runs."]
    if "who" not in header:
        assert list(all_texts(path)) == ["A dog runs."]


@pytest.mark.parametrize("line", ["A man eats.,food", "A man eats all of it,food", "A man eats.,A man eats?"])
def test_a_table_of_two_columns_without_a_header_line_is_refused(tmp_path, line):
    with pytest.raises(
        DataError,
        match=r"seems to be a text\. Add a header line, or give `header` no\. If it is .* `columns` \"A man eats",
    ):
        detect_kind(put(tmp_path / "a.csv", f"{line}\nA dog runs.,sport\nA cat sleeps.,sleep\n"))
