"""Kill an encoding at its file operations, each one in turn, and finish what it left; prints how many it survived."""

import json
import os
import shutil
import sys
from pathlib import Path

from tests.dying import dies_at
from tests.inference.sharded_world import make, shards, world


def listed(output):
    """What the manifest says in the end."""
    content = json.loads((output / "manifest.json").read_text())
    return content["status"], content["input"], content["shards"]


if __name__ == "__main__":
    os.fsync = lambda handle: None  # it guards against loss of power, and takes long
    folder, stride = Path(sys.argv[1]), int(sys.argv[2])
    place, output = folder / "world", folder / "killed"
    world(place)
    whole, _ = make(place, folder / "whole")
    expected, survived, step = shards(folder / "whole"), 0, 1
    while dies_at(step, lambda: make(place, output), within=output):
        kept = shards(output) if (output / "shards").exists() else {}
        assert all(content == expected[name] for name, content in kept.items() if name[0] != "."), step
        assert make(place, output)[0] == whole, step
        assert shards(output) == expected, step
        assert listed(output) == listed(folder / "whole"), step
        shutil.rmtree(output)
        survived, step = survived + 1, step + stride
    sys.stdout.write(f"{survived}\n")
