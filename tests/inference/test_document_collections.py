"""A folder of documents becomes a collection, and follows its files; what cannot be read is named, never dropped."""

import json
import os

import pytest

import samesense
from samesense.errors import ConfigError, DataError, MissingExtraError
from samesense.inference.collection.build import prepare
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.documents import (
    are_documents,
    build_from_documents,
    sizes_for,
    update_from_documents,
)
from samesense.inference.collection.embedder import open_embedder
from samesense.inference.names import settled_name
from tests.command import run_command
from tests.data.made_documents import docx, paragraph, pdf
from tests.inference.made_vectors import embedder, encode
from tests.messages import listen


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # it guards against loss of power, and takes long


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """A folder of six documents, three of them unreadable, in the working directory."""
    folder = tmp_path / "meine docs"
    (folder / "tief").mkdir(parents=True)
    (folder / "a.txt").write_text("Es regnet.\n\nDie Straße ist nass.\n", encoding="utf-8")
    (folder / "b.md").write_text("# Züge\n\nDer Zug nach Köln fährt um zwölf.\n", encoding="utf-8")
    (folder / "tief" / "ö.docx").write_bytes(docx(paragraph("Gerät", heading=True) + paragraph("Es läuft.")))
    (folder / "scan.pdf").write_bytes(pdf([[]]))
    (folder / "leer.txt").write_bytes(b"")
    (folder / "kaputt.docx").write_bytes(b"PK\x03\x04nonsense")
    monkeypatch.chdir(tmp_path)
    return folder


def texts(collection):
    return {entry.metadata["file"]: entry.text for entry in collection}


BROKEN = {"meine docs/kaputt.docx", "meine docs/leer.txt", "meine docs/scan.pdf"}


def test_a_folder_becomes_passages_with_their_files(docs, tmp_path):
    heard = listen()
    collection, report = build_from_documents("my.index", ["meine docs/"], embedder())
    assert texts(collection) == {
        "meine docs/a.txt": "Es regnet.\nDie Straße ist nass.",
        "meine docs/b.md": "Züge\nDer Zug nach Köln fährt um zwölf.",
        "meine docs/tief/ö.docx": "Gerät\nEs läuft.",
    }
    (entry,) = [entry for entry in collection if entry.metadata["file"].endswith("b.md")]
    digest = entry.metadata["file_hash"]
    assert dict(entry.metadata) == {
        "file": "meine docs/b.md",
        "passage": 1,
        "title": "Züge",
        "section": "Züge",
        "line": 3,
        "file_hash": digest,
    }
    assert report.files == 3
    assert set(report.skipped) == BROKEN
    for name in BROKEN:
        assert sum(name in line for line in heard) >= 2  # with its reason, and in the summary
    assert any("3 of 6 files could not be read" in line for line in heard)
    (answer,) = collection.query(["x"], embedder(), where="file = 'meine docs/a.txt'")
    assert len(answer) == 1


def test_strict_refuses_what_cannot_be_read(docs):
    with pytest.raises(DataError, match=r"kaputt\.docx.*`strict`"):
        build_from_documents("my.index", ["meine docs"], embedder(), strict=True)
    assert not os.path.lexists("my.index")


def test_documents_none_of_which_can_be_read_are_refused(docs):
    with pytest.raises(DataError, match=r"no document could be read.*scanned"):
        build_from_documents("my.index", ["meine docs/scan.pdf"], embedder())
    with pytest.raises(DataError, match="2 other files"):
        build_from_documents("my.index", sorted(BROKEN), embedder())


