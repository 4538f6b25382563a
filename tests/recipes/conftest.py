import pytest

from tests.conftest import random_bert

WORDS = "red blue green old new small large warm cold dry wet loud calm late".split()


@pytest.fixture
def lines(tmp_path, sentences):
    """A text file with one sentence a line, each once."""
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(dict.fromkeys(sentences)) + "\n")
    return path


@pytest.fixture(scope="session")
def reader(tmp_path_factory):
    """A random model that knows the words: texts with common words score higher, until training harms that."""
    return str(random_bert(tmp_path_factory.mktemp("models") / "reader", WORDS))
