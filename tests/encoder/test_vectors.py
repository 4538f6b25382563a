import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from samesense.encoder.vectors.lookup import read_vectors, read_words
from samesense.encoder.vectors.quantize import Quantizer
from samesense.errors import ModelError
from samesense.inference.output import Encoded, write_encoded

TEXTS = ["a dog runs", "zwei Hunde", "line\u2028separator and \x85"]
ROWS = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)


def as_npz(folder):
    np.savez(folder / "v.npz", texts=np.array(TEXTS), embeddings=ROWS)
    return folder / "v.npz"


def as_npy(folder):
    np.save(folder / "v.npy", ROWS)
    (folder / "v.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return folder / "v.npy"


def as_parquet(folder):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.reshape(-1)), 5)
    pq.write_table(pa.table({"text": TEXTS, "embedding": vectors}), folder / "v.parquet")
    return folder / "v.parquet"


def as_jsonl(folder, name="v.jsonl"):
    lines = (json.dumps({"text": t, "embedding": r.tolist()}) for t, r in zip(TEXTS, ROWS, strict=True))
    (gzip.open if name.endswith(".gz") else open)(folder / name, "wt", encoding="utf-8").write("\n".join(lines) + "\n")
    return folder / name


def as_zipped(folder):
    return as_jsonl(folder, "v.jsonl.gz")


FORMATS = [as_npz, as_npy, as_parquet, as_jsonl, as_zipped]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_looked_up_by_text(form, tmp_path):
    encode = read_vectors(form(tmp_path))
    vectors = encode([TEXTS[2], TEXTS[0], TEXTS[2]])
    np.testing.assert_array_equal(vectors, ROWS[[2, 0, 2]])
    assert vectors.dtype == np.float32


def test_the_mark_at_the_begin_of_a_text_file_is_no_part_of_its_first_text(tmp_path):
    path = as_npy(tmp_path)
    (tmp_path / "v.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8-sig")
    np.testing.assert_array_equal(read_vectors(path)(TEXTS), ROWS)


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:40] + bytes(30) + data[70:]])
def test_a_damaged_gzip_file_is_refused(tmp_path, damage):
    vectors = as_zipped(tmp_path)
    words = tmp_path / "w.vec.gz"
    words.write_bytes(gzip.compress("".join(f"word{n} {n * 7919 % 1000} {n}.5\n" for n in range(400)).encode()))
    for path, read in ((vectors, read_vectors), (words, read_words)):
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(ModelError, match=f"{path.name}.*(cannot be read to its end|row 1|cannot be read)"):
            read(path)


def test_what_samesense_encode_writes_is_read(tmp_path):
    for form in ("parquet", "jsonl"):
        write_encoded(Encoded(TEXTS, ROWS, Quantizer.fit("float32", ROWS)), str(tmp_path / f"v.{form}"), form)
        np.testing.assert_allclose(read_vectors(tmp_path / f"v.{form}")(TEXTS), ROWS, rtol=1e-6)


def test_absent_texts_are_named_and_counted(tmp_path):
    encode = read_vectors(as_npz(tmp_path))
    with pytest.raises(ModelError) as error:
        encode(["a dog runs", "a dog runs ", "A dog runs", "a dog runs "])
    assert str(error.value) == (
        f"{tmp_path / 'v.npz'} must hold a vector for every text; 2 of 3 are not there, the first being 'a dog runs '. "
        "Texts must be equal to the letter."
    )


@pytest.mark.parametrize("suffix", ["npz", "npy", "parquet", "jsonl"])
def test_rubbish_is_refused(suffix, tmp_path):
    (tmp_path / f"v.{suffix}").write_bytes(b"no such thing\n")
    (tmp_path / "v.txt").write_text("a\n")
    with pytest.raises(ModelError, match=rf"v\.{suffix}"):
        read_vectors(tmp_path / f"v.{suffix}")


def test_other_mistakes(tmp_path):
    with pytest.raises(ModelError, match="no file of vectors at"):
        read_vectors(tmp_path / "v.npz")
    (tmp_path / "v.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"ends in \.npz, \.npy, \.parquet, \.jsonl"):
        read_vectors(tmp_path / "v.bin")
    np.savez(tmp_path / "v.npz", a=ROWS)
    with pytest.raises(ModelError, match="the arrays must be texts and embeddings; it has a"):
        read_vectors(tmp_path / "v.npz")
    np.save(tmp_path / "lone.npy", ROWS)
    with pytest.raises(ModelError, match="holds no texts, and there is no"):
        read_vectors(tmp_path / "lone.npy")
    (tmp_path / "lone.txt").write_text("only\ntwo\n")
    with pytest.raises(ModelError, match="one vector a text; received 2 texts and vectors of shape \\(3, 5\\)"):
        read_vectors(tmp_path / "lone.npy")
    (tmp_path / "v.jsonl").write_text('{"text": "a", "embedding": [1, 2]}\n{"text": "b", "embedding": [1]}\n')
    with pytest.raises(ModelError, match="all of one length"):
        read_vectors(tmp_path / "v.jsonl")
    (tmp_path / "v.jsonl").write_text('{"text": "a", "embedding": [1, 2]}\n{"text": "b"}\n')
    with pytest.raises(ModelError, match=r"v\.jsonl, row 2: every line must be"):
        read_vectors(tmp_path / "v.jsonl")
    pq.write_table(pa.table({"sentence": TEXTS}), tmp_path / "v.parquet")
    with pytest.raises(ModelError, match="columns must be text and embedding; it has sentence"):
        read_vectors(tmp_path / "v.parquet")
