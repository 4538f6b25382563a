"""Train on the sample that comes with the library, and say what was gained.

python examples/01_train.py [MODEL] [STEPS]
"""

import sys
from pathlib import Path

from samesense.data import read_pairs, sample_path
from samesense.recipes.cosent import recipe as cosent
from samesense.recipes.settings import CosentSettings
from samesense.reports import results_table


def main(model: str = "default", steps: int = 20, output: str = "runs/example") -> None:
    train, dev, test = (read_pairs(sample_path(part)) for part in ("train", "dev", "test"))
    settings = CosentSettings(model=model, max_steps=steps)
    trained = cosent.run(train, settings, Path(output), dev=dev, test=test, overwrite=True)
    print(results_table(trained.results))
    print(f"model: {trained.folder}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
