"""Every rule of reading in one table: what a file holds, and how it is read, warned of or refused.

Each rule stands in the section of docs/data.md that it names. Its file is read by every reader of rows.
"""

import csv
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import samesense
from samesense.data import load_rows
from samesense.data.rows.blocks import blocks, rows_at
from samesense.data.rows.table_options import OPTIONS, TableOptions, table_options
from samesense.data.sentences import all_texts
from samesense.errors import ConfigError, DataError

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


TRIPLET_NAMES = (
    "text,text_pos,text_neg",
    "text,text_positive,text_negative",
    "sentence,pos_sentence,neg_sentence",
    "anchor_text,positive_text,negative_text",
    "query_text,positive_passage,hard_negative_passage",
    "sentence,sentencePos,sentenceNeg",
    "Text,Text Pos,Text Neg",
    "text,positive,negative",
    "doc,doc_pos,doc_neg",
    "frage,frage_pos,frage_neg",
)
"""Headers of an anchor with a positive and a negative."""


class Rows(NamedTuple):
    """The cells of the rows, in order."""

    cells: list[list[str]]


class Labels(NamedTuple):
    """The labels of the pairs."""

    labels: list[float]


class Pairs(NamedTuple):
    """The pairs of texts."""

    pairs: list[tuple[str, str]]


class Positives(NamedTuple):
    """The positives of the anchors."""

    positives: list[list[str]]


class Texts(NamedTuple):
    """The texts of unlabelled data."""

    texts: list[str]


class Refused(NamedTuple):
    """A part of the message, as a regular expression."""

    message: str


class Rule(NamedTuple):
    """A rule: section of the page, name and content of a file, what is expected, options, and a warning."""

    section: str
    name: str
    content: str | bytes
    expected: Rows | Labels | Pairs | Positives | Texts | Refused
    options: Mapping[str, Any] = MappingProxyType({})
    warning: str = ""


HEADER = "text1\ttext2\tscore\n"
WITH_QUOTES = "is read with its quotes, as nothing in the row says that a program wrote them"
MAY_BE_DATA = r"the first line may be a row of data.*or `header` yes.*`header` no"
SEEMS_A_TEXT = "the first line of a table names its columns, and .* seems to be a text"
SAY_DELIMITER = "Say what is between the fields: `delimiter`"


def tsv(first: str, second: str = "b", label: str = "1") -> str:
    """Return a table of one row."""
    return f"{HEADER}{first}\t{second}\t{label}\n"


def scored(*labels: str, names: str = "sentence1;sentence2;score") -> str:
    """Return a table with these labels."""
    return f"{names}\n" + "".join(f"a dog {row};a cat {row};{label}\n" for row, label in enumerate(labels))


LINES = "".join(f"text {row}\n" for row in range(20))

QUOTES = [
    # in which a program is not proven: the quotes stay
    ('"Yes sir."', '"Yes sir."', WITH_QUOTES),
    ('"one""two""three"', '"one""two""three"', WITH_QUOTES),
    ('"He" said "no"', '"He" said "no"', ""),
    ('an inch is 1"', 'an inch is 1"', ""),
    ('"d ""e"" f', '"d ""e"" f', ""),
    ('"a whole text', '"a whole text', ""),
    ('""', '""', ""),
    ('"', '"', ""),
    ('"""', '"""', ""),
    ('""two""', '""two""', ""),
    # by a doubled quote beside a space or an end, or by a tab or a line break: the quotes go
    ('"one ""row"" alone"', 'one "row" alone', ""),
    ('"""Yes."""', '"Yes."', ""),
    ('"two\tcolumns"', "two\tcolumns", ""),
    ('"two\nlines"', "two\nlines", ""),
    ('"two\r\nlines, ""q"""', 'two\r\nlines, "q"', ""),
]

