"""A table with its scores: every row and cell as it was, and the new cells behind them."""

import csv
import io
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samesense
from samesense.data import load_rows
from samesense.data.rows.table_options import TableOptions, table_options
from samesense.errors import ConfigError, DataError, OutputError
from samesense.inference.scoring import files
from tests.command import run_command
from tests.messages import listen

WORDS = "haus 1 0 0\ngebäude 1 0.2 0\nhund 0 1 0\nkatze 0 0.9 0.4\nschnee 0 0 1\n"
PAIRS = [("haus", "gebäude"), ("hund", "katze"), ("schnee", "haus"), ("katze", "katze")]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.vec").write_text(WORDS, encoding="utf-8")
    return tmp_path


def model():
    return samesense.load("words:w.vec")


def score(capsys, *arguments, code=0):
    ended, out, err = run_command(capsys, "score", *arguments, "--model", "words:w.vec")
    assert ended == code, err
    return out, err


GERMAN = (
    "\ufeffNr;Frage A;Preis;Frage B;Bemerkung\r\n"
    '001;haus;1,50;gebäude;"sehr ""gut""\r\nzweite; Zeile"\r\n'
    "\r\n"
    '002;;2,00;katze;=HYPERLINK("http://x.de")\r\n'
    ";;;;\r\n"
    '0003;"hund";3,25;"katze";\r\n'
    ";;;;\r\n"
)


def test_rows_stay_as_they_are_byte_by_byte(here, capsys):
    (here / "Liste für März.csv").write_bytes(GERMAN.encode())
    columns = ("--columns", "Frage A,Frage B")
    _, err = score(capsys, "Liste für März.csv", *columns, "--threshold", "0.95", "--output", "Ergebnis März.csv")
    lines = (here / "Ergebnis März.csv").read_bytes().decode().split("\r\n")
    before = GERMAN.split("\r\n")
    assert lines[0] == f"{before[0]};score;same"
    assert lines[1:4] == [before[1], f"{before[2]};0,980581;yes", ""]
    assert lines[4:] == [f"{before[4]};;", ";;;;;;", f"{before[6]};0,913812;no", ";;;;;;", ""]
    assert "3 of 5 rows have no two texts to compare, and so no score: row 4, 5, 6." in err
    assert "2 of 5 rows scored, Frage A with Frage B; 1 are the same" in err


def test_an_output_is_not_written_over_and_nothing_is_left_of_a_failure(here, capsys):
    (here / "a.csv").write_text("text1,text2\nhaus,hund\nhaus\n")
    _, err = score(capsys, "a.csv", "--output", "b.csv", code=2)
    assert "a.csv, row 3: every row must have the 2 fields" in err
    (here / "a.csv").write_text("text1,text2\nhaus,hund\n")
    score(capsys, "a.csv", "--output", "b.csv")
    _, err = score(capsys, "a.csv", "--output", "b.csv", code=2)
    assert "b.csv is there" in err and "--overwrite" in err
    score(capsys, "a.csv", "--output", "b.csv", "--overwrite")
    _, err = score(capsys, "b.csv", "--output", "a.csv", "--overwrite", code=2)
    assert "there is a column 'score'" in err and "--prefix new_ makes new_score" in err
    score(capsys, "b.csv", "--output", "c.csv", "--prefix", "new_")
    assert (here / "c.csv").read_text().splitlines()[0] == "text1,text2,score,new_score"
    assert sorted(path.name for path in here.iterdir()) == ["a.csv", "b.csv", "c.csv", "w.vec"]


def test_columns_are_told_or_asked_for(here, capsys):
    (here / "a.csv").write_text("left,right,who\nhaus da,hund da,Ann B\nhund dort,katze,Bob C\n")
    _, err = score(capsys, "a.csv", code=2)
    assert "two columns of texts are compared, and 3 may be meant: left, right, who" in err and "--columns" in err
    _, err = score(capsys, "a.csv", "--columns", "left", code=2)
    assert "names the two columns that are compared" in err
    _, err = score(capsys, "a.csv", "--columns", "left,wrong", code=2)
    assert "'wrong', which this source does not have" in err
    out, _ = score(capsys, "a.csv", "--columns", "left,right,label")
    assert out.splitlines()[0] == "left,right,who,score"


