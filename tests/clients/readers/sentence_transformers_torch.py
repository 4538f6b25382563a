"""Open folders by sentence-transformers."""

from reader import main


def rows(job):
    from sentence_transformers import CrossEncoder, SentenceTransformer

    if job["pairs"]:
        return CrossEncoder(job["folder"], device="cpu").predict([tuple(pair) for pair in job["inputs"]]).tolist()
    model = SentenceTransformer(job["folder"], device="cpu")
    return model.encode(job["inputs"], batch_size=job["batch"]).tolist()


if __name__ == "__main__":
    main(rows, "sentence-transformers", "transformers")