RULES = [
    # --- Quotes in TSV
    *(
        Rule("Quotes in TSV", "a.tsv", tsv(written), Rows([[read, "b", "1"]]), {}, warning)
        for written, read, warning in QUOTES
    ),
    Rule(
        "Quotes in TSV",
        "a.tsv",
        '"Yes sir."\t"No sir."\t1\n',
        Rows([['"Yes sir."', '"No sir."', "1"]]),
        {},
        WITH_QUOTES,
    ),
    Rule(
        "Quotes in TSV",
        "a.tsv",
        '"Yes sir."\t"No sir."\t1\nPlain one.\t"Said."\t3\n',
        Rows([['"Yes sir."', '"No sir."', "1"], ["Plain one.", '"Said."', "3"]]),
        {},
        WITH_QUOTES,
    ),
    Rule("Quotes in TSV", "a.tsv", '"text1"\t"text2"\t"score"\n"Yes sir."\tb\t1\n', Rows([["Yes sir.", "b", "1"]])),
    Rule("Quotes in TSV", "a.tsv", '"text1"\ttext2\tscore\n"Yes sir."\tb\t1\n', Rows([["Yes sir.", "b", "1"]])),
    Rule(
        "Quotes in TSV", "a.tsv", '"Frage A"\t"Frage B"\t"gleich"\n"Yes sir."\tb\t1\n', Rows([["Yes sir.", "b", "1"]])
    ),
    Rule(
        "Quotes in TSV",
        "a.tsv",
        'id\ttext\n1\t"two\nlines"\n2\t"open\n3\tc\n4\t"three\n\nlines ""q"""\n',
        Rows([["1", "two\nlines"], ["2", '"open'], ["3", "c"], ["4", 'three\n\nlines "q"']]),
    ),
    Rule(
        "Quotes in TSV",
        "a.tsv",
        f'{HEADER}"a ""b"""\tc\t1\n"d ""e"""\tf\n',
        Refused("row 3: every row must have the 3 fields"),
    ),
    # --- Options
    *(
        Rule(
            "Options",
            "a.tsv",
            '"Yes sir."\t"No sir."\t1\n',
            Rows([[f"{mark}Yes sir.{mark}", f"{mark}No sir.{mark}", "1"]]),
            {"quoting": quoting},
        )
        for quoting, mark in (("none", '"'), ("csv", ""))
    ),
    Rule("Options", "a.csv", 'text1,text2,score\n"He" said,"no,1\n', Refused("`quoting` none")),
    Rule(
        "Options",
        "a.csv",
        'text1,text2,score\n"He" said,"no,1\n',
        Rows([['"He" said', '"no', "1"]]),
        {"quoting": "none"},
    ),
    Rule("Options", "a.tsv", "text1^text2^score\na^b\tc^1\n", Rows([["a", "b\tc", "1"]]), {"delimiter": "^"}),
    *(Rule("Options", "a.csv", f"eins{mark}zwei\na\nb\n", Refused(SAY_DELIMITER)) for mark in ";|\t"),
    Rule("Options", "a.csv", "eins;zwei\na\nb\n", Rows([["a"], ["b"]]), {"delimiter": "comma"}),
    Rule(
        "Options",
        "a.csv",
        "Frage, kurz;Antwort;Gleich?\na;b;1\nc, d;e, f;0\n",
        Rows([["a", "b", "1"], ["c, d", "e, f", "0"]]),
    ),
    Rule(  # the line break in the first row hides no semicolons
        "Options",
        "a.csv",
        'Frage;Antwort;Bearbeiter;Gleich?\n"eins\nzwei";b;Ann;1\nc;"d;e";Bob;0\n',
        Rows([["eins\nzwei", "b", "Ann", "1"], ["c", "d;e", "Bob", "0"]]),
    ),
    Rule("Options", "a.csv", "sentence1;sentence2;score\na;b, c;4,2\nd;e;0\n", Labels([4.2, 0])),
    Rule("Options", "a.csv", "\ufeffsep=;\nsentence1;sentence2;score\na;b, c;4,2\nd;e;0\n", Labels([4.2, 0])),
    Rule("Options", "a.csv", "sentence1;sentence2;score;;\na;b, c;4,2;;\n;;;;\nd;e;0;;\n", Labels([4.2, 0])),
    Rule("Options", "a.csv", "sentence1\tsentence2\tscore\na\tb, c\t4.2\nd\te\t0\n", Labels([4.2, 0])),
    Rule("Options", "a.csv", "Sentence 1|Sentence-2|Similarity Score\na|b, c|4.2\nd|e|0\n", Labels([4.2, 0])),
    Rule("Options", "a.tsv", '"sentence1","sentence2","score"\n"a","b, c","4.2"\n"d","e","0"\n', Labels([4.2, 0])),
    Rule(
        "Options",
        "a.csv",
        'sentence1, sentence2, score\n"a", "b, c", 4.2\nd, e, 0\n',
        Pairs([("a", "b, c"), ("d", "e")]),
    ),
    Rule("Options", "a.csv", "sentence1,sentence2,score\na, b,1\nc,d,0\n", Pairs([("a", " b"), ("c", "d")])),
    *(
        Rule("Options", name, content, expected, options)
        for name, content in (
            ("a.csv", "red shoes\nblue hat\ncrimson sneakers\n"),
            ("a.csv", "apple\npear\nplum\n"),
            ("a.csv", "红色的鞋\n蓝色的帽子\n白色的裤子\n"),
            ("a.tsv", "a cat\ta dog\na bird\ta fish\none horse\ttwo cows\n"),
            (
                "a.tsv",
                "red shoes\tshoes\nblue hat\thats\ngreen hat\thats\nblack shoes\tshoes\nold hat\thats\nnew hat\thats\n",
            ),
            ("a.tsv", "1\tred shoes\n2\tblue hat\n"),
        )
        for expected, options in (
            (Refused(MAY_BE_DATA), {}),
            (Rows([line.split("\t") for line in content.splitlines()]), {"header": "no"}),
            (Rows([line.split("\t") for line in content.splitlines()][1:]), {"header": "yes"}),
        )
    ),
    *(
        Rule("Options", "a.csv", f"{text}\nA dog runs\n", Refused(SEEMS_A_TEXT))
        for text in ("A man eats.", "a man eats all of it", "a man eats fish", "什么时候？")
    ),
    *(
        Rule("Options", "a.csv", f"{name}\n{first}\n{second}\n", Texts([first, second]))
        for name, first, second in (
            ("text", "red shoes", "blue hat"),
            ("body", "pear", "plum"),
            ("product_name", "pear", "plum"),
            ("productName", "pear", "plum"),
            ("Titel", "Rote Schuhe", "Blauer Hut"),
            ("标题", "红色的鞋", "蓝色的帽子"),
            ("Artikel", "Ein Hund rennt sehr schnell.", "Die Katze schläft auf dem Sofa."),
            ("nobody", "A dog runs.", "A cat sleeps."),
        )
    ),
    Rule("Options", "a.csv", "id,Artikel\n1,Hund\n2,Katze\n", Texts(["Hund", "Katze"])),
    Rule("Options", "a.tsv", "a b\tc d\t1\ne f\tg h\t0\n", Labels([1, 0])),  # text, text, number
    *(
        Rule("Options", "a.csv", text.encode(encoding), expected, options)
        for text, encoding in (
            ("text1,text2,score\nкрасный дом,снег,1\nсиний дом,дождь,0\n", "cp1251"),
            ("text1,text2,score\nčtyři,pět,1\nšest,sedm,0\n", "cp1250"),
        )
        for expected, options in (
            (Refused("The bytes do not prove in which encoding it is"), {}),
            (Labels([1, 0]), {"encoding": encoding}),
        )
    ),
    Rule(
        "Options",
        "a.csv",
        b"text1,text2,score\na,b,1\n",
        Refused("this is UTF-8, and `encoding` is utf-16"),
        {"encoding": "utf-16"},
    ),
    *(
        Rule("Options", "a.txt", (text * 30).encode(encoding), Refused(f"It is {name}: give `encoding` {encoding}"))
        for text, encoding, name in (
            ("我们今天一起去公园散步，天气很好，大家都很高兴。\n", "gb18030", "GB18030"),
            ("我們今天一起去公園散步，天氣很好，大家都很高興。\n", "big5", "BIG5"),
            ("今日はとても天気がいいので、みんなで公園に行きました。\n", "cp932", "CP932"),
            (
                "Как сбросить пароль?\nГде находится вокзал?\nСобака бежит по улице.\nЗавтра будет дождь.\n",
                "cp1251",
                "CP1251",
            ),
            ("猫がいます。犬がいます。\n", "iso2022_jp", "ISO-2022-JP"),
        )
    ),
    Rule(
        "Options",
        "a.txt",
        "猫がいます。\n犬がいます。\n".encode("iso2022_jp"),
        Texts(["猫がいます。", "犬がいます。"]),
        {"encoding": "iso2022_jp"},
    ),
    # --- Lists in cells
    *(
        Rule("Lists in cells", "a.csv", f"sentences\n{LINES}{text}\n", Texts([*LINES.splitlines(), read]))
        for text, read in (
            ("[ ] buy milk", "[ ] buy milk"),
            ("[[Paris]] is nice", "[[Paris]] is nice"),
            ("\"['a']\"", "['a']"),
        )
    ),
    Rule(
        "Lists in cells",
        "a.csv",
        "query,pos\nreset password,\"['forgotten password', 'change login']\"\nx,['y']\n",
        Positives([["forgotten password", "change login"], ["y"]]),
    ),
    Rule("Lists in cells", "a.csv", 'query,pos\na,"[""b"", ""c""]"\nd,"[""e""]"\n', Positives([["b", "c"], ["e"]])),
    Rule("Lists in cells", "a.csv", "query,pos\na,['b' 'c']\nd,['e']\n", Refused("has texts without a comma between")),
    Rule(
        "Lists in cells",
        "a.csv",
        "query,pos\na,\"['b', 'c']\"\nd,e\n",
        Refused("is a list of texts, and that of row 3 is one text"),
    ),
    Rule(
        "Lists in cells",
        "a.csv",
        "query,positive\nfrance,[[Paris]] is the capital\ntodo,[ ] buy milk today\n",
        Positives([["[[Paris]] is the capital"], ["[ ] buy milk today"]]),
    ),
    Rule(
        "Lists in cells",
        "a.csv",
        "text1,text2,score\n\"['a', 'b']\",c,1\n['d'],e,0\n",
        Refused("is read as one text a row, and its cells are lists"),
    ),
    # --- Columns
    *(
        Rule(
            "Columns",
            "a.csv",
            f"{names}\na cat sleeps,the cat is asleep,it rains\nsnow falls,it is snowing,noon\n",
            Labels([1, 0, 1, 0]),
        )
        for names in TRIPLET_NAMES
    ),
    Rule(
        "Columns",
        "a.csv",
        "text,text_pos_1,text_pos_2,text_neg\na cat,b cat,c cat,d dog\ne,f,g,h\n",
        Positives([["b cat", "c cat"], ["f", "g"]]),
    ),
    *(
        Rule(
            "Columns",
            "a.csv",
            f"{names},label\na,b,c,1\nd,e,f,0\n",
            Refused("either a label or a negative, and this has both"),
        )
        for names in ("query,positive,negative", "anchor,positive,negative", "text,text_pos,text_neg")
    ),
    *(
        Rule(
            "Columns",
            "a.csv",
            f"query,document,{name}\na b,c d,2\na b,e f,0\n",
            expected,
            {"columns": columns} if columns else {},
        )
        for name in ("relevance", "rel", "is_correct", "rating", "Grade")
        for columns, expected in (
            ("", Refused("how well the texts of a row belong together")),
            ("query,document", Positives([["c d", "e f"]])),
        )
    ),
    Rule(
        "Columns",
        "a.csv",
        "query,document,rating\na b,c d,3.5\na b,e f,0\n",
        Labels([3.5, 0]),
        {"columns": "query,document,rating"},
    ),
    Rule("Columns", "a.csv", "query,document,relevance\na b,c d,1\nk l,e f,1\n", Positives([["c d"], ["e f"]])),
    *(
        Rule(
            "Columns",
            "a.csv",
            f"anchor,positive,negative\na b,c d,{first}\na b,c d,{second}\n",
            Refused("has the name of negatives, which are texts, and holds numbers"),
        )
        for first, second in (("59 %", "0 %"), ("0.1", "0.9"))
    ),
    *(
        Rule(
            "Columns",
            "a.csv",
            scored("0", "0.5", "1", names=f"sentence1;sentence2;{name}"),
            Refused("says how different two texts are.*Turn the values round"),
            {"columns": f"sentence1,sentence2,{name}"} if named else {},
        )
        for name in (
            *(
                "distance",
                "Distance",
                "dissimilarity",
                "dist",
                "edit_distance",
                "editDistance",
                "editdistance",
                "cosinedist",
            ),
            *("cosine distance", "CosineDissimilarity", "is_different", "not_duplicate", "Levenshtein", "dissimilar"),
            *("not_relevant", "irrelevant", "isIrrelevant", "incorrect", "not correct", "mismatch"),
            *("Abstand", "Unterschied", "距离"),
        )
        for named in (False, True)
    ),
    *(
        Rule("Columns", "a.csv", scored("0", "0.5", "1", names=f"sentence1;sentence2;{name}"), Labels([0, 0.5, 1]))
        for name in ("similarity", "score", "label", "related", "distant", "artdist")
    ),
    Rule("Columns", "a.csv", "sentence1,sentence2,score,distance\na,b,1,0\nc,d,0,1\n", Labels([1, 0])),
    *(
        Rule(
            "Columns",
            "a.csv",
            f"{names},remark\n" + "".join(f"{cells},long remark no {row}\n" for row, cells in enumerate(rows)),
            expected,
            {},
            "column 'remark' holds texts and is not read",
        )
        for names, rows, expected in (
            ("text1,text2,score", ["a,b,1", "c,d,0"] * 3, Labels([1, 0] * 3)),
            (
                "anchor,positive",
                [f"a {row},b {row}" for row in range(6)],
                Positives([[f"b {row}"] for row in range(6)]),
            ),
        )
    ),
    # --- Labels
    *(
        Rule("Labels", "a.csv", scored(*cells), Labels(labels), options)
        for options in ({}, {"columns": "sentence1,sentence2,score"})
        for cells, labels in (
            (["0 %", "59 %", "100%"], [0, 0.59, 1]),
            (["12,5 %", "7,25 %"], [0.125, 0.0725]),
            (["0.5%", "1.25％"], [0.005, 0.0125]),
            (["0,5", "0,25", "1"], [0.5, 0.25, 1]),
            (["0,125", "0,250", "1"], [0.125, 0.25, 1]),
            (["4.667", "3.333", "5"], [4.667, 3.333, 5]),
            (["0.500", "120"], [0.5, 120]),
            (["2,125", "0,500"], [2.125, 0.5]),
            (["ja", "nein", "JA"], [1, 0, 1]),
        )
    ),
    Rule(
        "Labels",
        "a.csv",
        scored("0 %", "59 %", "7 %", names="left;right;alike"),
        Labels([0, 0.59, 0.07]),
        {"columns": "left,right,alike"},
    ),
    *(
        Rule("Labels", "a.csv", scored(*cells), Refused(reason), options)
        for options in ({}, {"columns": "sentence1,sentence2,score"})
        for cells, reason in (
            (["1,000", "999"], "'1,000', which may be 1000 or 1"),
            (["1,000", "2,500"], "'1,000', which may be 1000 or 1"),
            (["1.000", "999"], "'1.000', which may be 1000 or 1"),
            (["1,000", "2.5"], "'1,000', which may be 1000 or 1"),
            (["512,05", "1,230"], "'1,230', which may be 1230 or 1.23"),
            (["1,000 %", "2 %"], "'1,000', which may be 1000 or 1"),
            (["1,000,000", "5"], "marks between thousands"),
            (["1.000,5", "5"], "marks between thousands"),
            (["1 000", "5"], "marks between thousands"),
            (["1'000", "5"], "marks between thousands"),
            (["59 %", "0.4"], "percentages beside plain numbers"),
            (["59 %", "4"], "percentages beside plain numbers"),
            (["3/5", "4/5"], "Write plain numbers, without a unit"),
            (["4 stars", "1 star"], "Write plain numbers, without a unit"),
            (["4 out of 5", "3 out of 5"], "Write plain numbers, without a unit"),
            (["★★★", "★"], "Write plain numbers, without a unit"),
            (["$5", "$4"], "Write plain numbers, without a unit"),
            (["5 ‰", "7 ‰"], "Write plain numbers, without a unit"),
            (["3/5", "4"], "rows cannot be used"),
            (["4 stars", "1"], "rows cannot be used"),
        )
    ),
    Rule("Labels", "a.csv", scored("0 %", "59 %"), Labels([0, 0.59]), {"label_range": (0, 1)}),
    Rule("Labels", "a.csv", scored("2,588", "3,8", "5"), Refused("give their scale, such as `label_range` 0 5")),
    Rule("Labels", "a.csv", scored("2,588", "3,8", "5"), Labels([2.588, 3.8, 5]), {"label_range": (0, 5)}),
    Rule("Labels", "a.csv", scored("-0,5", "-1,000", "1,000"), Labels([-0.5, -1, 1]), {"label_range": (-1, 1)}),
    Rule("Labels", "a.csv", scored("2,588", "3,8"), Refused("may be 2588 or 2.588"), {"label_range": (0, 5000)}),
    Rule("Labels", "a.csv", scored("0 %", "59 %"), Refused("`label_range` goes further"), {"label_range": (0, 100)}),
    Rule("Labels", "a.tsv", "a dog\ta cat\t59 %\na dog 1\ta cat 1\t100 %\n", Labels([0.59, 1])),
]