@pytest.mark.parametrize(("cells", "decimal"), [("1,5", "0,980581"), ("1.5", "0.980581"), ("x", "0,980581")])
def test_scores_have_the_decimal_mark_of_the_table(here, capsys, cells, decimal):
    (here / "a.csv").write_text(f"text1;text2;p\nhaus;gebäude;{cells}\n", encoding="utf-8")
    out, err = score(capsys, "a.csv")
    assert out.splitlines()[1] == f"haus;gebäude;{cells};{decimal}"
    assert ("--decimal point" in err) == (cells == "x")
    out, err = score(capsys, "a.csv", "--decimal", "point")
    assert out.splitlines()[1].endswith(";0.980581") and "--decimal" not in err
    (here / "a.csv").write_text(f'text1,text2,p\nhaus,gebäude,"{cells}"\n', encoding="utf-8")
    out, _ = score(capsys, "a.csv", "--decimal", "comma")
    assert out.splitlines()[1].endswith(',"0,980581"')


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-16-be"])
def test_the_encoding_of_the_table_stays(here, capsys, encoding):
    text = "\ufeff" if encoding.startswith("utf-16-") else ""
    text += "text1;text2;größe\r\nhaus;gebäude;1,5\r\n"
    (here / "a.csv").write_bytes(text.encode(encoding))
    _, err = score(capsys, "a.csv", "--output", "b.csv", code=2)
    assert "--encoding" in err
    score(capsys, "a.csv", "--output", "b.csv", "--encoding", encoding)
    expected = text.replace("größe", "größe;score").replace("1,5", "1,5;0,980581").encode(encoding)
    assert (here / "b.csv").read_bytes() == expected


def test_the_line_that_names_the_mark_and_empty_columns_behind_the_last(here, capsys):
    (here / "a.csv").write_bytes(b"sep=;\ntext1;text2;p;;\nhaus;hund;1,5;;\n;;;;\nhund;hund;2,5;;")
    out, _ = score(capsys, "a.csv")
    assert out == "sep=;\ntext1;text2;p;score\nhaus;hund;1,5;0,0\n;;;\nhund;hund;2,5;1,0"


def test_json_lines_parquet_and_compressed_tables(here, capsys):
    rows = [{"text1": a, "text2": b, "n": 1e3, "x": [1, None]} for a, b in PAIRS]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (here / "a.jsonl").write_text("\n".join([*lines[:2], "", *lines[2:]]) + "\n", encoding="utf-8")
    score(capsys, "a.jsonl", "--threshold", "0.5", "--output", "b.jsonl")
    written = (here / "b.jsonl").read_text(encoding="utf-8").splitlines()
    assert written[0] == f'{lines[0][:-1]}, "score": 0.980581, "same": true}}' and written[2] == ""
    pq.write_table(
        pa.table({"text1": ["haus", None], "text2": ["hund", "hund"], "n": pa.array([1, 2], pa.int8())}), "a.parquet"
    )
    score(capsys, "a.parquet", "--output", "b.parquet")
    table = pq.read_table("b.parquet")
    assert table.schema.field("n").type == pa.int8() and table["score"].to_pylist() == [0.0, None]
    score(capsys, "b.jsonl", "--prefix", "x", "--output", "c.tsv")
    assert (here / "c.tsv").read_text(encoding="utf-8").splitlines()[0] == "text1\ttext2\tn\tx\tscore\tsame\txscore"


def test_classes_of_parquet_are_written_by_their_names(here, capsys):
    label = {"_type": "ClassLabel", "names": ["no", "yes"]}
    metadata = {"huggingface": json.dumps({"info": {"features": {"label": label}}})}
    table = pa.table({"text1": ["haus", "hund"], "text2": ["hund", "hund"], "label": [1, 0]})
    pq.write_table(table.replace_schema_metadata(metadata), "a.parquet")
    score(capsys, "a.parquet", "--output", "b.parquet")
    assert pq.read_table("b.parquet")["label"].to_pylist() == ["yes", "no"]


def test_whole_numbers_of_64_bits_stay_and_values_of_several_types_are_refused(here, capsys):
    (here / "a.jsonl").write_text(f'{{"text1": "haus", "text2": "hund", "n": {2**64 - 1}}}\n')
    score(capsys, "a.jsonl", "--output", "b.parquet")
    assert pq.read_table("b.parquet")["n"].to_pylist() == [2**64 - 1]
    assert samesense.score("a.jsonl", model=model())["n"].to_pylist() == [2**64 - 1]
    with (here / "a.jsonl").open("a") as file:
        file.write('\n{"text1": "haus", "text2": "hund", "n": true}\n')
    with pytest.raises(DataError, match=r"a\.jsonl, row 3, column 'n': a column of an Arrow table holds values of one"):
        samesense.score("a.jsonl", model=model())


