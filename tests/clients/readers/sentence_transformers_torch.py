"""Open the folders that a file names by sentence-transformers, and write what they give; run in a venv of its own."""

import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")


def rows(known):
    from sentence_transformers import CrossEncoder, SentenceTransformer

    if known["pairs"]:
        return CrossEncoder(known["folder"], device="cpu").predict([tuple(pair) for pair in known["inputs"]]).tolist()
    model = SentenceTransformer(known["folder"], device="cpu")
    return model.encode(known["inputs"], batch_size=known["batch"]).tolist()


def answer(known):
    try:
        return {"rows": rows(known)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}


if __name__ == "__main__":
    asked, out = map(Path, sys.argv[1:])
    given = json.loads(asked.read_text(encoding="utf-8"))
    out.write_text(json.dumps({known["name"]: answer(known) for known in given}), encoding="utf-8")
