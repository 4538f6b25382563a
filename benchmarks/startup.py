"""Wall time of ``samesense --help`` and of ``import samesense``, next to ``import sentence_transformers``.

python benchmarks/startup.py
"""

from __future__ import annotations

import subprocess
import sys

from alternate import alternate, arguments, report


def main() -> None:
    args = arguments(__doc__)

    def python(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    ways = {
        "import sentence_transformers": lambda: python("import sentence_transformers"),
        "import samesense": lambda: python("import samesense"),
        "samesense --help": lambda: python("from samesense.cli.main import main; main(['--help'])"),
        "samesense train --help": lambda: python("from samesense.cli.main import main; main(['train', '--help'])"),
    }
    report("start-up", alternate(ways, args.rounds), 1, "starts", "import sentence_transformers")


if __name__ == "__main__":
    main()
