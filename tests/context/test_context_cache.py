import numpy as np
import pytest

from samesense.context.origin import cache
from samesense.context.origin.cache import ArrayCache, CellCache, cell_keys, content_keys
from samesense.errors import DataError


def keys_of(count, start=0):
    texts = [f"text {i}" for i in range(start, start + count)]
    return cell_keys(content_keys(texts), content_keys([text[::-1] for text in texts]))


def test_cells_are_found_as_in_a_dictionary(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_RUNS", 3)
    cell_cache = CellCache(tmp_path, "a", 2)
    expected = {}
    draw = np.random.default_rng(0)
    keys = keys_of(2000)
    for start in range(0, 1800, 200):
        values = draw.normal(size=(200, 2)).astype(np.float32)
        cell_cache.write(keys[start : start + 200], values)
        expected.update(
            {tuple(key): value for key, value in zip(keys[start : start + 200].tolist(), values, strict=True)}
        )
    for reading in (cell_cache, CellCache(tmp_path, "a", 2)):
        members = draw.integers(0, 2000, size=3000)
        values, present = reading.find(keys[members])
        for key, value, there in zip(keys[members].tolist(), values, present, strict=True):
            assert there == (tuple(key) in expected)
            np.testing.assert_array_equal(value, expected.get(tuple(key), np.zeros(2)))


def test_half_a_key_is_no_key():
    cell_cache = CellCache(None, "a")
    keys = keys_of(10)
    cell_cache.write(keys, np.ones((10, 1)))
    half_equal = keys.copy()
    half_equal[:, 1] += np.uint64(1)
    assert not cell_cache.find(half_equal)[1].any()
    assert cell_cache.find(keys)[1].all()


def test_nothing_is_found_in_an_empty_cache(tmp_path):
    cell_cache = CellCache(tmp_path, "a")
    cell_cache.write(keys_of(0), np.ones((0, 1)))
    assert not cell_cache.find(keys_of(3))[1].any()
    assert cell_cache.find(keys_of(0))[0].shape == (0, 1)


def test_keys_tell_contents_and_their_order_apart():
    first = content_keys(["a", "b", "a"])
    second = content_keys(["b", "a", "a"])
    keys = {tuple(key) for key in cell_keys(first, second).tolist()}
    assert len(keys) == 3
    assert len({tuple(key) for key in keys_of(20000).tolist()}) == 20000


def test_another_identity_is_another_cache(tmp_path):
    keys = keys_of(5)
    CellCache(tmp_path, "model one").write(keys, np.ones((5, 1)))
    ArrayCache(tmp_path, "model one").write("text", np.arange(3))
    assert not CellCache(tmp_path, "model two").find(keys)[1].any()
    assert ArrayCache(tmp_path, "model two").find("text") is None
    assert ArrayCache(tmp_path, "model one").find("text").tolist() == [0, 1, 2]
    assert ArrayCache(tmp_path, "model one").find("Text") is None


def test_what_was_half_written_is_not_read(tmp_path, monkeypatch):
    cell_cache = CellCache(tmp_path, "a")
    cell_cache.write(keys_of(5), np.ones((5, 1)))

    def killed(stream, array):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(cache.np, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        cell_cache.write(keys_of(5, start=5), np.ones((5, 1)))
    with pytest.raises(KeyboardInterrupt):
        ArrayCache(tmp_path, "b").write("text", np.arange(3))
    assert CellCache(tmp_path, "a").find(keys_of(10))[1].tolist() == [True] * 5 + [False] * 5
    assert ArrayCache(tmp_path, "b").find("text") is None
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]


def test_a_damaged_file_is_an_error(tmp_path):
    CellCache(tmp_path, "a").write(keys_of(5), np.ones((5, 1)))
    next(tmp_path.rglob("*.npy")).write_bytes(b"nothing")
    with pytest.raises(DataError, match="damaged"):
        CellCache(tmp_path, "a")
    ArrayCache(tmp_path, "b").write("text", np.arange(3))
    next((tmp_path).glob("*/*/*.npy")).write_bytes(b"nothing")
    with pytest.raises(DataError, match="damaged"):
        ArrayCache(tmp_path, "b").find("text")
