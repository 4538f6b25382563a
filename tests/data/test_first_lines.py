"""The first lines of a table decide its delimiter and whether it has a header."""

import pytest

import samesense
from samesense.data import load_rows
from samesense.data.kinds import detect_kind
from samesense.data.rows.blocks import blocks, rows_at
from samesense.data.rows.text import TableOptions, table_options
from samesense.data.sentences import all_texts
from samesense.errors import ConfigError, DataError


def put(path, text):
    path.write_bytes(text.encode())
    return path


NO_NAMES = [
    "red shoes\nblue hat\ncrimson sneakers\n",
    "apple\npear\nplum\n",
    "a cat\ta dog\na bird\ta fish\none horse\ttwo cows\n",
    "red shoes\tshoes\nblue hat\thats\ngreen hat\thats\nblack shoes\tshoes\nold hat\thats\nnew hat\thats\n",
    "1\tred shoes\n2\tblue hat\n",
    "红色的鞋\n蓝色的帽子\n白色的裤子\n",
]


@pytest.mark.parametrize("content", NO_NAMES)
def test_a_first_line_that_looks_like_its_cells_is_refused_with_both_ways_out(tmp_path, content):
    path = put(tmp_path / ("a.tsv" if "\t" in content else "a.csv"), content)
    with pytest.raises(DataError, match=r"the first line may be a row of data.*or `header` yes.*`header` no"):
        samesense.read(path)
    with table_options(TableOptions(header="no")):
        rows = [list(cells.values()) for _, cells in load_rows(path)]
    assert rows == [line.split("\t") for line in content.splitlines()]
    with table_options(TableOptions(header="yes")):
        assert len(list(load_rows(path))) == len(rows) - 1
        assert detect_kind(path)
    if "\t" not in content:
        name = content.splitlines()[0]
        assert len(samesense.read(path, columns=name)) == len(rows) - 1
        for read in (lambda: list(all_texts(path)), lambda: samesense.encode("default", str(path))):
            with pytest.raises(DataError, match="may be a row of data"):
                read()


@pytest.mark.parametrize(
    "content",
    [
        "text\nred shoes\nblue hat\n",
        "body\npear\nplum\n",
        "product_name\npear\nplum\n",
        "productName\npear\nplum\n",
        "Titel\nRote Schuhe\nBlauer Hut\n",
        "标题\n红色的鞋\n蓝色的帽子\n",
        "Artikel\nEin Hund rennt sehr schnell.\nDie Katze schläft auf dem Sofa.\n",
        "id,Artikel\n1,Hund\n2,Katze\n",
        "nobody\nA dog runs.\nA cat sleeps.\n",
    ],
)
def test_names_are_names(tmp_path, content):
    assert len(samesense.read(put(tmp_path / "a.csv", content))) == 2


def test_names_in_memory_and_in_parquet_are_names_for_certain(tmp_path):
    import pandas

    frame = pandas.DataFrame({"red shoes": ["blue hat", "green hat"]})
    assert len(samesense.read(frame)) == 2
    frame.to_parquet(tmp_path / "a.parquet")
    assert len(samesense.read(tmp_path / "a.parquet")) == 2


def test_a_line_break_in_the_first_row_hides_no_semicolons(tmp_path):
    path = put(tmp_path / "a.csv", 'Frage;Antwort;Bearbeiter;Gleich?\n"eins\nzwei";b;Ann;1\nc;"d;e";Bob;0\n')
    rows = list(load_rows(path))
    assert [list(cells.values()) for _, cells in rows] == [["eins\nzwei", "b", "Ann", "1"], ["c", "d;e", "Bob", "0"]]
    assert [number for number, _ in rows] == [2, 4]


@pytest.mark.parametrize("labels", [["1", "0"] * 3, ["ja", "nein"] * 3, ["0,5", "0,75"] * 3])
def test_the_fix_names_the_column_of_labels(tmp_path, labels):
    people = ["Ann", "Bob", "Ann", "Eve", "Bob", "Ann"]
    cells = enumerate(zip(people, labels, strict=True))
    rows = "".join(f'"Wie geht\n{i}";Wie läuft {i};{who};{label}\n' for i, (who, label) in cells)
    path = put(tmp_path / "a.csv", f"Text links;Text rechts;Bearbeiter;Gleich?\n{rows}")
    with pytest.raises(DataError, match=r"`columns` \"Text links,Text rechts,Gleich\?\""):
        samesense.data.read_pairs(path)


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_another_mark_that_the_rows_contradict_is_asked_for(tmp_path, mark):
    path = put(tmp_path / "a.csv", f"eins{mark}zwei\na\nb\n")
    with pytest.raises(DataError, match="Say what is between the fields: `delimiter`"):
        list(load_rows(path))
    with table_options(TableOptions(delimiter="comma")):
        assert len(list(load_rows(path))) == 2


def test_semicolons_beside_a_comma_in_a_name(tmp_path):
    path = put(tmp_path / "a.csv", "Frage, kurz;Antwort;Gleich?\na;b;1\nc, d;e, f;0\n")
    assert [list(cells.values()) for _, cells in load_rows(path)] == [["a", "b", "1"], ["c, d", "e, f", "0"]]


def test_options_say_what_is_between_fields(tmp_path):
    path = put(tmp_path / "a.tsv", "text1^text2^score\na^b\tc^1\n")
    for name in ("^",):
        with table_options(TableOptions(delimiter=name)):
            assert list(load_rows(path)) == [(2, {"text1": "a", "text2": "b\tc", "score": "1"})]
    for wrong in ("", "ab", '"', "\n"):
        with pytest.raises(ConfigError, match="`delimiter` is one character"):
            TableOptions(delimiter=wrong)
    for name, value in (
        ("quoting", "all"),
        ("header", "maybe"),
        ("encoding", "base64"),
        ("encoding", "unicode_escape"),
        ("encoding", "no-such"),
    ):
        with pytest.raises(ConfigError, match=f"`{name}` is "):
            TableOptions(**{name: value})


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.csv", {"header": "no"}),
        ("a.tsv", {"quoting": "none"}),
        ("a.tsv", {"delimiter": "comma", "quoting": "none"}),
        ("a.csv", {"delimiter": "semicolon"}),
        ("a.csv", {"encoding": "cp1251"}),
        ("a.txt", {"encoding": "utf-16"}),
        ("a.csv", {"encoding": "utf-16-le"}),
        ("a.csv", {"encoding": "gb18030", "header": "no"}),
    ],
)
def test_blocks_are_read_again_by_the_same_options_without_them(tmp_path, name, options, size):
    mark = {"comma": ",", "semicolon": ";"}.get(options.get("delimiter"), "\t" if name == "a.tsv" else ",")
    text = f"id{mark}text\n" + "".join(f"{i}{mark}{'дом' * i}{' ' * 3}x\n" for i in range(7))
    path = tmp_path / name
    mark_of_bytes = "\ufeff" if options.get("encoding") == "utf-16-le" else ""
    path.write_bytes((mark_of_bytes + text).encode(options.get("encoding", "utf-8")))
    with table_options(TableOptions(**options)):
        all_blocks = list(blocks(str(path), size))
        if name != "a.txt":
            assert [row for block in all_blocks for row in block.rows] == list(load_rows(path))
    for block in all_blocks:
        again = [cells for _, cells in rows_at(str(path), block.start, block.end, block.form)]
        assert again == [cells for _, cells in block.rows]
