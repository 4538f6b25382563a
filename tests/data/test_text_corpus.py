"""Text files in the forms in which others publish them: read as lines, read with a warning, or refused with the fix.

The samples are made up; their forms are those of files in public repositories.
"""

import gzip

import pytest

import samesense
from samesense.data.kinds import detect_kind
from samesense.data.sentences import all_texts
from samesense.errors import DataError
from tests.messages import listen

TEXTS = [
    "The boat left the harbour at dawn.",
    "Nobody had asked for a second map.",
    "Two cooks were peeling potatoes.",
    "He keeps his coins in a jar.",
    "The lamp on the stairs is broken.",
    "She sings in the choir on Fridays.",
    "Our neighbours grow pears.",
    "Snow fell on the roof all night.",
    "The bus to the lake was late.",
    "They painted the fence green.",
]
CHINESE = ["船在清晨离开了港口。", "没有人要第二张地图。", "两个厨师在削土豆。", "他把硬币放在罐子里。"]
WORDS = [text.rstrip(".").lower().split() for text in TEXTS]


def lines(form, texts=TEXTS, **cells):
    """Return a line for each text; a cell of ``cells`` is one of its values in turn."""
    rows = []
    for number, text in enumerate(texts, 1):
        values = {name: listed[number % len(listed)] for name, listed in cells.items()}
        rows.append(form.format(text, number=number, other=texts[-number], **values))
    return "\n".join(rows) + "\n"


TEXTS_ALONE = {
    "sentences": lines("{}"),
    "Chinese": lines("{}", CHINESE),
    "Chinese verse with ASCII commas": "船出港口,人上高山\n雪满屋顶,灯照楼梯\n春来江水,秋去天涯\n",
    "tokens": "The boat , they said , left .\nNobody asked , not even he .\nTwo cooks peeled , sang , and laughed .\n"
    * 3,
    "quotation marks of the Penn Treebank": lines("`` {} '' he said ."),
    "indented lines": lines("\t{}"),
    "lines indented further and further": "The boats\n" + lines("\t{}") + lines("\t\t\t{}") * 3,
    "names before indented lines": "boat\t\t\tA small ship.\n" + lines("\t\t\t{}"),
    "a tab after each line": lines("{}\t"),
    "verse with commas at its ends": "Roses are red,\nViolets are blue,\nSugar is sweet,\nAnd so are you,\n",
    "the start of a long tuple": lines("({}", texts=["'ab', 'cd', " * 20_000 + "x"] * 2),
    "dates": lines("2024-01-{number:02d} {}"),
    "dates of Germany": lines("Am {number}. März 2024 um 10:{number:02d} Uhr: {}"),
    "times": lines("{number:02d}:30 {}"),
    "prices of Germany": lines("Das Brot kostet heute {number},50 Euro"),
    "thousands": lines("About {number},000 people live there"),
    "addresses of the web": lines("https://example.org/a/{number}?q=1&r=2"),
    "a text before an address": lines("{} http://example.org/{number}"),
    "emoticons": lines("{} {face}", face=[":)", ":-(", "=D", ":'(", "<3"]),
    "mentions": lines("RT @user{number}: {} #{tag}", tag=["boat", "map"]),
    "dialogue with dashes": lines("— {}") + lines("- {}"),
    "dialogue in turn": lines("{who}: {}", who=["Anna", "Ben"]),
    "quotations": lines('"{}" he said.'),
    "bullet points": lines("* {}"),
    "bullet points with two spaces": lines("•  {}"),
    "numbered": lines("{number}. {}"),
    "numbered with two spaces": lines("{number}.  {}"),
    "numbered in parentheses": lines("({number}) {}"),
    "headings": "# Boats\n\nThe boat left.\n\n## Maps\n\nNobody asked.\n\n== Cooks ==\n\nTwo cooks.\n",
    "headings with equals signs": "Boats\n=====\nThe boat left.\n\nMaps\n----\nNobody asked.\n",
    "two spaces after a sentence": lines("{}  So it was."),
    "two spaces between words": lines("{}").replace(" ", "  "),
    "paragraphs that a tab indents": lines("\t{}"),
    "captions that count things": lines("{count} {}", count=["2", "3", "1"]),
    "captions that begin alike": lines("A man. {}"),
    "ingredients": "2 cups of flour\n1 egg\n3 pears\n1 spoon of salt\n2 lemons\n1 cup of milk\n2 eggs\n",
    "towns": "Ulm, Germany\nLyon, France\nParis, France\nBonn, Germany\nKiel, Germany\nNice, France\n",
    "answers": "Yes, please\nNo, thanks\nWell, perhaps\nYes, of course\n",
    "words": "\n".join(word for words in WORDS for word in words),
    "kinds of things": "red chair\nblue chair\noak table\nold table\nnew chair\nsmall table\n",
    "plans": "We take plan A\nThey prefer plan B\nNobody likes plan C\n",
    "scores of football": "Arsenal 0 Chelsea 2\nEverton 0 Leeds 1\nFulham 0 Hull 3\n",
    "capitals": "WE LEFT\nNOBODY CAME\nCOOKS PEEL\nHE PAYS\nTHE LAMP BROKE\nSHE SINGS\nSNOW FELL\n",
    "HTML entities": "The caf&eacute; is open.\nIt&rsquo;s late.\nTwo caf&eacute;s closed.\n",
    "code": "int boat = 1;\nreturn boat;\nboat += 2;\n",
    "formulas": "x is 3\n999 - 999 = 999 * 999 .\nif 999 > 3 then it is so .\nthere is something .\n",
    "abbreviations": lines("{} cf. p. {number}"),
    "markdown in bold": lines("**Term {number}** {}"),
    "legal references": lines("§ {number} Abs. 2 StGB: {}"),
    "two languages": lines("{} / {other}"),
    "text with a dash": lines("{} -- {other}"),
    "text with an ellipsis": lines("{} ... {other}"),
    "text in parentheses": lines("('{}' she said)"),
    "comments of a file": lines("//{}"),
}