def test_for_excel(here, capsys):
    (here / "a.csv").write_text('text1,text2,p\nhaus,gebäude,"1,50"\nhaus,,"=1+1"\n', encoding="utf-8")
    score(capsys, "a.csv", "--excel", "--output", "b.csv")
    assert (here / "b.csv").read_bytes().decode() == (
        "\ufefftext1;text2;p;score\r\nhaus;gebäude;1,50;0,980581\r\nhaus;;=1+1;\r\n"
    )
    _, err = score(capsys, "a.csv", "--excel", "--output", "b.tsv", code=2)
    assert "--excel is for an output that ends in .csv" in err


def test_what_came_out_as_json(here, capsys):
    (here / "a.csv").write_text("text1,text2\nhaus,hund\nhund,\n")
    _, err = score(capsys, "a.csv", "--json", code=2)
    assert "--output" in err
    out, _ = score(capsys, "a.csv", "--json", "--output", "b.csv")
    summary = json.loads(out)
    assert (summary["rows"], summary["scored"], summary["without"]) == (2, 1, [3])


def test_a_calibrated_model_says_what_a_score_means(here, capsys, tiny_desk):
    draw = random.Random(0)
    words = "cat dog bird man train snow city noon".split()
    rows = []
    for number in range(120):
        first = draw.sample(words, 4)
        second = [*first[:3], draw.choice(words)] if number % 2 else draw.sample(words, 4)
        rows.append((" ".join([*first, str(number)]), " ".join(second), "ja" if number % 2 else "nein"))
    with (here / "dev.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=";").writerows([("text1", "text2", "label"), *rows])
    code, _, err = run_command(capsys, "calibrate", tiny_desk, "--data", "dev.csv", "--output", "c.json")
    assert code == 0, err
    code, _, err = run_command(
        capsys, "score", "dev.csv", "--model", tiny_desk, "--calibration", "c.json", "--output", "b.csv"
    )
    assert code == 0, err
    read = list(csv.DictReader((here / "b.csv").read_text(encoding="utf-8").splitlines(), delimiter=";"))
    assert list(read[0]) == ["text1", "text2", "label", "score", "probability", "same"]
    threshold = json.loads((here / "c.json").read_text())["thresholds"]["accuracy"]
    for row in read:
        value = float(row["score"].replace(",", "."))
        assert abs(value - threshold) < 1e-5 or row["same"] == ("yes" if value >= threshold else "no")
        assert 0 <= float(row["probability"].replace(",", ".")) <= 1


def test_the_threshold_of_a_model_without_a_calibration_is_refused(here, capsys):
    (here / "a.csv").write_text("text1,text2\nhaus,hund\n")
    for flags in (("--threshold", "calibrated"), ("--min-precision", "0.9")):
        _, err = score(capsys, "a.csv", *flags, code=2)
        assert "alibrat" in err
    _, err = score(capsys, "a.csv", "--threshold", "0.5", "--min-precision", "0.9", code=2)
    assert "Give one" in err


def test_frames_come_back_as_the_kind_that_was_given(here):
    import pandas

    columns = {"nr": ["01", "02", "03"], "text1": ["haus", None, "hund"], "text2": ["gebäude", "hund", "katze"]}
    frame = pandas.DataFrame(columns, index=[7, 8, 9])
    scored = samesense.score(frame, model=model(), threshold=0.95)
    assert list(scored.index) == [7, 8, 9] and list(frame.columns) == list(columns)
    assert scored["score"].isna().tolist() == [False, True, False]
    assert scored["same"].tolist() == [True, pandas.NA, False]
    table = samesense.score(pa.table(columns), model=model())
    assert isinstance(table, pa.Table) and table["score"].to_pylist() == [0.980581, None, 0.913812]
    by_columns = samesense.score(columns, model=model())
    assert by_columns["score"] == table["score"].to_pylist()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert samesense.score(rows, model=model())[2] == {**rows[2], "score": 0.913812}
    assert samesense.score(PAIRS, model=model())[3] == ("katze", "katze", 1.0)
    assert samesense.score(np.array(PAIRS), model=model())[3] == ("katze", "katze", 1.0)
    with pytest.raises(ConfigError, match="comes back as one"):
        samesense.score(rows, model=model(), output="x.csv")


def test_a_dict_of_one_split_comes_back_as_one(here):
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text1": ["haus", "hund"], "text2": ["gebäude", "katze"]})
    scored = samesense.score(datasets.DatasetDict({"train": dataset}), model=model())
    assert isinstance(scored, datasets.DatasetDict) and scored["train"]["score"] == [0.980581, 0.913812]


def test_a_file_in_python(here):
    (here / "a.csv").write_text("text1,text2,n\nhaus,hund,01\n")
    table = samesense.score("a.csv", model=model())
    assert table.to_pylist() == [{"text1": "haus", "text2": "hund", "n": "01", "score": 0.0}]
    result = samesense.score("a.csv", model=model(), output="b.csv")
    assert (result.rows, result.columns) == (1, ("score",))
    with pytest.raises(OutputError, match="overwrite"):
        samesense.score("a.csv", model=model(), output="b.csv")
    with pytest.raises(DataError, match="there is no such file"):
        samesense.score("none.csv", model=model())


def test_tables_of_any_form_keep_every_cell(here, monkeypatch):
    """Whatever a program writes: the rows that are read from the output are those of the input with a score behind."""
    monkeypatch.setattr(files, "BLOCK", 3)
    draw = random.Random(0)
    pieces = ["haus", "hund", "schnee", '"', ",", ";", "\t", "\n", " ", "é", "=1+1", "0,5", "01", "'", "|", "蚂蚁"]
    listen()
    scorer = model()
    for seed in range(120):
        draw.seed(seed)
        names = ["id", "text1", "text2", "note"]
        rows = []
        for _ in range(draw.randint(1, 9)):
            texts = [draw.choice(["haus", "hund schnee", ""]) + "".join(draw.choices(pieces, k=2)) for _ in range(2)]
            rows.append([f"0{draw.randint(0, 9)}", *texts, "".join(draw.choices(pieces, k=draw.randint(0, 4)))])
        suffix, mark = draw.choice([("csv", ","), ("csv", ";"), ("tsv", "\t"), ("csv", "|")])
        end = draw.choice(["\n", "\r\n"])
        stream = io.StringIO(newline="")
        csv.writer(
            stream, delimiter=mark, lineterminator=end, quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        ).writerows([names, *rows])
        (here / f"a.{suffix}").write_bytes(stream.getvalue().encode(draw.choice(["utf-8", "utf-8-sig"])))
        options = {"quoting": "csv", "delimiter": mark, "header": "yes", "decimal": "point"}
        try:
            samesense.score(f"a.{suffix}", model=scorer, output=f"b.{suffix}", overwrite=True, **options)
        except DataError as error:
            assert "no row has two texts" in str(error), seed
            continue
        with table_options(TableOptions(quoting="csv", delimiter=mark, header="yes")):
            read = [list(cells.values()) for _, cells in load_rows(f"b.{suffix}")]
        assert [row[:-1] for row in read] == rows, seed
        pairs = [(row[1], row[2]) for row in rows if row[1].strip() and row[2].strip()]
        scores = [float(row[-1]) for row in read if row[-1]]
        assert np.allclose(scores, scorer.scores(pairs), atol=1e-5), seed


def test_a_column_that_only_late_rows_have_is_carried(here):
    rows = [{"text1": "haus", "text2": "hund"} for _ in range(1_100)]
    rows.append({"text1": "haus", "text2": "haus", "late": "x"})
    (here / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert samesense.score("a.jsonl", model=model())["late"].to_pylist()[-1] == "x"
    samesense.score("a.jsonl", model=model(), output="b.csv")
    assert (here / "b.csv").read_text().splitlines()[-1] == "haus,haus,x,1.0"


def test_compressed_tables_urls_and_standard_input(here, capsys, monkeypatch):
    import gzip

    from fsspec import filesystem

    text = "\ufefftext1;text2;p\r\nhaus;hund;1,5\r\n".encode()
    (here / "a.csv.gz").write_bytes(gzip.compress(text))
    score(capsys, "a.csv.gz", "--output", "b.csv")
    assert (here / "b.csv").read_bytes().decode() == "\ufefftext1;text2;p;score\r\nhaus;hund;1,5;0,0\r\n"
    with filesystem("memory").open("/score/a.csv", "wb") as stream:
        stream.write(text)
    score(capsys, "memory://score/a.csv", "--output", "c.csv")
    assert (here / "c.csv").read_bytes() == (here / "b.csv").read_bytes()
    score(capsys, (here / "a.csv.gz").as_uri(), "--output", "d.csv")
    assert (here / "d.csv").read_bytes() == (here / "b.csv").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"text1\ttext2\nhaus\thaus\nhaus\n")))
    _, err = score(capsys, "-", code=2)
    assert "error: standard input, row 3: every row must have the 2 fields" in err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"text1\ttext2\nhaus\thaus\n")))
    assert score(capsys, "-")[0] == "text1\ttext2\tscore\nhaus\thaus\t1.0\n"


def test_commas_on_standard_input_are_told_from_a_table_of_one_column(here, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\nhaus,haus\n")))
    _, err = score(capsys, "-", code=2)
    assert "there is one, 'a,b'. Where it is two, name what stands between them: --delimiter comma" in err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\nhaus,haus\n")))
    assert score(capsys, "-", "--delimiter", "comma")[0].splitlines()[0] == "a,b,score"
