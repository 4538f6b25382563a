"""Kill a harvest at its file operations, each one in turn, and finish what it left; prints how many it survived."""

import os
import shutil
import sys
from pathlib import Path

from tests.dying import dies_at
from tests.recipes.harvest_world import make, shards, world

if __name__ == "__main__":
    os.fsync = lambda handle: None  # it guards against loss of power, and takes long
    folder, stride = Path(sys.argv[1]), int(sys.argv[2])
    place, output = world(folder / "world"), folder / "killed"
    whole = make(place, folder / "whole")[0]
    step = 1
    while dies_at(step, lambda: make(place, output), within=output):
        kept = shards(output) if (output / "shards").exists() else {}
        assert all(content == shards(folder / "whole")[name] for name, content in kept.items() if name[0] != ".")
        again = make(place, output)[0]
        assert shards(output) == shards(folder / "whole"), step
        assert (again.scored, again.undefined, again.pairs) == (whole.scored, whole.undefined, whole.pairs)
        shutil.rmtree(output)
        step += stride
    sys.stdout.write(f"{step // stride}\n")