@pytest.mark.parametrize("form", TEXTS_ALONE)
def test_ordinary_texts_are_read_line_by_line_without_a_word(tmp_path, form):
    path = tmp_path / "texts.txt"
    path.write_text(TEXTS_ALONE[form], encoding="utf-8")
    messages = listen()
    texts = [text for text in all_texts(path) if text]
    assert texts == [line for line in TEXTS_ALONE[form].splitlines() if line]
    assert messages == []


WARNED = {
    "a word after a semicolon": (lines("{};{mood}", mood=["joy", "fear"]), "separated by ';'"),
    "an empty cell after a semicolon": (
        "The boat left;sad;Ann\nThe lamp broke;glad;Ben\nSnow fell;sad;\nThe bus came;glad;Ann\n",
        "separated by ';'",
    ),
    "a number after a comma": (lines("{},{label}", label="01"), "separated by ','"),
    "a label after commas": (lines("{}, {other},{label}", label=["good", "bad"]), "end in one of few words"),
    "a label after a comma with spaces": (
        lines("{} , {label}", label=["NOT", "OFF"], texts=[t.replace(" the", ", the") for t in TEXTS]),
        "end in one of few words, such as 'NOT' or 'OFF'",
    ),
    "a label before a comma": (lines("{label},{}, {other}", label=["spam", "ham"]), "begin in one of few words"),
    "classes of TREC": (lines("{label} {}", label=["LOC:city", "NUM:date", "HUM:ind"]), "begin in one of few words"),
    "scores before texts": (
        lines("{score}  {}", score=["2.60", "-0.5", "4.75", "1.125"]),
        "they begin with a number with decimals",
    ),
    "digits of sentiment": (lines("{label} {}", label=["0", "1"]), "such as '0' or '1', as texts beside their labels"),
    "signs of sentiment": (lines("{label} {}", label=["-1", "1"]), "begin in one of few words"),
    "digits at the end": (lines("{} {label}", label=["0", "1"]), "end in one of few words"),
    "named entities": (
        "\n\n".join("\n".join(f"{word} {'B-LOC' if word == 'lake' else 'O'}" for word in words) for words in WORDS),
        "end in one of few words, such as 'B-LOC' or 'O'",
    ),
    "identifiers of speech": (lines("X{number:03d}|{}|{other}"), "3 fields each, separated by '|'"),
    "sentences of Tatoeba": (lines("{number},eng,{}"), "3 fields each, separated by ','"),
    "sentences of Tatoeba in Chinese": (lines("{number},cmn,{}", CHINESE), "3 fields each, separated by ','"),
    "pairs of STS in Chinese": (lines("{number}||{}||{other}||5", CHINESE), "4 fields each, separated by '||'"),
    "films": (lines("{number}::{}::Drama"), "3 fields each, separated by '::'"),
    "lines of films": (lines("L{number} +++$+++ u0 +++$+++ ANNA +++$+++ {}"), "4 fields each, separated by '+++$+++'"),
    "aspects": (lines("{}####[[1, 2]]"), "2 fields each, separated by '####'"),
    "arrows": (lines("{} => {other}"), "2 fields each, separated by '=>'"),
    "aligned columns": (
        lines("{number:<5d}  {:<40}  {other}", [t.rstrip(".") for t in TEXTS]),
        "3 fields each, separated by several spaces",
    ),
    "word vectors": ("boat 0.41 -0.2 0.7\nmap 0.1 0.22 -1\nlamp 1 2e-3 0.4\n", "its lines are mostly numbers"),
    "features": ("1 0.5 2 7\n0 0.25 1 9\n1 0.125 3 3\n", "its lines are mostly numbers"),
    "scores": ("4.8\n0\n2.25\n", "its lines are numbers"),
    "quoted": (lines('"{}"'), "they are in double quotes"),
    "quoted with commas": (lines('"{}",'), "they are in double quotes"),
    "a log": (lines("2024-01-02 10:00:{number:02d},123 INFO {}"), "they begin with a date and a time"),
    "a chat": (lines("[12/03/24, 10:15:{number:02d}] Anna: {}"), "they begin with a date and a time"),
    "records": (lines("id: {number}\ntext: {}\nlabel: news\n"), "begin with the keys id, text, label in turn"),
    "questions and answers": (lines("Q: {}?\nA: {other}\n"), "the mark of a question or an answer"),
    "numbered questions": (lines("Question {number}: {}?\nAnswer: {other}"), "the mark of a question or an answer"),
    "settings": ("[boat]\nname = Ann\nlength = 4\n\n[map]\nname = Old\n", "have a key and a value each"),
    "properties": (lines("text.{number}={}"), "have a key and a value each"),
}