def write(folder: Path, rule: Rule) -> Path:
    path = folder / rule.name
    path.write_bytes(rule.content.encode() if isinstance(rule.content, str) else rule.content)
    return path


def reading(rule: Rule) -> TableOptions:
    return TableOptions(**{name: value for name, value in rule.options.items() if name in OPTIONS})


def identify(rule: Rule) -> str:
    return f"{rule.section}: {str(rule.content)[:40]!r} {rule.options or ''}"


@pytest.mark.parametrize("rule", RULES, ids=identify)
def test_every_rule(tmp_path, rule, caplog):
    path = write(tmp_path, rule)
    match rule.expected:
        case Rows(cells):
            with table_options(reading(rule)):
                assert [list(row.values()) for _, row in load_rows(path)] == cells
        case Refused(message):
            with pytest.raises(DataError, match=message):
                samesense.read(path, **rule.options)
        case Labels(labels):
            assert samesense.read(path, **rule.options).labels == pytest.approx(labels)
        case Pairs(pairs):
            assert samesense.read(path, **rule.options).pairs() == pairs
        case Positives(positives):
            assert samesense.read(path, **rule.options).positives == positives
        case Texts(texts):
            assert list(samesense.read(path, **rule.options).texts) == texts
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == bool(rule.warning)
    assert rule.warning in "".join(warnings)


