"""The ``samesense`` command: finds the command, and turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys

from cyclopts import App, CycloptsError

from samesense import __version__
from samesense.errors import SamesenseError

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
        "Train a model from labelled pairs, scored, binary or NLI, with CoSENT or another loss.",
        "samesense train train.tsv --dev dev.tsv --test test.tsv --output runs/first",
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
    "encode": (
        "Turn lines of text into vectors, one a line, in order.",
        "samesense encode default sentences.txt --output vectors.npy",
    ),
    "similarity": (
        "Score pairs of texts: the cosine of their embeddings, from -1 to 1, or the score of a cross-encoder.",
        'samesense similarity default "A man is eating." "Someone has a meal."',
    ),
    "rerank": (
        "Find texts with an encoder, and order the best of them with a cross-encoder.",
        'samesense rerank texts.txt --model default --cross runs/cross --query "How do I get home?" --top 10',
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
    """Run a command: exit code 0 when done, 2 on misuse or bad input, 130 when interrupted."""
    _quiet()
    try:
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
