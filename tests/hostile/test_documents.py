"""Hostile documents are refused by name in bounded memory, and nothing outside them is read or reached."""

import json
import subprocess
import sys
import zlib

import pytest

from samesense.data.extraction import blocks
from samesense.data.extraction import docx as docx_reader
from samesense.data.extraction.files import DocumentFile, read_document_file
from samesense.errors import DataError
from tests.data.made_documents import docx, paragraph, pdf

_READ = """
import json, resource, sys
from pathlib import Path
from samesense.data.extraction.files import DocumentFile, read_document_file
from samesense.errors import DataError
path = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    outcome = len(read_document_file(DocumentFile(path, path.name)).blocks)
except DataError as error:
    outcome = str(error)
print(json.dumps([outcome, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""


def read(path, content):
    path.write_bytes(content)
    return read_document_file(DocumentFile(path, path.name))


def outcome_of(path, content):
    """Read a file in a separate process; return its output and its peak memory in MB."""
    path.write_bytes(content)
    done = subprocess.run([sys.executable, "-c", _READ, path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def bomb():
    packer = zlib.compressobj(9)
    piece = b"BT /F1 12 Tf (hello world) Tj ET\n" * 30_000
    return b"".join(packer.compress(piece) for _ in range(300)) + packer.flush()


@pytest.mark.posix
@pytest.mark.parametrize("layers", [1, 2])
def test_a_pdf_that_unpacks_to_a_gigabyte(tmp_path, layers):
    stream = bomb() if layers == 1 else zlib.compress(bomb(), 9)
    filters = b"/FlateDecode" if layers == 1 else b"[/FlateDecode/FlateDecode]"
    message, grown = outcome_of(tmp_path / "bomb.pdf", pdf([], streams=[stream], filters=filters))
    assert "bomb.pdf" in message and "Limit reached" in message
    assert grown < 500


@pytest.mark.posix
def test_a_word_file_that_unpacks_to_a_gigabyte(tmp_path):
    body = "<w:p><w:r><w:t>" + "a" * 2**26 + "</w:t></w:r></w:p>"
    message, grown = outcome_of(tmp_path / "bomb.docx", docx(body))
    assert message.startswith("bomb.docx: a Word file unpacks to at most 48 MB")
    assert grown < 300


def test_a_word_file_that_names_a_smaller_size_than_it_has(tmp_path):
    content = bytearray(docx(paragraph("a" * 2**20)))
    size = (2**20).to_bytes(4, "little")[:2]
    assert size is not None
    honest = read(tmp_path / "honest.docx", bytes(content))
    assert len(honest.blocks[0].text) == 2**20
    start = content.rfind(b"PK\x01\x02", 0, content.rfind(b"word/document.xml"))
    content[start + 24 : start + 28] = (1000).to_bytes(4, "little")
    with pytest.raises(DataError, match=r"liar\.docx"):
        read(tmp_path / "liar.docx", bytes(content))


ENTITIES = '<!DOCTYPE x [<!ENTITY a "lollollol">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(12)
)


def test_entities_are_not_expanded_without_end(tmp_path):
    before = ENTITIES + "]>"
    with pytest.raises(DataError, match=r"laughs\.docx"):
        read(tmp_path / "laughs.docx", docx(paragraph("&m;"), before=before))


@pytest.mark.parametrize("kind", ["SYSTEM 'file:///{}'", "SYSTEM 'http://127.0.0.1:9/x'"])
def test_files_outside_are_not_read(tmp_path, kind):
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    before = f"<!DOCTYPE x [<!ENTITY e {kind.format(secret)}>]>"
    try:
        document = read(tmp_path / "out.docx", docx(paragraph("open &e; text"), before=before))
    except DataError:
        return
    assert "SECRET" not in str(document)


def test_a_linked_image_and_template_are_not_opened(tmp_path, monkeypatch):
    requests = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *arguments, **names: requests.append(arguments))
    relation = (
        '<Relationship Id="i1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" '
        'Target="http://127.0.0.1:9/x.png" TargetMode="External"/><Relationship Id="t1" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate" '
        'Target="http://127.0.0.1:9/t.dotm" TargetMode="External"/>'
    )
    image = (
        '<w:p><w:r><w:drawing><wp:inline><a:graphic><a:graphicData><pic:pic xmlns:pic="http://schemas.openxmlformats'
        '.org/drawingml/2006/picture"><pic:blipFill><a:blip r:link="i1"/></pic:blipFill></pic:pic></a:graphicData>'
        "</a:graphic></wp:inline></w:drawing></w:r></w:p>"
    )
    document = read(tmp_path / "linked.docx", docx(paragraph("Text.") + image, relations=relation))
    assert [block.text for block in document.blocks] == ["Text."]
    assert requests == []


def test_pages_fetch_nothing(tmp_path):
    page = (
        b'<!DOCTYPE html SYSTEM "http://127.0.0.1:9/x.dtd"><link rel=stylesheet href="http://127.0.0.1:9/x.css">'
        b'<img src="http://127.0.0.1:9/x.png"><iframe src="file:///etc/passwd"></iframe><p>Text.</p>'
    )
    assert [block.text for block in read(tmp_path / "a.html", page).blocks] == ["Text."]  # tests have no network


@pytest.mark.posix
@pytest.mark.parametrize(
    "content",
    [
        b"<!--" * 200_000,
        b"<a " * 200_000,
        b"<![CDATA[" * 200_000,
        b"<b" * 200_000,
        b"<div>" * 200_000 + b"deep",
        b"<table><tr><td>" * 50_000 + b"deep",
        b"&#" * 200_000,
        b"<b><p>" * 100_000,
    ],
)
def test_pages_that_never_end(tmp_path, content):
    outcome, grown = outcome_of(tmp_path / "deep.html", b"<p>Text.</p>" + content)
    assert isinstance(outcome, int) or outcome.startswith("deep.html")
    assert grown < 400


def test_elements_too_deep_to_be_read_whole_are_refused(tmp_path):
    assert read(tmp_path / "a.html", b"<div>" * 200 + b"deep").blocks[0].text == "deep"
    with pytest.raises(DataError, match="nested more than"):
        read(tmp_path / "b.html", b"<div>" * 400 + b"deep")


def test_markdown_that_nests_without_end(tmp_path):
    with pytest.raises(DataError, match=r"a\.md"):
        read(tmp_path / "a.md", b">" * 20_000 + b"x")
    assert read(tmp_path / "a.md", b">" * 60 + b"x").blocks[0].text == "x"
    for content in (b"[" * 20_000, b"*a " * 20_000, b"- " * 40 + b"x", b"a" + b"`" * 20_000):
        assert read(tmp_path / "a.md", content).blocks


def test_long_texts_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "LONGEST_TEXT", 100)
    for name, content in (("a.txt", b"word " * 30), ("a.html", b"word " * 30), ("a.pdf", pdf([["word " * 30]]))):
        with pytest.raises(DataError, match=rf"{name}: a document has at most"):
            read(tmp_path / name, content)
    monkeypatch.setattr(docx_reader, "LARGEST_XML", 100)
    with pytest.raises(DataError, match="unpacks to at most"):
        read(tmp_path / "a.docx", docx(paragraph("x")))


def test_an_encrypted_pdf_is_refused(tmp_path):
    pypdf = pytest.importorskip("pypdf")
    (tmp_path / "open.pdf").write_bytes(pdf([["Text."]]))
    writer = pypdf.PdfWriter(tmp_path / "open.pdf")
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "closed.pdf")
    with pytest.raises(DataError, match=r"closed\.pdf: the PDF has a password"):
        read_document_file(DocumentFile(tmp_path / "closed.pdf", "closed.pdf"))
    writer = pypdf.PdfWriter(tmp_path / "open.pdf")
    writer.encrypt("", "owner", algorithm="RC4-128")  # printing is forbidden, reading is not
    writer.write(tmp_path / "owned.pdf")
    assert read_document_file(DocumentFile(tmp_path / "owned.pdf", "owned.pdf")).blocks[0].text == "Text."
