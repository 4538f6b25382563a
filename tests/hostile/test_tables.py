"""Random tables, lists, numbers and encodings: read exactly as they were written, warned of, or refused."""

import csv
import json
import logging
import random
import re
import unicodedata
from importlib.util import find_spec

import numpy as np
import pytest

from samesense.data import load_rows
from samesense.data.columns.labels import parse_labels, refuse_words
from samesense.data.columns.pair_columns import Columns
from samesense.data.conventions.list_cells import ListCellError, texts_in
from samesense.data.conventions.yes_no import LANGUAGES
from samesense.data.rows.encodings import encoding_of
from samesense.data.rows.table_options import TableOptions, table_options
from samesense.data.rows.tsv import quote_fields
from samesense.errors import DataError
from tests.hostile.conftest import figures, rounds

PIECES = (
    *("a cat", "sleeps", '"', '""', "'", ",", ";", "|", "\t", "\n", "\r\n", " ", "[", "]", "['a', 'b']", '["c"]', "\\"),
    *("Yes.", "красный", "蚂蚁花呗", "é", "😡", "5", "59 %", '"no"', "it's", "sep=;", "#", "=1+1", "\u00a0", "(x)"),
    "\u2028",
)
NAMES = ("text1", "text2", "score", "id", "label", "Frage A", "Gleich?", "body", "sentence1", "note")


def text(draw, most=5):
    joined = "".join(draw.choices(PIECES, k=draw.randint(1, most)))
    return joined if joined.strip() and "\r" not in joined.replace("\r\n", "") else "plain"


def rows_of(path, options=None):
    """Return the rows of a table, ``None`` if it is refused, and whether its quotes caused a warning."""
    heard = []
    handler = logging.Handler()
    handler.emit = heard.append
    logger = logging.getLogger("samesense.data.rows.tsv")
    logger.addHandler(handler)
    try:
        with table_options(options):
            read = [list(cells.values()) for _, cells in load_rows(path)]
    except DataError:
        return None, False
    finally:
        logger.removeHandler(handler)
    return read, any(record.levelno >= logging.WARNING for record in heard)


def written(draw, path, names, rows):
    """Write a table as some program does; return the options that describe its format."""
    mark = "\t" if path.suffix == ".tsv" else draw.choice([",", ",", ";", "\t", "|"])
    quoting = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    program = draw.choice(["csv", "pandas", "polars"])
    end = draw.choice(["\n", "\r\n"])
    if program == "csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter=mark, quoting=quoting, lineterminator=end).writerows([names, *rows])
    elif program == "polars" and find_spec("polars"):
        import polars

        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        polars.DataFrame(columns).write_csv(path, separator=mark)
    else:
        import pandas

        frame = pandas.DataFrame(rows, columns=names)
        frame.to_csv(path, index=False, sep=mark, quoting=quoting, lineterminator=end)
    return TableOptions(quoting="csv", delimiter=mark, header="yes")


def test_what_programs_write_is_read_as_it_was_or_said_or_refused(tmp_path):
    draw = random.Random(0)
    outcomes = dict.fromkeys(("exact", "warned", "refused"), 0)
    for seed in range(rounds(short=150, long=5_000)):
        draw.seed(seed)
        names = draw.sample(NAMES, draw.randint(2, 4))
        rows = [[text(draw) for _ in names] for _ in range(draw.randint(1, 6))]
        path = tmp_path / f"{seed}{draw.choice(['.csv', '.tsv'])}"
        options = written(draw, path, names, rows)
        read, warned = rows_of(path)
        assert read is None or warned or read == rows, (seed, path.read_bytes())
        if read is None:
            outcomes["refused"] += 1
        else:
            outcomes["exact" if read == rows else "warned"] += 1
        assert rows_of(path, options) == (rows, False), seed  # the options settle it
        path.unlink()
    figures("tables", outcomes)
    assert outcomes["exact"] > 0.8 * sum(outcomes.values())


def field(draw):
    """A field of TSV without a tab or a line break: bare, in quotes, as CSV has it, or open."""
    inside = re.sub(r"[\t\r\n\u2028]+", " ", text(draw))
    doubled = inside.replace('"', '""')
    return draw.choice([inside, f'"{inside}"', f'"{doubled}"', f'"{inside}', f'{inside}"'])


def test_a_row_reads_the_same_alone_and_among_others(tmp_path):
    draw = random.Random(0)
    for seed in range(rounds(short=150, long=5_000)):
        draw.seed(seed)
        width = draw.randint(1, 3)
        rows = []
        for _ in range(draw.randint(1, 6)):
            cells = [
                draw.choice([text(draw), f'"{text(draw)}"', f'"{text(draw).replace(chr(34), chr(34) * 2)}"'])
                for _ in range(width)
            ]
            rows.append("\t".join(re.sub(r"[\t\r\n]+", " ", cell) for cell in cells))
        header = "\t".join(NAMES[:width])
        path = tmp_path / f"{seed}.tsv"
        path.write_text("\n".join([header, *rows]) + "\n")
        together, _ = rows_of(path)
        alone = []
        for row in rows:
            path.write_text(f"{header}\n{row}\n")
            single, _ = rows_of(path)
            alone += single or [None]
        if together is not None and None not in alone:
            assert together == alone, (seed, rows)
        path.unlink()


