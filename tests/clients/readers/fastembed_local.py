"""Open exported folders by fastembed, with the code of docs/readers.md; run in a venv of its own."""

from reader import documented, main


def rows(job):
    code = documented("readers.md", "fastembed")
    for written, value in (
        ("local/mine", f"local/{job['name']}"),
        ("384", str(len(job["rows"][0]))),
        ("models/mine", job["folder"]),
    ):
        assert written in code, f"the block does not name {written}"
        code = code.replace(written, value)
    names = {"texts": [job["prompt"] + text for text in job["inputs"]]}
    exec(code, names)
    return [vector.tolist() for vector in names["vectors"]]


if __name__ == "__main__":
    main(rows, "fastembed", "onnxruntime")
