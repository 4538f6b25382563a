"""What ``samesense encode`` reads and writes, beside what the tests of the command say."""

import numpy as np
import pytest

from samesense.errors import ModelError
from samesense.inference.encode import encode_with_bar


class Diverged:
    def encode(self, texts, **_):
        return np.array([[1, np.inf if text == "b" else 0] for text in texts], dtype=np.float32)


def test_a_number_that_is_not_finite_is_never_written():
    assert encode_with_bar(Diverged(), ["a", "c"], normalize=False).tolist() == [[1, 0], [1, 0]]
    with pytest.raises(ModelError, match=r"The embedding of 'b' holds a NaN or an infinity \(1 of 3 texts"):
        encode_with_bar(Diverged(), ["a", "b", "c"], normalize=False)
