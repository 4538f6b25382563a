"""Encode sentences, compare two of them, and find the nearest to a question.

python examples/02_encode_and_compare.py [MODEL]
"""

import sys

import samesense

SENTENCES = (
    "The train to the coast leaves at noon.",
    "Our cat sleeps all day.",
    "A man is reading a book about rivers.",
)
QUESTION = "When can I take a train to the sea?"


def main(model: str = "default") -> None:
    encoder = samesense.load(model)
    print(f"one pair: {encoder.similarity(SENTENCES[0], QUESTION):.3f}")

    vectors = encoder.encode(SENTENCES, normalize=True)  # rows of unit length: a product is a cosine
    question = encoder.encode([QUESTION], normalize=True)[0]
    cosines = vectors @ question
    for at in cosines.argsort()[::-1]:
        print(f"{cosines[at]:.3f}  {SENTENCES[at]}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