def test_an_update_encodes_new_and_changed_files_alone(docs, tmp_path):
    encoded = []

    def watched(batch):
        encoded.extend(batch)
        return encode(batch)

    model = embedder(run=watched)
    collection, _ = build_from_documents("my.index", ["meine docs"], model)
    before = {entry.text: entry.id for entry in collection}
    encoded.clear()
    report = update_from_documents("my.index", model)
    assert (encoded, report.unchanged, report.files, report.removed) == ([], 3, 0, 0)
    (docs / "a.txt").write_text("Es schneit.", encoding="utf-8")
    (docs / "neu.html").write_text("<p>Neu.</p>", encoding="utf-8")
    (docs / "b.md").unlink()
    report = update_from_documents("my.index", model)
    assert sorted(encoded) == ["Es schneit.", "Neu."]
    assert (report.unchanged, report.files, report.removed, report.passages) == (1, 2, 1, 2)
    assert texts(collection) == {
        "meine docs/a.txt": "Es schneit.",
        "meine docs/neu.html": "Neu.",
        "meine docs/tief/ö.docx": "Gerät\nEs läuft.",
    }
    assert {entry.text: entry.id for entry in collection}["Gerät\nEs läuft."] == before["Gerät\nEs läuft."]
    fresh, _ = build_from_documents("fresh.index", ["meine docs"], model)
    assert texts(fresh) == texts(collection)


def test_a_file_that_can_no_longer_be_read_keeps_its_passages(docs):
    collection, _ = build_from_documents("my.index", ["meine docs"], embedder())
    (docs / "a.txt").write_bytes(b"\0\0")
    heard = listen()
    update_from_documents("my.index", embedder())
    assert texts(collection)["meine docs/a.txt"].startswith("Es regnet.")
    assert any("a.txt" in line and "last version stay" in line for line in heard)


def test_an_update_finds_its_files_from_elsewhere_and_misses_a_folder_that_is_gone(docs, tmp_path, monkeypatch):
    build_from_documents("my.index", ["meine docs"], embedder())
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    assert update_from_documents("../my.index", embedder()).unchanged == 3
    docs.rename(tmp_path / "moved")
    with pytest.raises(DataError, match="no such file or folder"):
        update_from_documents("../my.index", embedder())
    assert len(Collection.open("../my.index")) == 3


def test_a_failed_update_changes_nothing(docs):
    build_from_documents("my.index", ["meine docs"], embedder())
    before = texts(Collection.open("my.index"))
    (docs / "a.txt").write_text("Neu.", encoding="utf-8")
    with pytest.raises(DataError, match="`strict`"):
        update_from_documents("my.index", embedder(), strict=True)
    assert texts(Collection.open("my.index")) == before


def test_documents_can_be_added(docs, tmp_path):
    build_from_documents("my.index", ["meine docs/a.txt"], embedder())
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.txt").write_text("Mehr.")
    collection = Collection.open("my.index")
    assert prepare(["more"]).add(collection, embedder(), upsert=False, on_progress=None) == 1
    (tmp_path / "more" / "c.txt").write_text("Anders.")
    update_from_documents("my.index", embedder())
    assert texts(collection)["more/c.txt"] == "Anders."
    with pytest.raises(ConfigError, match="`upsert`"):
        prepare(["more"]).add(collection, embedder(), upsert=True, on_progress=None)


def test_a_collection_of_rows_has_no_files_to_compare_with(docs, tmp_path):
    (tmp_path / "rows.txt").write_text("one\ntwo\n")
    prepare(["rows.txt"]).build("my.index", embedder())
    with pytest.raises(DataError, match="not built from documents"):
        update_from_documents("my.index", embedder())


def test_what_is_read_as_documents(docs):
    assert are_documents(["meine docs"])
    assert are_documents(["meine docs/a.txt", "meine docs/b.md"])
    assert are_documents(["meine docs/*.txt"])
    assert are_documents(["meine docs/scan.pdf"])
    assert not are_documents(["meine docs/a.txt"])
    assert are_documents(["meine docs/a.txt"], documents=True)
    assert not are_documents(["rows.csv"])