@pytest.mark.parametrize("form", WARNED)
def test_lines_that_may_be_another_form_are_texts_with_one_warning(tmp_path, form):
    content, doubt = WARNED[form]
    path = tmp_path / "texts.txt"
    path.write_text(content, encoding="utf-8")
    messages = listen()
    assert [text for text in all_texts(path) if text] == [line for line in content.splitlines() if line]
    list(all_texts(path))
    assert len(messages) == 1
    assert messages[0].startswith(f"{path}: each line is read as one text, and ")
    assert doubt in messages[0]


REFUSED = {
    "numbers before tabs": ("a.txt", lines("{number}\t{}"), "as many tabs each (1)"),
    "labels after tabs": ("a.txt", lines("{}\tnews"), "as many tabs each (1)"),
    "tabs before empty last cells": (
        "a.txt",
        "x one\ty two\tz three\n" * 8 + "x one\ty two\t\n" * 4,
        "many tabs each (2)",
    ),
    "tabs after empty first cells": ("a.txt", "1\ty two\n" * 8 + "\ty two\n" * 4, "many tabs each (1)"),
    "MRPC": ("a.txt", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + lines("1\t7\t8\t{}\t{other}"), "tabs each (4)"),
    "STS": ("STS.input.txt", lines("{}\t{other}"), "as many tabs each (1)"),
    "PPDB": ("ppdb", lines("[NN] ||| {} ||| {other} ||| F=1 ||| 0-0 ||| Equivalence"), "marks ||| each (5)"),
    "dependencies": (
        "a.txt",
        "".join(
            f"# sent_id = {at}\n# text = {TEXTS[at]}\n"
            + "".join(f"{n}\t{word}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n" for n, word in enumerate(words, 1))
            + "\n"
            for at, words in enumerate(WORDS)
        ),
        "as many tabs each (9)",
    ),
    "objects with spaces": ("a.txt", lines('{{ "text": "{}" }}'), "each line is a JSON object"),
    "objects of JavaScript": ("a.txt", lines('{{"text": "{}"}},'), "its lines are rows in the source of a program"),
    "objects of Python": (
        "a.txt",
        lines("{{'text': '{}', 'label': 1}}"),
        "its lines are rows in the source of a program",
    ),
    "tuples of Python": ("a.txt", lines("('{}', '{other}', 0.5),"), "its lines are rows in the source of a program"),
    "JSON over several lines": (
        "a.txt",
        '{\n  "boat": "A text.",\n  "map": "Another."\n}\n',
        "JSON over several lines",
    ),
    "fastText": ("a.txt", lines("__label__{label} {}", label=["a", "b"]), "as fastText reads them"),
    "a table of Markdown": ("a.txt", "| a | b |\n|---|---|\n" + lines("| {} | {other} |"), "a table drawn with lines"),
    "subtitles": (
        "a.txt",
        lines("{number}\n00:00:0{second},000 --> 00:00:0{second},900\n{}\n", second="123"),
        "subtitles with their times",
    ),
    "XML": ("a.txt", "<pairs>\n" + lines("<pair>\n<s>{}</s>\n<s>{other}</s>\n</pair>") + "</pairs>\n", "are XML"),
    "BibTeX": ("a.bib", "@article{boat,\n  title = {A boat},\n}\n", "a name in .bib is that of BibTeX"),
    "LaTeX": ("a.tex", "\\section{Boats}\nThe boat left.\n", "a name in .tex is that of LaTeX"),
    "BibTeX in a text": ("a.txt", "@article{boat,\n  title = {A boat},\n}\n", "references with their fields"),
    "RIS": ("a.txt", lines("TY  - JOUR\nTI  - {}\nER  - \n"), "references with their fields"),
    "PubMed": ("a.txt", lines("PMID- 1{number}\nTI  - {}\n      and more.\n"), "references with their fields"),
    "subtitles of SubStation": (
        "a.txt",
        lines("Dialogue: 0,0:00:01.00,0:00:03.50,Default,,0,0,0,,{}"),
        "subtitles with their times",
    ),
    "subtitles by their ending": ("a.ass", "[Script Info]\nTitle: Boats\n", "a name in .ass is that of subtitles"),
    "subtitles of YouTube": (
        "a.txt",
        lines("0:00:0{number}.000,0:00:0{number}.900\n{}\n"),
        "subtitles with their times",
    ),
    "words of a song": ("a.txt", lines("[00:1{number}.20]{}"), "subtitles with their times"),
    "subtitles by frames": ("a.txt", lines("{{1{number}}}{{2{number}}}{}"), "subtitles with their times"),
    "a workbook by its name": ("a.xlsx", lines("{}"), "a name in .xlsx is that of a workbook"),
    "translations": ("a.po", 'msgid "boat"\nmsgstr "Boot"\n', "a name in .po is that of translations of gettext"),
    "settings": ("a.toml", "[boat]\nname = 'Ann'\n", "a name in .toml is that of settings"),
    "carriage returns": ("a.txt", lines("{}").replace("\n", "\r"), "tr '\\r' '\\n'"),
    "a NUL": ("a.txt", "The boat\0 left.\nNobody asked.\n", "tr -d '\\000'"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_lines_of_another_form_are_refused_with_the_fix(tmp_path, form):
    name, content, message = REFUSED[form]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    with pytest.raises(DataError) as caught:
        list(all_texts(path))
    assert message in str(caught.value)


def test_the_ending_of_a_compressed_file_is_the_one_before_that_of_the_compression(tmp_path):
    (tmp_path / "a.toml.gz").write_bytes(gzip.compress(b"[boat]\nname = 'Ann'\n"))
    with pytest.raises(DataError, match=r"a name in \.toml is that of settings"):
        list(all_texts(tmp_path / "a.toml.gz"))


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("utf-16", "give `encoding` utf_16"),
        ("utf-16-le", "give `encoding` utf_16_le"),
        ("utf-16-be", "give `encoding` utf_16_be"),
        ("cp1252", "name the one that it was written in by `encoding`, such as cp1252"),
    ],
)
def test_other_encodings_are_asked_for_and_then_read(tmp_path, encoding, message):
    path = tmp_path / "a.txt"
    texts = [f"{text} Schön!" for text in TEXTS]
    path.write_bytes("\r\n".join(texts).encode(encoding))
    with pytest.raises(DataError) as caught:
        samesense.read(path)
    assert message in str(caught.value)
    assert samesense.read(path, encoding=encoding.replace("-", "_")).texts == texts


