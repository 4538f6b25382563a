"""Every rule of reading in one table: what a file holds, and how it is read, warned of or refused.

Each rule stands in the section of docs/data.md that it names.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

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