@pytest.mark.parametrize("rule", [rule for rule in RULES if isinstance(rule.expected, Rows)], ids=identify)
@pytest.mark.parametrize("size", [1, 2])
def test_blocks_of_a_file_are_read_by_the_same_rules(tmp_path, rule, size):
    path = str(write(tmp_path, rule))
    with table_options(reading(rule)):
        file_blocks = list(blocks(path, size))
        expected = [cells for _, cells in load_rows(path)]
    assert [cells for block in file_blocks for _, cells in block.rows] == expected
    # A block is read again without the options, as another process does.
    assert [
        cells for block in file_blocks for _, cells in rows_at(path, block.start, block.end, block.form)
    ] == expected


@pytest.mark.parametrize(("written", "read", "warning"), QUOTES)
@pytest.mark.parametrize("other_texts", [[], ['"Yes sir."'], ['"a ""b"" c"'], ["plain"], ['"open', 'x"y']])
@pytest.mark.parametrize("column", [0, 1])
def test_a_row_reads_the_same_beside_any_other_rows(tmp_path, written, read, warning, other_texts, column):
    path = tmp_path / "a.tsv"
    for first in (True, False):
        texts = [written, *other_texts] if first else [*other_texts, written]
        rows = [(text, "b") if column == 0 else ("b", text) for text in texts]
        path.write_text(HEADER + "".join(f"{a}\t{b}\t{number}\n" for number, (a, b) in enumerate(rows)))
        texts_read = [cells[f"text{column + 1}"] for _, cells in load_rows(path)]
        assert texts_read[0 if first else -1] == read


