"""The ``samesense`` command: finds the command, and turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys

from cyclopts import App, CycloptsError

from samesense import __version__
from samesense.cli.output import show_messages
from samesense.errors import SamesenseError
from samesense.inference.models.optional_deps import needs_torch

app = App(
    name="samesense",
    version=__version__,
    help="Sentence similarity: train from any supervision, judge honestly, put to work.",
    help_format="plaintext",
)
COMMANDS = {
    "quickstart": (
        "Train, evaluate, encode and compare on the embedded model and sample, in a few minutes.",
        "samesense quickstart runs/quickstart",
    ),
    "train": (
        "Train a model from labelled pairs, anchors with positives and negatives, or bare sentences.",
        "samesense train train.tsv --dev dev.tsv --test test.tsv --output runs/first",
    ),
    "distil": (
        "Make a small, fast student of one or several teachers, from sentences alone; say what it keeps and gains.",
        "samesense distil sentences.txt --teacher default --student layers:3 --dev dev.tsv --output runs/small",
    ),
    "origin": (
        "Make a similarity from running documents, without labels, and explain it.",
        "samesense origin documents/ --output origins/mine",
    ),
    "harvest": (
        "Score sentence pairs of an Origin's own corpus, at scale and resumable, for a fast model to learn from.",
        "samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine --workers 4",
    ),
    "sweep": (
        "Train and judge every combination of settings, data and seeds in a file, and compare them.",
        "samesense sweep losses.toml --output sweeps/losses",
    ),
    "evaluate": (
        "Judge a model on labelled pairs: Spearman and Pearson of its scores, with 95 % intervals.",
        "samesense evaluate default --data stsb.test.tsv sts12.test.tsv",
    ),
    "compare": (
        "Judge several models on the same data, test the differences, and write one self-contained HTML page.",
        "samesense compare default runs/first --data benchmarks --suite sts,transfer --output report.html",
    ),
    "augment": (
        "Show what an augmentation makes of the positives of one's data, before anything is trained on it.",
        "samesense augment nli.tsv --augment deletion",
    ),
    "encode": (
        "Turn lines of text into vectors, one a line, in order.",
        "samesense encode default sentences.txt --output vectors.npy",
    ),
    "export": (
        "Write a model as a folder that runs without torch, in float32 and int8, and check it against torch.",
        "samesense export runs/first --output models/first-onnx --int8 --data dev.tsv",
    ),
    "similarity": (
        "Score pairs of texts: the cosine of their embeddings, from -1 to 1, or the score of a cross-encoder.",
        'samesense similarity default "A man is eating." "Someone has a meal."',
    ),
    "calibrate": (
        "Learn on labelled pairs what a model's scores mean: a value on the labels' scale, a probability, yes or no.",
        "samesense calibrate runs/first --data dev.tsv --figure calibration.png",
    ),
    "rerank": (
        "Find texts with an encoder, and order the best of them with a cross-encoder.",
        'samesense rerank texts.txt --model default --cross runs/cross --query "How do I get home?" --top 10',
    ),
    "serve": (
        "Serve a model over HTTP: OpenAI's embeddings, similarity, reranking, search, and a page to try it on.",
        "samesense serve default --port 8000 --api-key-file keys.txt",
    ),
    "index": (
        "Keep a collection of texts on disk and search it by meaning.",
        'samesense index build texts.index texts.txt, then: samesense index query texts.index "How do I get home?"',
    ),
    "mine": (
        "Find the pairs of texts that are closest in meaning, each pair once.",
        "samesense mine texts.txt --top 20 --threshold 0.8",
    ),
    "cluster": (
        "Find groups of near-duplicates: texts that are linked by pairs above a threshold.",
        "samesense cluster texts.txt --threshold 0.9",
    ),
    "whiten": (
        "Save a model with a whitening behind it, fitted on unlabelled texts.",
        "samesense whiten default train.tsv --dim 256 --output models/whitened",
    ),
    "doctor": (
        "Say what a data file is, and what is wrong with it.",
        "samesense doctor train.tsv --against dev.tsv test.tsv",
    ),
}
"""Per command what it does and an example. Said here, not in the functions, which are imported only to be run."""

for _name, (_what, _example) in COMMANDS.items():
    app.command(f"samesense.cli.{_name}:{_name}", name=_name, help=f"{_what}\n\n{_example}")


def main(arguments: list[str] | None = None) -> None:
    """Run a command: exit code 0 when done, 1 when a part failed, 2 on misuse or bad input, 130 when interrupted."""
    _quiet()
    show_messages()
    try:
        with needs_torch():
            app(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _fail(f"{str(error).strip()} See: samesense --help")
    except SamesenseError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted", code=130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _fail(message: str, code: int = 2) -> None:
    sys.stderr.write(f"samesense: error: {message}\n")
    sys.exit(code)


def _quiet() -> None:
    """Keep other libraries' notes and bars off the terminal, unless the user has set them."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TQDM_DISABLE", "1")  # our own bars say themselves when they show
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