def test_a_byte_order_mark_is_no_part_of_the_first_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + lines("{}").encode())
    assert samesense.read(path).texts == TEXTS


PAIRS = {
    "MRPC": (
        "a.tsv",
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + lines("{label}\t7\t8\t{}\t{other}", label="01"),
        {"columns": "#1 String,#2 String,Quality"},
    ),
    "SICK": (
        "a.tsv",
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        + lines("{number}\t{}\t{other}\t{number}.5\tNEUTRAL"),
        {},
    ),
    "QQP": (
        "a.csv",
        '"id","qid1","qid2","question1","question2","is_duplicate"\n'
        + lines('"{number}","1","2","{}","{other}","{label}"', label="01"),
        {},
    ),
    "PAWS": ("a.tsv", "id\tsentence1\tsentence2\tlabel\n" + lines("{number}\t{}\t{other}\t{label}", label="01"), {}),
    "LCQMC": ("a.tsv", lines("{}\t{other}\t{label}", CHINESE, label="01"), {}),
    "STS in several languages": ("a.csv", lines('"{}","{other}",{number}.5'), {}),
    "STS with the score first": (
        "a.tsv",
        lines("{number}.5\t{}\t{other}"),
        {"header": "no", "columns": "column2,column3,column1"},
    ),
    "STS benchmark": (
        "a.tsv",
        lines("main-captions\tvid\t2012test\t{number:04d}\t{number}.5\t{}\t{other}"),
        {"header": "no", "columns": "column6,column7,column5"},
    ),
    "pairs of STS in Chinese": (
        "a.tsv",
        lines("{number}\t{}\t{other}\t{label}", CHINESE, label="15"),
        {"header": "no", "columns": "column2,column3,column4"},
    ),
}


@pytest.mark.parametrize("form", PAIRS)
def test_pairs_as_published_are_read(tmp_path, form):
    name, content, options = PAIRS[form]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    texts = CHINESE if CHINESE[0] in content else TEXTS
    if options:
        with pytest.raises(DataError) as caught:
            detect_kind(path)
        # A table without names asks for a header, and one with other names says which columns they are.
        assert ("header" in options and "header" in str(caught.value)) or options["columns"] in str(caught.value)
    data = samesense.read(path, **options)
    assert data.pairs() == list(zip(texts, reversed(texts), strict=True))
