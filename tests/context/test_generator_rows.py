import numpy as np
import pytest

from samesense.context.corpus.corpus import Window
from samesense.context.generator.tokens import (
    END,
    PAD,
    START,
    Tokens,
    WindowSentence,
    shifted,
    split_window,
    train_tokenizer,
)
from samesense.errors import DataError
from tests.context.worlds import small_tokenizer, some_sentences

WINDOW = Window(("l one", "l two"), "c", ("r one",), id=0)
LEFT = (WindowSentence("l one", -2), WindowSentence("l two", -1))
SENTENCE = (WindowSentence("s", 0),)
RIGHT = (WindowSentence("r one", 1),)


@pytest.mark.parametrize(
    ("kind", "read", "written"),
    [("sentence", LEFT + RIGHT, SENTENCE), ("left", SENTENCE + RIGHT, LEFT), ("right", LEFT + SENTENCE, RIGHT)],
)
def test_what_is_read_and_what_is_written(kind, read, written):
    assert split_window(kind, "s", WINDOW) == (read, written)


def test_rows_are_packed_with_their_places_and_ends():
    tokenizer = small_tokenizer()
    tokens = Tokens(tokenizer, max_tokens=5)
    tokens.learn(["the dog", "a very long walk by the river", "snow"])
    rows = [
        (WindowSentence("the dog", -1), WindowSentence("snow", 2)),
        (WindowSentence("a very long walk by the river", 0),),
    ]
    packed = tokens.pack(rows)
    dog, snow, walk = (tokenizer.encode(piece.text).ids for row in rows for piece in row)
    dog = dog[:4]
    snow = snow[:4]
    walk = walk[:4]
    assert packed.tokens[0].tolist() == [*dog, END, *snow, END]
    assert packed.positions[0].tolist() == [*range(len(dog) + 1), *range(len(snow) + 1)]
    assert packed.offsets[0].tolist() == [-1] * (len(dog) + 1) + [2] * (len(snow) + 1)
    padding = packed.tokens.shape[1] - 5
    assert packed.tokens[1].tolist() == [*walk, END] + [PAD] * padding
    moved = shifted(packed)
    assert moved.tokens[0].tolist() == [START, *packed.tokens[0, :-1]]
    np.testing.assert_array_equal(moved.positions, packed.positions)
    assert tokens.length(rows[0]) == len(dog) + len(snow) + 2


def test_every_script_is_known():
    tokenizer = train_tokenizer(some_sentences(50), 280)
    for text in ("天气很好。", "naïve café", "\N{SNOWMAN} 12"):
        ids = tokenizer.encode(text).ids
        assert min(ids) > END
        assert tokenizer.decode(ids).strip() == text
    assert tokenizer.get_vocab_size() <= 280
    with pytest.raises(DataError, match="there are none"):
        train_tokenizer([], 300)