def test_every_section_of_the_page_with_rules_has_rules_here():
    headings = set(re.findall(r"^##+ (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {rule.section for rule in RULES} <= headings
    assert {rule.section for rule in RULES} == {"Options", "Quotes in TSV", "Lists in cells", "Columns", "Labels"}


PROGRAM_ROWS = [
    ["1", 'He said "no" to it', "He, too, refused.", "4"],
    ["2", "A dog sleeps.", 'It is "asleep"', "3"],
    ["3", "Two\tcolumns", "Two\nlines", "0"],
    ["4", "", "plain", "1"],
]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_a_program_has_quoted_is_read_as_it_was_and_that_is_logged_once(tmp_path, quoting, end, caplog):
    caplog.set_level(logging.INFO, "samesense")
    path = tmp_path / "a.tsv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", quoting=quoting, lineterminator=end)
        writer.writerows([["id", "sentence1", "sentence2", "score"], *PROGRAM_ROWS])
    for _ in range(2):
        rows = list(load_rows(path))
        assert [list(cells.values()) for _, cells in rows] == PROGRAM_ROWS
        assert [number for number, _ in rows] == [2, 3, 4, 6]
    (record,) = caplog.records
    assert record.message == (
        f"{path}: fields stand in double quotes, with quotes in them doubled, which are taken off; to keep all quotes: "
        "`quoting` none"
    )


def test_the_warning_of_quotes_names_the_row_and_both_options(tmp_path, caplog):
    path = tmp_path / "a.tsv"
    path.write_text('"Yes sir."\t"No sir."\t1\n')
    for _ in range(2):
        list(load_rows(path))
    (record,) = caplog.records
    assert record.message == (
        f'{path}, row 1: "Yes sir." is read with its quotes, as nothing in the row says that a program wrote them; '
        "other rows are read alike. Where a program wrote them: `quoting` csv; where they belong to the texts: "
        "`quoting` none."
    )


@pytest.mark.parametrize("labels", [["1", "0"] * 3, ["ja", "nein"] * 3, ["0,5", "0,75"] * 3])
def test_the_fix_names_the_column_of_labels(tmp_path, labels):
    people = ["Ann", "Bob", "Ann", "Eve", "Bob", "Ann"]
    cells = enumerate(zip(people, labels, strict=True))
    rows = "".join(f'"Wie geht\n{row}";Wie läuft {row};{who};{label}\n' for row, (who, label) in cells)
    (tmp_path / "a.csv").write_text(f"Text links;Text rechts;Bearbeiter;Gleich?\n{rows}")
    with pytest.raises(DataError, match=r"`columns` \"Text links,Text rechts,Gleich\?\""):
        samesense.data.read_pairs(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("delimiter", value) for value in ("", "ab", '"', "\n")),
        *(("encoding", value) for value in ("base64", "unicode_escape", "no-such")),
        ("quoting", "all"),
        ("header", "maybe"),
    ],
)
def test_values_of_options_are_checked(name, value):
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
def test_blocks_in_other_encodings_and_dialects(tmp_path, name, options, size):
    mark = {"comma": ",", "semicolon": ";"}.get(options.get("delimiter"), "\t" if name == "a.tsv" else ",")
    text = f"id{mark}text\n" + "".join(f"{row}{mark}{'дом' * row}{' ' * 3}x\n" for row in range(7))
    path = tmp_path / name
    byte_order_mark = "\ufeff" if options.get("encoding") == "utf-16-le" else ""
    path.write_bytes((byte_order_mark + text).encode(options.get("encoding", "utf-8")))
    with table_options(TableOptions(**options)):
        file_blocks = list(blocks(str(path), size))
        if name != "a.txt":
            assert [row for block in file_blocks for row in block.rows] == list(load_rows(path))
    for block in file_blocks:
        again = [cells for _, cells in rows_at(str(path), block.start, block.end, block.form)]
        assert again == [cells for _, cells in block.rows]


