"""Compressed files: read where Python's own library can; others are refused with rule, file and fix."""

import bz2
import gzip
import io
import lzma
import zipfile

import pytest

import samesense
from samesense.data import load_rows
from samesense.data.documents import read_documents
from samesense.data.sentences import all_texts
from samesense.data.texts import read_texts
from samesense.errors import DataError
from samesense.inference.collection.entries import read_entries

TABLE = b"text1\ttext2\tscore\na\tb\t1\nc\td\t0\n"


def archive(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for name, content in members:
            packed.writestr(name, content)
    return stream.getvalue()


PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda text: archive(("a.txt", text)),
}


def refusal(path):
    with pytest.raises(DataError) as caught:
        list(load_rows(path))
    return str(caught.value)


@pytest.mark.parametrize("ending", PACK)
def test_texts_of_a_compressed_file_are_read_by_every_reader_of_texts(tmp_path, ending):
    path = tmp_path / f"texts.txt.{ending}"
    path.write_bytes(PACK[ending](b"One text.\nAnother one.\n"))
    texts = ["One text.", "Another one."]
    assert list(all_texts(path)) == read_texts(str(path)) == texts
    assert [entry.text for entry in read_entries(str(path))] == texts
    assert samesense.doctor(path).counts == {"texts": 2}
    assert list(read_documents(path)) == list(read_documents(tmp_path)) == [[texts]]


@pytest.mark.parametrize("ending", PACK)
def test_a_compressed_file_that_is_damaged_is_refused(tmp_path, ending):
    whole = PACK[ending](b"".join(b"text number %d\t\t1\n" % number for number in range(2000)))
    path = tmp_path / f"cut.tsv.{ending}"
    for content in (whole[: len(whole) // 2], TABLE):
        path.write_bytes(content)
        message = refusal(path)
        assert message.startswith(f"{path}: this must be a "), message
        assert f"Download it again, or take .{ending} off the name if it is not compressed." in message


@pytest.mark.parametrize("added", ["__MACOSX/._pairs.tsv", "mine/.DS_Store", "Thumbs.db", "mine/desktop.ini"])
def test_what_a_file_manager_adds_to_an_archive_is_no_second_file(tmp_path, added):
    path = tmp_path / "pairs.tsv.zip"
    path.write_bytes(archive(("mine/pairs.tsv", TABLE), (added, b"\0\1")))
    (tmp_path / "pairs.tsv").write_bytes(TABLE)
    assert list(load_rows(path)) == list(load_rows(tmp_path / "pairs.tsv"))


def test_an_archive_of_several_files_is_refused_with_their_names(tmp_path):
    path = tmp_path / "both.tsv.zip"
    path.write_bytes(archive(("train.tsv", TABLE), ("parts/test.tsv", TABLE)))
    assert refusal(path) == (
        f"{path}: a ZIP archive that is read holds exactly one file; this one holds 2 (train.tsv, parts/test.tsv). "
        f"Unpack it, and name the file that is meant: unzip {path}"
    )
    path.write_bytes(archive())
    assert "this one holds 0. Unpack it" in refusal(path)


def test_an_archive_whose_name_does_not_say_the_format_names_the_file_inside(tmp_path):
    path = tmp_path / "train.zip"
    path.write_bytes(archive(("data/train.tsv", TABLE)))
    with pytest.raises(DataError) as caught:
        samesense.doctor(path)
    assert str(caught.value) == (
        f"{path}: the end of the file name says the format, and the file inside is data/train.tsv. Rename the "
        "archive to end in .tsv.zip."
    )


def test_an_archive_with_a_password_is_refused(tmp_path):
    path = tmp_path / "secret.tsv.zip"
    content = bytearray(archive(("train.tsv", TABLE)))
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(content)
    assert refusal(path) == f"{path}: the file inside, train.tsv, has a password. Unpack it: unzip {path}"


@pytest.mark.parametrize(
    ("ending", "name", "fix"),
    [("zst", "zstd", "zstd -d"), ("lz4", "lz4", "unlz4"), ("7z", "7-Zip", "7z x"), ("rar", "RAR", "unrar x")],
)
def test_what_is_compressed_in_another_way_is_refused_with_the_command(tmp_path, ending, name, fix):
    for stem in ("pairs.tsv", "texts.txt"):
        path = tmp_path / f"{stem}.{ending}"
        path.write_bytes(b"\x28\xb5\x2f\xfd")
        with pytest.raises(DataError) as caught:
            list(all_texts(path))
        assert str(caught.value) == (
            f"{path}: a data file may be compressed by gzip, bzip2 or xz, or be a ZIP archive of one file; by its "
            f"name, this is one of {name}. Unpack it: {fix} {path}"
        )


def test_parquet_in_any_of_them_is_refused(tmp_path):
    path = tmp_path / "pairs.parquet.xz"
    path.write_bytes(b"")
    assert refusal(path) == f"{path}: Parquet compresses by itself and is not read inside xz. Unpack it: unxz {path}"
