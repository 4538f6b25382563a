"""``samesense quickstart``: the main job, end to end, with nothing but what is installed."""

from __future__ import annotations

from pathlib import Path

from samesense.cli.output import Flag, logger, put

TEXTS = ("The train to the coast leaves at noon.", "At twelve there is a train to the sea.", "Our cat sleeps all day.")


def quickstart(output: Path = Path("runs/quickstart"), /, *, model: str = "default", overwrite: Flag = False) -> None:
    """Train, evaluate, encode and compare on the embedded model and sample, in a few minutes.

    samesense quickstart runs/quickstart

    Args:
        output: folder of the run.
        model: model folder, hub name, or default: all-MiniLM-L6-v2 from its package.
        overwrite: replace an earlier run in the output folder.
    """
    from samesense.cli.encode import encode
    from samesense.cli.evaluate import evaluate
    from samesense.cli.similarity import similarity
    from samesense.cli.train import Flags, train
    from samesense.data import sample_path

    files = {part: str(sample_path(part)) for part in ("train", "dev", "test")}
    logger.info("1 of 4: train with CoSENT on the sample of scored pairs")
    flags = Flags(model=model)
    train([files["train"]], output=output, dev=files["dev"], test=files["test"], settings=flags, overwrite=overwrite)
    logger.info("2 of 4: evaluate the model")
    evaluate(str(output), data=[files["test"]])
    logger.info("3 of 4: encode sentences")
    sentences = output / "sentences.txt"
    sentences.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    encode(str(output), str(sentences), output=str(output / "vectors.npy"))
    logger.info("4 of 4: compare sentences")
    for other in TEXTS[1:]:
        put(f"{TEXTS[0]!r} and {other!r}:")
        similarity(str(output), TEXTS[0], other)
