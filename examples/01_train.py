"""Train on the sample that comes with the library, and evaluate before and after.

python examples/01_train.py [MODEL] [STEPS]
"""

import sys

import samesense
from samesense.data import sample_path


def main(model: str = "default", steps: int = 20, output: str = "runs/example") -> None:
    train, dev, test = (samesense.read(sample_path(part)) for part in ("train", "dev", "test"))
    print(samesense.train(train, dev=dev, test=test, model=model, max_steps=steps, output=output, overwrite=True))


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