@pytest.mark.parametrize("cells", [["59 %", "0 %", "100 %"], ["0,5", "0,25", "1"], ["0.5", "0.25", "1"]])
def test_labels_in_memory_follow_the_rules_of_files(cells):
    data = samesense.read([(f"a dog {row}", f"a cat {row}", cell) for row, cell in enumerate(cells)])
    assert (len(data), max(data.labels)) == (3, 1)


@pytest.mark.parametrize("cells", [["3/5", "4/5"], ["4 stars", "1 star"], ["$5", "$4"]])
def test_units_in_memory_are_refused_and_never_texts(cells):
    with pytest.raises(DataError, match="without a unit"):
        samesense.read([("a", "b", cells[0]), ("c", "d", cells[1])])


def test_arrays_in_cells_are_lists():
    cells = [np.array(["x", "y"], dtype=object), np.array(["z"], dtype=object)]
    assert samesense.read({"query": ["a", "b"], "pos": cells}).positives == [["x", "y"], ["z"]]


@pytest.mark.parametrize(
    "read",
    [
        samesense.read,
        samesense.doctor,
        samesense.data.read_pairs,
        lambda path: list(all_texts(path)),
        lambda path: samesense.encode("default", path),
        lambda path: samesense.dedup(path),
    ],
)
@pytest.mark.parametrize("content", ["red shoes\nblue hat\ncrimson sneakers\n", "text,text\na,b\n"])
def test_every_reader_refuses_alike(tmp_path, read, content):
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=r"may be a row of data|column names must differ|two text columns could not"):
        read(str(path))


