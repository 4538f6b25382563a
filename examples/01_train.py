"""Train on the sample that comes with the library, and say what was gained.

python examples/01_train.py [MODEL] [STEPS]
"""

import sys

from samesense.data import sample_path
from samesense.recipes.train import train


def main(model: str = "default", steps: int = 20, output: str = "runs/example") -> None:
    data, dev, test = (sample_path(part) for part in ("train", "dev", "test"))
    settings = {"model": model, "max_steps": steps}
    print(train(data, dev=dev, test=test, settings=settings, output=output, overwrite=True))


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
