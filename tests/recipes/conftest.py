import pytest


@pytest.fixture
def lines(tmp_path, sentences):
    """A text file with one sentence a line, each once."""
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(dict.fromkeys(sentences)) + "\n")
    return path