def test_options_of_rows_and_of_documents(docs, tmp_path):
    (tmp_path / "rows.txt").write_text("one\ntwo\n")
    for sources, options, reason in (
        (["meine docs"], {"columns": "text"}, "`columns` is for rows"),
        (["meine docs"], {"drop_bad_rows": True}, "`drop_bad_rows` is for rows"),
        (["rows.txt"], {"chunk_size": 64}, "`chunk_size` is for documents; rows.txt is read as one text a line"),
        ([], {}, "received none"),
    ):
        with pytest.raises(ConfigError, match=reason):
            prepare(sources, **options)


def test_passages_fit_the_model(tiny_trunk, docs):
    model = open_embedder(str(tiny_trunk))
    (docs / "long.txt").write_text("the cat sleeps and the dog runs. " * 200)
    longest = model.reading.longest
    added = model.reading.lengths([""])[0]
    assert sizes_for(model, None, None)[0] == longest - added
    collection, _ = build_from_documents("my.index", ["meine docs/long.txt"], model)
    entries = [entry.text for entry in collection]
    assert len(entries) > 3
    assert longest - 20 < max(model.reading.lengths(entries)) <= longest
    with pytest.raises(ConfigError, match=f"reads {longest - added} tokens; received `chunk_size` 999"):
        sizes_for(model, 999, None)
    with pytest.raises(ConfigError, match="half of `chunk_size`"):
        sizes_for(model, 32, 20)


def test_a_missing_reader_is_named_before_a_model_is_opened(docs, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"samesense\[documents\]"):
        prepare(["meine docs"])


def test_the_commands(docs, tiny_trunk, capsys, monkeypatch):
    code, _, err = run_command(capsys, "index", "build", "my.index", "meine docs", "--model", tiny_trunk)
    assert code == 0, err
    assert "6 documents" in err and "3 of 6 files could not be read" in err
    code, out, _ = run_command(capsys, "index", "query", "my.index", "Zug", "--top", "1", "--words")
    assert code == 0
    assert out.split("\t")[1:] == ["1", "meine docs/b.md, line 3", "Züge Der Zug nach Köln fährt um zwölf.\n"]
    code, out, _ = run_command(capsys, "index", "query", "my.index", "Zug", "--top", "1", "--words", "--json")
    assert json.loads(out)["metadata"]["section"] == "Züge"
    (docs / "neu.md").write_text("Neu.")
    code, _, err = run_command(capsys, "index", "update", "my.index")
    assert code == 0 and "passages: 3 before, 4 now" in err
    code, _, err = run_command(capsys, "index", "build", "other.index", "meine docs", "--strict", "--model", tiny_trunk)
    assert code != 0 and "--strict" in err
    code, _, err = run_command(capsys, "index", "build", "other.index", *sorted(BROKEN), "--model", tiny_trunk)
    assert code != 0 and "no document could be read" in err


def test_a_terminal_shows_shortened_passages(docs, tiny_trunk, capsys, monkeypatch):
    (docs / "long.txt").write_text("the cat sleeps and the dog runs " * 9)
    run_command(capsys, "index", "build", "my.index", "meine docs", "--model", tiny_trunk)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = run_command(capsys, "index", "query", "my.index", "cat", "--words", "--top", "1")
    assert out.strip().endswith("…") and len(out.expandtabs()) <= 101


def test_other_commands_read_a_folder_as_passages(docs, tiny_trunk, capsys):
    (docs / "copy.md").write_text("# Züge\n\nDer Zug nach Köln fährt um zwölf.\n", encoding="utf-8")
    code, _, err = run_command(capsys, "encode", tiny_trunk, "meine docs", "--output", "v.npy")
    assert code == 0 and "4 passages" in err, err
    code, _, err = run_command(
        capsys, "dedup", "meine docs", "--model", tiny_trunk, "--threshold", "0.99", "--output", "kept.csv"
    )
    assert code == 0, err
    assert len((docs.parent / "kept.csv").read_text(encoding="utf-8").splitlines()) >= 2
    code, out, err = run_command(capsys, "mine", "meine docs", "--model", tiny_trunk, "--top", "1")
    assert code == 0 and "Köln" in out, err


