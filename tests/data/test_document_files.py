"""Documents of every format give their text, titles and headings; skipped files of folders are counted."""

import os
import sys

import pytest

from samesense.data.documents import read_documents
from samesense.data.extraction import files as document_files
from samesense.data.extraction.files import (
    DocumentFile,
    check_readers,
    find_documents,
    holds_document_files,
    read_document_file,
)
from samesense.data.rows.load import load_rows
from samesense.data.rows.table_options import TableOptions, table_options
from samesense.errors import DataError, MissingExtraError
from tests.data.made_documents import docx, paragraph, pdf


def read(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_document_file(DocumentFile(path, path.name))


def parts(document):
    return [(block.kind, block.text) for block in document.blocks]


def test_plain_text_is_paragraphs_with_their_lines(tmp_path):
    document = read(tmp_path / "a.txt", "\ufeffErste Zeile\r\nzweite.\r\n\r\n\r\nÜber alles.\n")
    assert [(block.text, block.line) for block in document.blocks] == [("Erste Zeile\nzweite.", 1), ("Über alles.", 5)]
    assert document.title == ""


def test_markdown_is_text_without_markup(tmp_path):
    text = (
        "---\ntitle: 'Fahrplan'\n---\n# Züge\n\nDer *Zug* nach [Köln](http://x.y) fährt\num **12** Uhr. "
        "![Bild](a.png)\n\n"
        "| Zug | Zeit |\n|---|---|\n| ICE | 12:00 |\n\n- eins\n- zwei\n\n```sh\nls -l\n\ncd\n```\n<!-- geheim -->\n"
        "<div><script>x</script>Kasten</div>\n\n## Leer\n"
    )
    document = read(tmp_path / "a.md", text)
    assert document.title == "Fahrplan"
    assert parts(document) == [
        ("heading", "Züge"),
        ("text", "Der Zug nach Köln fährt\num 12 Uhr. Bild"),
        ("row", "Zug | Zeit"),
        ("row", "ICE | 12:00"),
        ("text", "eins"),
        ("text", "zwei"),
        ("code", "ls -l\n\ncd"),
        ("text", "Kasten"),
        ("heading", "Leer"),
    ]
    assert [block.line for block in document.blocks[:3]] == [4, 6, 9]


def test_html_is_what_a_reader_sees(tmp_path):
    page = (
        "<!DOCTYPE html><html><head><title>Räder &amp; mehr</title><style>p{}</style></head><body><nav>Start</nav>"
        "<header><h1>Fahr<em>räder</em></h1></header><main><p>Zwei<br>Zeilen <b>fett</b>.</p>Rest<ul><li>eins<li>zwei"
        "</ul><table><tr><th>Teil</th><th>Preis</th></tr><tr><td><p>Sattel</p></td><td>20&nbsp;€</td></tr></table>"
        '<pre>a\n  b</pre><p hidden>x</p><p style="display: none">y</p><!-- z --><script>alert("w")</script></main>'
        "<footer>Impressum</footer></body></html>"
    )
    document = read(tmp_path / "a.html", page)
    assert document.title == "Räder & mehr"
    assert parts(document) == [
        ("heading", "Fahrräder"),
        ("text", "Zwei\nZeilen fett."),
        ("text", "Rest"),
        ("text", "eins"),
        ("text", "zwei"),
        ("row", "Teil | Preis"),
        ("row", "Sattel | 20 €"),
        ("code", "a\n  b"),
    ]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-16", "utf-8-sig"])
def test_html_says_its_encoding(tmp_path, encoding):
    declaration = (
        '<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">' if encoding == "cp1252" else ""
    )
    document = read(tmp_path / "a.htm", f"<html><head>{declaration}</head><body>Größe</body>".encode(encoding))
    assert parts(document) == [("text", "Größe")]


def test_pages_of_a_pdf(tmp_path):
    pages = [["Die Wärmepumpe und ihre Kühl-", "wasserpumpe. Haupt-", "und Nebenraum."], [], ["Dritte Seite (Ende)."]]
    document = read(tmp_path / "a.pdf", pdf(pages, title="Handbuch"))
    assert document.title == "Handbuch"
    assert [(block.text, block.page) for block in document.blocks] == [
        ("Die Wärmepumpe und ihre Kühlwasserpumpe. Haupt- und Nebenraum.", 1),
        ("Dritte Seite (Ende).", 3),
    ]
    assert document.remark == "1 of 3 pages hold no text (2); are they scanned?"


def test_word_with_german_styles_tables_and_inserted_text(tmp_path):
    body = (
        paragraph("Über das Gerät", heading=True)
        + paragraph("Größe &lt; 3 cm.")
        + '<w:p><w:ins w:id="1"><w:r><w:t>Eingefügt.</w:t></w:r></w:ins><w:del w:id="2"><w:r><w:delText>Weg.'
        "</w:delText></w:r></w:del></w:p>"
        + f"<w:tbl><w:tr><w:tc>{paragraph('Störung')}</w:tc><w:tc>{paragraph('Lösung')}</w:tc></w:tr></w:tbl>"
    )
    document = read(tmp_path / "a.docx", docx(body, title="Anleitung"))
    assert document.title == "Anleitung"
    assert parts(document) == [
        ("heading", "Über das Gerät"),
        ("text", "Größe < 3 cm."),
        ("text", "Eingefügt."),
        ("row", "Störung | Lösung"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.md", b"", "the file is empty"),
        ("blank.txt", b" \n\n", "holds no text"),
        ("binary.txt", bytes(range(256)) * 9, "must be UTF-8"),
        ("nul.md", b"a\0b", "NUL"),
        ("paper.txt", b"%PDF-1.4\n\xe2\xe3", "a PDF"),
        ("latin.txt", "Größe".encode("cp1252"), "`encoding`"),
        ("latin.html", "<p>Größe</p>".encode("cp1252"), "`encoding`"),
        ("odd.html", b'<meta charset="no-such-code"><p>Gr\xf6\xdfe</p>', "`encoding`"),
        ("scripts.html", b"<script>x</script><nav>y</nav>", "holds no text"),
        ("scan.pdf", pdf([[], []]), "are they scanned"),
        ("cut.pdf", pdf([["Text"]])[:300], "damaged"),
        ("text.pdf", b"just text", "damaged"),
        ("text.docx", b"just text", "no Word file"),
        ("old.docx", b"\xd0\xcf\x11\xe0" + bytes(600), "before 2007"),
        ("other.docx", docx("")[:-40], "damaged"),
        ("none.docx", docx(""), "holds no text"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, reason):
    with pytest.raises(DataError, match=reason) as caught:
        read(tmp_path / name, content)
    assert name in str(caught.value)


def test_the_option_of_an_encoding_is_for_files_that_are_not_utf8(tmp_path):
    with table_options(TableOptions(encoding="cp1252")):
        assert parts(read(tmp_path / "a.txt", "Größe".encode("cp1252"))) == [("text", "Größe")]
        assert parts(read(tmp_path / "b.txt", "Größe".encode())) == [("text", "Größe")]
        assert parts(read(tmp_path / "c.html", "<p>Größe</p>".encode("cp1252"))) == [("text", "Größe")]


def test_folders_are_searched_and_the_rest_is_counted(tmp_path):
    docs = tmp_path / "meine docs"
    (docs / "tief" / ".git").mkdir(parents=True)
    names = (
        "ä ö.TXT",
        "b.md",
        "tief/c.HTML",
        "d.txt.gz",
        "t.csv",
        "u.csv",
        "README",
        ".geheim",
        "~$w.docx",
        "tief/.git/x.md",
    )
    for name in names:
        (docs / name).write_text("x")
    (docs / "tief" / "loop").symlink_to("..")
    (docs / "zweiter.md").symlink_to("b.md")
    documents = find_documents([docs])
    relative_paths = [file.name.removeprefix(f"{docs}/") for file in documents.files]
    assert relative_paths == ["b.md", "d.txt.gz", "tief/c.HTML", "ä ö.TXT"]
    assert documents.summary == "4 documents; not read: 2 .csv, 1 without an ending, 3 hidden, 1 links to folders"
    assert holds_document_files(docs)
    assert not holds_document_files(docs / "tief" / ".git" / "none")


def test_patterns_and_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "a").mkdir(parents=True)
    for name in ("x.txt", "y.md", "z.csv", "a/v.txt", "[1].txt"):
        (tmp_path / "docs" / name).write_text("x")
    assert [file.name for file in find_documents(["docs/*.txt"]).files] == ["docs/[1].txt", "docs/x.txt"]
    assert [file.name for file in find_documents(["docs/**/*.txt", "docs/y.md", "docs/x.txt"]).files] == [
        "docs/[1].txt",
        "docs/a/v.txt",
        "docs/x.txt",
        "docs/y.md",
    ]
    assert [file.name for file in find_documents(["docs/[1].txt"]).files] == ["docs/[1].txt"]
    assert find_documents(["docs/*"]).summary == "4 documents; not read: 1 .csv"
    for source, reason in (("docs/*.pdf", "pattern"), ("nowhere", "no such"), ("docs/z.csv", "by their endings")):
        with pytest.raises(DataError, match=reason):
            find_documents([source])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="there is no document"):
        find_documents(["empty"])


def test_a_saved_dataset_is_no_folder_of_documents(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert holds_document_files(tmp_path)
    (tmp_path / "dataset_info.json").write_text("{}")
    assert not holds_document_files(tmp_path)


def test_a_folder_that_cannot_be_listed_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x")
    walk = os.walk

    def closed(folder, onerror):
        onerror(PermissionError(13, "Permission denied", "docs/closed"))
        return walk(folder)

    monkeypatch.setattr(os, "walk", closed)
    assert find_documents([tmp_path]).unreadable == ["docs/closed: the folder cannot be listed (Permission denied)"]


def test_a_missing_reader_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.pdf").write_bytes(b"x")
    (tmp_path / "b.txt").write_bytes(b"x")
    monkeypatch.setattr(document_files.importlib.util, "find_spec", lambda name: None)
    check_readers([DocumentFile(tmp_path / "b.txt", "b.txt")])
    with pytest.raises(MissingExtraError, match=r"pypdf is needed.*samesense\[documents\]"):
        check_readers(find_documents([tmp_path]).files)


@pytest.mark.parametrize(
    ("name", "package"), [("a.pdf", "pypdf"), ("a.docx", "mammoth"), ("a.html", "lxml"), ("a.md", "markdown_it")]
)
def test_a_missing_reader_is_not_taken_for_damage(tmp_path, monkeypatch, name, package):
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} is needed.*samesense\[documents\]"):
        read(tmp_path / name, b"x")


@pytest.mark.posix
def test_a_link_that_leads_nowhere_is_called_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for name in ("docs/a.txt", "docs/b.md", "c.tsv"):
        (tmp_path / name).symlink_to("gone.txt")
    message = "this is a link to gone.txt, which does not exist. Correct the link, or remove it."
    for act in (
        lambda: list(read_documents("docs/a.txt")),
        lambda: find_documents(["docs/b.md"]),
        lambda: read_document_file(find_documents(["docs"]).files[0]),
        lambda: list(load_rows("c.tsv")),
        lambda: list(load_rows("docs/a.txt")),
    ):
        with pytest.raises(DataError, match=message):
            act()


def test_files_without_a_text_are_left_out_by_name_whatever_their_format(tmp_path, caplog):
    (tmp_path / "full.txt").write_text("It rains.\n\nThe road is wet.\n")
    for name, content in (("a.txt", ""), ("b.txt", " \n\n"), ("c.md", ""), ("d.md", " \n")):
        (tmp_path / name).write_text(content)
    assert list(read_documents(tmp_path)) == [[["It rains."], ["The road is wet."]]]
    left_out = [record.getMessage() for record in caplog.records if record.getMessage().startswith("left out")]
    assert [name in line for name, line in zip(("a.txt", "b.txt", "c.md", "d.md"), left_out, strict=True)] == [True] * 4
