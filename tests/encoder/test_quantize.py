"""Quantized vectors equal those of sentence-transformers bit for bit, and decode within one step."""

import numpy as np
import pytest
from sentence_transformers.util import quantize_embeddings

from samesense.encoder.vectors.quantize import Quantizer
from samesense.errors import DataError

RANDOM = np.random.default_rng(0)
ROWS = (RANDOM.normal(size=(50, 21)) * RANDOM.uniform(0.1, 3, size=21)).astype(np.float32)
ROWS[:, 4] = 0.25  # no range at all
ROWS[3, 7] = 0.0


@pytest.mark.parametrize("vectors", ["float32", "int8", "binary"])
def test_bytes_are_those_of_sentence_transformers(vectors):
    outside = np.concatenate([ROWS, 2 * ROWS])
    quantizer = Quantizer.fit(vectors, ROWS)
    expected = quantize_embeddings(outside, vectors, ranges=np.stack([ROWS.min(axis=0), ROWS.max(axis=0)]))
    quantized = quantizer.apply(outside)
    assert quantized.dtype == expected.dtype
    np.testing.assert_array_equal(quantized, expected)


def test_numbers_come_back():
    whole = Quantizer.fit("int8", ROWS)
    steps = (ROWS.max(axis=0) - ROWS.min(axis=0)) / 255
    assert (np.abs(whole.restore(whole.apply(ROWS)) - ROWS) <= steps * 0.501).all()
    signs = Quantizer.fit("binary", ROWS)
    assert signs.apply(ROWS).shape == (50, 3)
    np.testing.assert_array_equal(signs.restore(signs.apply(ROWS)), np.where(ROWS > 0, 1, -1))
    half = Quantizer.fit("float16", ROWS)
    assert half.apply(ROWS).dtype == np.float16 and half.restore(half.apply(ROWS)).dtype == np.float32
    np.testing.assert_allclose(half.restore(half.apply(ROWS)), ROWS, rtol=1e-3)


def test_what_is_said_of_them_comes_back_to_the_bit():
    for vectors in ("int8", "binary"):
        quantizer = Quantizer.fit(vectors, ROWS)
        again = Quantizer.from_json(quantizer.to_json(), "here")
        np.testing.assert_array_equal(again.apply(ROWS), quantizer.apply(ROWS))
    for damaged in (b"{", b'{"vectors": "int8", "dim": 3, "ranges": null}', b"[]"):
        with pytest.raises(DataError, match="here does not say how the vectors are stored"):
            Quantizer.from_json(damaged, "here")