@pytest.mark.parametrize("read", [samesense.doctor, samesense.data.read_pairs])
def test_distances_are_refused_by_every_reader_of_pairs(tmp_path, read):
    path = tmp_path / "a.csv"
    path.write_text(scored("0", "0.5", "1", names="sentence1;sentence2;distance"))
    with pytest.raises(DataError, match="says how different two texts are"):
        read(path)


def test_names_in_memory_and_in_parquet_are_names_for_certain(tmp_path):
    import pandas

    frame = pandas.DataFrame({"red shoes": ["blue hat", "green hat"]})
    assert len(samesense.read(frame)) == 2
    frame.to_parquet(tmp_path / "a.parquet")
    assert len(samesense.read(tmp_path / "a.parquet")) == 2


def test_the_doctor_warns_of_labels_that_fall_as_texts_share_more_words():
    words = [f"w{i}" for i in range(10)]
    rows = [(" ".join(words), " ".join([*words[:k], *(f"x{i}{k}" for i in range(10 - k))]), k) for k in range(10)] * 3
    straight = samesense.doctor([(a, b, k / 9) for a, b, k in rows])
    turned = samesense.doctor([(a, b, 1 - k / 9) for a, b, k in rows])
    assert not any("distances" in warning for warning in straight.warnings)
    assert any("labels fall as two texts share more words (Spearman -1.00)" in warning for warning in turned.warnings)