def test_rows_of_ours_come_back(tmp_path):
    draw = random.Random(0)
    for seed in range(rounds(short=150, long=5_000)):
        draw.seed(seed)
        rows = [
            [
                re.sub(r"[\t\r\n\u2028]+", " ", draw.choice(['"{}"', "{}", '"{}', '{}"']).format(text(draw)))
                for _ in range(2)
            ]
            for _ in range(4)
        ]
        path = tmp_path / f"{seed}.tsv"
        lines = ["text1\ttext2", *("\t".join(quote_fields(row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
        assert rows_of(path)[0] == rows, (seed, lines)
        path.unlink()


def test_lists_in_cells_are_read_as_they_were_or_refused():
    draw = random.Random(0)
    writers = {
        "python": str,
        "json": json.dumps,
        "json as it is": lambda texts: json.dumps(texts, ensure_ascii=False),
        "tuple": lambda texts: str(tuple(texts)),
        "spaced": lambda texts: f" [ {' , '.join(map(repr, texts))} , ] ",
        "numpy": lambda texts: str(np.array(texts, dtype=object)),
        "cut": lambda texts: str(texts)[: draw.randint(1, len(str(texts)))],
        "nested": lambda texts: str([texts]),
        "with none": lambda texts: str([*texts, None]),
        "set": lambda texts: str(set(texts)),
        "array": lambda texts: repr(np.array(texts, dtype=object)),
    }
    outcomes = dict.fromkeys(("read", "refused"), 0)
    for seed in range(rounds(short=2_000, long=100_000)):
        draw.seed(seed)
        texts = [text(draw) for _ in range(draw.randint(1, 4))]
        name = draw.choice(list(writers))
        cell = writers[name](texts)
        try:
            read = texts_in(cell)
        except ListCellError:
            outcomes["refused"] += 1
            assert name not in ("python", "json", "json as it is", "tuple", "spaced"), (seed, cell)
            continue
        outcomes["read"] += 1
        assert read == texts or (name == "cut" and cell.strip() in ("[", "['", '["', str(texts), cell)), (
            seed,
            cell,
            read,
        )
        assert name not in ("nested", "with none", "set", "array"), (seed, cell, read)
    figures("lists", outcomes)


FORMATS = {
    "plain": lambda number: f"{number:g}",
    "fixed": lambda number: f"{number:.2f}",
    "comma": lambda number: f"{number:.2f}".replace(".", ","),
    "percent": lambda number: f"{100 * number:.1f} %",
    "percent comma": lambda number: f"{100 * number:.1f}%".replace(".", ","),
    "thousands": lambda number: f"{number:,.0f}",
    "thousands and points": lambda number: f"{number:,.2f}",
    "swiss": lambda number: f"{number:,.0f}".replace(",", "'"),
    "thin": lambda number: f"{number:,.0f}".replace(",", "\u202f"),
    "german": lambda number: f"{number:,.2f}".translate(str.maketrans(",.", ".,")),
    "fifths": lambda number: f"{number:.0f}/5",
    "stars": lambda number: f"{number:.0f} stars",
    "out of": lambda number: f"{number:.0f} out of 5",
    "dollars": lambda number: f"${number:.2f}",
    "quoted": lambda number: f" {number:g} ",
}


def test_labels_of_any_form_are_the_numbers_that_were_meant_or_refused():
    draw = random.Random(0)
    columns = Columns("a", "b", "score")
    outcomes = dict.fromkeys(("read", "refused"), 0)
    for seed in range(rounds(short=2_000, long=100_000)):
        draw.seed(seed)
        most = draw.choice([1, 5, 100, 5_000, 5_000_000])
        names = draw.sample(list(FORMATS), draw.choice([1, 1, 2]))
        meant = [round(draw.uniform(0, most), 2) for _ in range(draw.randint(2, 12))]
        cells = [FORMATS[draw.choice(names)](number) for number in meant]
        try:
            parsed = parse_labels(cells, columns, "random")
            refuse_words(cells, parsed, columns, "random")
        except DataError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        for number, cell, value in zip(meant, cells, parsed.values, strict=True):
            assert value is None or value == pytest.approx(number, rel=1e-3, abs=0.51 if "." not in cell else 0.006), (
                seed,
                cells,
            )
    figures("labels", outcomes)
    assert min(outcomes.values()) > 0


def typed(draw, word):
    """A word as somebody types it."""
    form = draw.choice(["NFC", "NFD", "NFKC", "NFKD"])
    case = draw.choice([str, str.upper, str.lower, str.capitalize])
    return draw.choice(["{}", " {}", "{} "]).format(unicodedata.normalize(form, case(word)))


def test_words_for_yes_and_no_are_what_was_meant_or_refused():
    draw = random.Random(0)
    columns = Columns("a", "b", "label")
    outcomes = dict.fromkeys(("read", "bad row", "refused"), 0)
    strays = ["", "-", "vielleicht", "maybe", "1", "0", "x", "o", "ja", "no", "ne", "nai", "n", "是的", "?"]
    for seed in range(rounds(short=1_000, long=100_000)):
        draw.seed(seed)
        language = draw.choice(LANGUAGES)
        sides = {1.0: draw.choice(sorted(language.yes)), 0.0: draw.choice(sorted(language.no))}
        meant = [1.0, 0.0, *draw.choices([1.0, 0.0], k=draw.randint(0, 6))]
        cells = [typed(draw, sides[value]) for value in meant]
        stray = draw.choice([None, *strays])
        try:
            parsed = parse_labels([*cells, *([] if stray is None else [stray])], columns, "random")
        except DataError:
            outcomes["refused"] += 1
            assert {"o", "x"} & {cell.strip().casefold() for cell in [*cells, stray or ""]}, (seed, cells, stray)
            continue
        outcomes["bad row" if parsed.problems else "read"] += 1
        assert parsed.values[: len(meant)] == meant or stray in ("1", "0"), (seed, cells, stray)
        if stray in ("vielleicht", "maybe", "是的", "?"):
            assert len(meant) in parsed.problems, (seed, cells, stray)
    figures("words for yes and no", outcomes)
    assert min(outcomes.values()) > 0


SENTENCES = {
    "cp932": (
        "この商品はとても良いです。 明日は雨が降るでしょう。 猫が庭で遊んでいる。 "
        "会議は三時に始まります。 パスワードを忘れました。"
    ),
    "euc_jp": ("彼は新しい車を買った。 値段が高すぎると思う。 駅までどのくらいかかりますか。 明日は雨が降るでしょう。"),
    "cp1251": (
        "Как сбросить пароль? Собака бежит по улице. Завтра будет дождь. Сколько стоит билет? Где находится вокзал?"
    ),
    "koi8_r": (
        "Мне нравится этот фильм. Она читает книгу в саду. Новый телефон быстро разряжается. Как сбросить пароль?"
    ),
    "big5": ("我忘記了密碼。 明天會下雨嗎？ 一隻狗在公園裡跑。 請問車站在哪裡？ 這部電影非常好看。 價格太高了。"),
    "gb18030": ("我忘记了密码。 明天会下雨吗？ 一只狗在公园里跑。 请问车站在哪里？ 这部电影非常好看。 价格太高了。"),
    "cp949": "비밀번호를 잊어버렸어요. 내일은 비가 올까요? 개가 공원에서 뛰고 있다. 이 영화는 정말 재미있다.",
    "cp1250": (
        "Zażółć gęślą jaźń. Jak mogę zmienić hasło? Příliš žluťoučký kůň. Kolik stojí jízdenka? Źle działa mój telefon."
    ),
    "cp1252": (
        "J’ai oublié mon mot de passe. Il a été très déçu. Der Hund läuft über die Straße. „Gut“, sagte "
        "er. Ça coûte cher."
    ),
    "cp1253": "Ξέχασα τον κωδικό μου. Ο σκύλος τρέχει στο πάρκο. Αύριο θα βρέξει. Πού είναι ο σταθμός;",
    "cp1254": "Şifremi unuttum. Köpek parkta koşuyor. Yarın yağmur yağacak mı? Bu film çok güzel.",
    "iso8859_5": "Мне нравится этот фильм. Она читает книгу в саду. Сколько стоит билет? Где находится вокзал?",
    "cp1255": "שכחתי את הסיסמה שלי. הכלב רץ בפארק. מחר ירד גשם.",
    "cp874": "ฉันลืมรหัสผ่าน สุนัขวิ่งในสวน พรุ่งนี้ฝนจะตก",
}


def test_an_encoding_is_named_where_it_gives_the_text_and_else_not():
    draw = random.Random(0)
    counts = dict.fromkeys(SENTENCES, 0)
    count = rounds(short=20, long=300)
    for encoding, sentences in SENTENCES.items():
        clauses = re.split(r"(?<=[.。?？;]) ", sentences)
        for seed in range(count):
            draw.seed(seed)
            lines = draw.choice([1, 2, 5, 30, 200])
            content = "".join(
                f"{draw.choice(clauses)}\t{draw.choice(clauses)}\t{draw.randint(0, 5)}\n" for _ in range(lines)
            )
            content = draw.choice(["", "text1\ttext2\tscore\n", "an English line\n" * 5]) + content
            raw = content.encode(encoding)
            raw = raw[: draw.choice([len(raw), 2**16, max(1, len(raw) - 1)])]
            detected = encoding_of(raw)
            if detected:
                counts[encoding] += 1
                assert raw.decode(detected, "ignore") == raw.decode(encoding, "ignore"), (encoding, seed, detected)
    figures("encodings", counts)
    for encoding in ("cp932", "big5", "gb18030", "cp949", "cp1251"):
        assert counts[encoding] > count / 3, counts
    for encoding in ("cp1250", "cp1252", "cp1254"):
        assert counts[encoding] == 0, counts
