"""A command line that is not understood: which rule, what was received, and what to write."""

import subprocess
import sys

import pytest

CASES = {
    "evaluate default clean.csv": 'Data files come after --data, as in "samesense evaluate default --data clean.csv".',
    "evaluate m a.csv --json": 'Data files come after --data, as in "samesense evaluate m --json --data a.csv".',
    "evaluate": 'samesense evaluate needs MODEL, as in "samesense evaluate default --data stsb.test.tsv',
    "index build": 'samesense index build needs FOLDER, as in "samesense index build my.index docs/".',
    "mine a.txt b": "samesense mine has no place for 'b'. Put a text of several words in quotes; options begin",
    "distil a.txt -o x --teacher-weights 1 2": "--teacher-weights takes one value, and is repeated for more; "
    'received 2 after one --teacher-weights. Write "--teacher-weights 1 --teacher-weights 2".',
    "distil a.txt -o x --teacher a b d": "--teacher takes one value, and is repeated for more; received 3 after",
    "train a.csv -o x --guard a.tsv b.tsv": "--guard takes one value, and is repeated for more; received 2 after one",
    "train a.csv -o x b.csv": "samesense train has no place for 'b.csv'. Put all files together, before the options.",
    "train a.csv": '--output is missing. Add it, as in "samesense train a.csv --output NAME".',
    "train a.csv --outptu x": "Unknown option: --outptu. Did you mean --output?",
    "rerank a.txt --model m --cross=c -q x": "Unknown option: -q.",
    "train a.csv --origin.reference 3": "--output is missing. Add it, as in",
    "train a.csv --out=x": "Unknown option: --out. Here it is --output.",
    "train -- a.csv --outptu": "--output is missing.",
    "train a.csv --output": "--output needs a value after it.",
    "evaluate m --data a.csv --label-range 0": "--label-range needs 2 values after it; received 1.",
    "train a.csv -o x --lr 1e-4": "Unknown option: --lr. Here it is --learning-rate.",
    "train a.csv -o x --fp16": "Unknown option: --fp16. Here it is --precision bfloat16.",
    "whiten m t.txt -o x --dimensions 64": "Unknown option: --dimensions. Here it is --dim.",
    "evaluate m --lr 1": "Unknown option: --lr.",
    "train a.csv -o x --epoch 3": "Unknown option: --epoch. Did you mean --epochs?",
    "train a.csv -o x --device cpu": "There is no --device here: a GPU is taken if there is one. For the CPU, set",
    "similarity m a --jsonl": "Unknown option: --jsonl. Did you mean --json? Put -- before texts",
    "similarity m --treshold 0.5": "Unknown option: --treshold. Did you mean --threshold?",
    "explain m --file d.tsv": "Unknown option: --file. Put -- before texts and files that begin so.",
    "index query a.index --foo": "Unknown option: --foo.",
    "dedup --treshold=0.9": "Unknown option: --treshold=0.9. Did you mean --threshold?",
    "encode m a.txt --keeep all": "Unknown option: --keeep. Did you mean --keep?",
    "similarity m a --lr": "Unknown option: --lr.",
    "rerank a.txt --model m --cross c --query --json": "--query needs a value after it; received --json, which",
    "search a.index cats": 'Unknown command "search". Here it is: samesense index query.',
    "index search a.index cats": 'Unknown command "search". Here it is: samesense index query.',
    "nothing": 'Unknown command "nothing". Available commands: quickstart, train',
    "mine a.txt --top ten": "--top takes a whole number; received 'ten'.",
    "mine a.txt --top 2.9": "--top takes a whole number; received '2.9'.",
    "index delete a.index 11.6": "IDS takes a whole number; received '11.6'.",
    "index delete a.index 1 2.0": "IDS takes a whole number; received '2.0'.",
    "label a.txt -o b.tsv --max-calls 2.5e-1": "--max-calls takes a whole number; received '2.5e-1'.",
    "calibrate m --min-precision x": "--min-precision takes a number; received 'x'.",
    "mine a.txt --threshold x": "--threshold takes a number or 'calibrated'; received 'x'.",
    "doctor -": "Standard input (-) is not taken here. Write it to a file whose name ends in its format, such as .csv.",
    "evaluate default --data -": "Standard input (-) is not taken here.",
    "doctor a.csv --against": "--against needs at least one file after it; received none.",
    "dedup a.txt --by x": 'Invalid value "x" for --by. Choose from: "representative", "linked".',
}


@pytest.mark.parametrize("line", CASES)
def test_misuse_is_said_with_what_to_write(run, line):
    code, out, err = run(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"samesense: error: {CASES[line]}"), err
    assert line.startswith("doctor") or (" See: samesense" in err and err.endswith(" --help\n"))


EARLY = """
import sys
from samesense.cli.main import main
sys.modules["torch"] = None  # an import of it fails
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train {toy}/train.tsv -o {toy}", "is not empty. Choose another output folder, or pass --overwrite"),
        ("sweep none.toml -o out", "none.toml: there is no such file."),
    ],
)
def test_what_a_path_says_is_said_before_torch_is_loaded(line, message, toy_pairs):
    words = [word.format(toy=toy_pairs) for word in line.split()]
    done = subprocess.run([sys.executable, "-c", EARLY, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.posix
@pytest.mark.parametrize("line", ["encode m -", "similarity m", "mine -"])
def test_a_closed_standard_input_is_said(line):
    words = [sys.executable, "-m", "samesense", *line.split()]
    done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Standard input is read here, and it is closed" in done.stderr.splitlines()[-1]


def test_a_file_that_begins_like_an_option_is_told_its_path(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-lead.txt").write_text("a man eats\na dog runs\n")
    assert run("doctor", "-lead.txt")[2].startswith(
        "samesense: error: -lead.txt is a file here, and is read as an option. Write ./-lead.txt."
    )
    assert run("doctor", "./-lead.txt")[0] == 0


def test_an_unknown_option_may_be_too_long_for_a_file(run):
    code, _, message = run("train", f"--{'x' * 300}")
    assert code == 2
    assert message.startswith("samesense: error: Unknown option: ")