def test_from_python(docs, tiny_trunk):
    index = samesense.build_index("my.index", "meine docs/", model=str(tiny_trunk))
    assert repr(index) == f"index my.index: 3 texts by {tiny_trunk}"
    (match,) = index.query("Zug", words=True)
    assert match.metadata["file"] == "meine docs/b.md"
    assert len(index.query("Zug", top=2, where="file = 'meine docs/a.txt'")) == 1
    assert "Züge" in str(index.query("Zug", hybrid=True))
    (docs / "neu.md").write_text("Neu.")
    report = index.update()
    assert (report.files, report.unchanged, set(report.skipped)) == (1, 3, BROKEN)
    assert len(samesense.open_index("my.index", model=samesense.load(tiny_trunk))) == 4
    with pytest.raises(ConfigError, match="`hybrid`"):
        index.query("Zug", hybrid=True, words=True)


def test_an_open_collection_stays_where_it_is_when_the_process_goes_elsewhere(docs, tiny_trunk, monkeypatch):
    built = samesense.build_index("my.index", "meine docs/b.md", model=str(tiny_trunk))
    opened = samesense.open_index("my.index")
    monkeypatch.chdir("/")
    for index in (built, opened):
        assert len(index.query("Zug")) == len(index) == 1
        index.collection.compact()
        assert repr(index) == f"index my.index: 1 texts by {tiny_trunk}"


def test_from_python_a_model_by_name_is_opened_again(docs, tiny_trunk):
    samesense.build_index("my.index", ["meine docs/a.txt", "meine docs/b.md"], model=str(tiny_trunk))
    assert len(samesense.open_index("my.index").query("Zug")) == 2


def test_a_folder_without_documents_and_sizes_that_cannot_be_are_refused_before_the_model(docs, tmp_path):
    (tmp_path / "bilder").mkdir()
    (tmp_path / "bilder" / "a.png").write_bytes(b"x")
    with pytest.raises(DataError, match=r"there is no document.*not read: 1 \.png"):
        prepare(["bilder"])
    with pytest.raises(ConfigError, match="`chunk_size` is 16 tokens or more"):
        prepare(["meine docs"], chunk_size=3)


def test_a_table_with_a_column_file_is_shown_as_any_other(tmp_path, tiny_trunk, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("text,file\na cat,x.png\na dog,y.png\n")
    run_command(capsys, "index", "build", "my.index", "t.csv", "--columns", "text", "--model", tiny_trunk)
    assert run_command(capsys, "index", "query", "my.index", "cat", "--words")[1].split("\t")[1:] == ["0", "a cat\n"]


def test_a_collection_is_queried_from_any_folder(tmp_path, tiny_trunk, capsys, monkeypatch):
    (tmp_path / "t.txt").write_text("the cat sleeps\n")
    (tmp_path / "w.vec").write_text("cat 1 2\nsleeps 3 1\n")
    (tmp_path / "model").symlink_to(tiny_trunk)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    for model, folder in (("model?cls", "tiny.index"), ("words:w.vec", "words.index")):
        code, _, err = run_command(capsys, "index", "build", folder, "t.txt", "--model", model)
        assert code == 0, err
        monkeypatch.chdir(tmp_path / "elsewhere")
        code, out, err = run_command(capsys, "index", "query", f"../{folder}", "cat")
        assert code == 0 and out.endswith("the cat sleeps\n"), err
        monkeypatch.chdir(tmp_path)


def test_names_that_are_no_file_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").mkdir()
    (tmp_path / "made").mkdir()
    for name in (
        "default",
        "owner/name",
        "owner/name?cls+whiten:64",
        "chat:made",
        "python:made:encode",
        "words:absent",
    ):
        assert settled_name(name) == name
    assert settled_name("origin:made+dim:8") == f"origin:{tmp_path.resolve()}/made+dim:8"
