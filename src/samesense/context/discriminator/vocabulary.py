"""Words as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from samesense.context.corpus.words import words_and_marks
from samesense.errors import ConfigError, ModelError

PADDING, UNKNOWN = 0, 1


class Vocabulary:
    """Words and marks with their numbers: 0 fills up, 1 is any unknown word, then the words in order.

    Args:
        words: different ones, the most frequent first.

    Raises:
        ModelError: if there is none, or one comes twice.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._number = {word: number for number, word in enumerate(self.words, UNKNOWN + 1)}
        if not self.words or len(self._number) != len(self.words):
            raise ModelError(f"A vocabulary has one word at least and none twice; received {len(self.words)} words.")

    @classmethod
    def count(cls, sentences: Iterable[str], *, least: int = 2, most: int = 100_000) -> Vocabulary:
        """Return the words that come at least ``least`` times, at most ``most`` of them; ties in the order of words.

        Raises:
            ConfigError: if no word comes so often.
        """
        counts = Counter(word for sentence in sentences for word in words_and_marks(sentence))
        kept = sorted((-count, word) for word, count in counts.items() if count >= least)[:most]
        if not kept:
            raise ConfigError(f"No word of the corpus comes {least} times. Lower the least count, or give more text.")
        return cls([word for _, word in kept])

    def __len__(self) -> int:
        return len(self.words) + UNKNOWN + 1

    def numbers(self, sentence: str, most: int) -> list[int]:
        """Return the numbers of the first ``most`` words of a sentence; one without a word is one unknown word."""
        return [self._number.get(word, UNKNOWN) for word in words_and_marks(sentence)[:most]] or [UNKNOWN]
