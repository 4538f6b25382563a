"""Open folders by sentence-transformers."""

from reader import main


def rows(known):
    from sentence_transformers import CrossEncoder, SentenceTransformer

    if known["pairs"]:
        return CrossEncoder(known["folder"], device="cpu").predict([tuple(pair) for pair in known["inputs"]]).tolist()
    model = SentenceTransformer(known["folder"], device="cpu")
    return model.encode(known["inputs"], batch_size=known["batch"]).tolist()


if __name__ == "__main__":
    main(rows, "sentence-transformers", "transformers")
