"""Vectors of a file of texts by ``samesense encode --executor ray`` and by Ray Data: seconds, also after a kill.

python benchmarks/ray_data.py compare texts.txt --model MODEL --folder work
python benchmarks/ray_data.py compare texts.txt --model MODEL --folder work --kill-after 20

Both start a Ray cluster on this machine with two workers of one thread, read the same Parquet file, and write unit
vectors in float32. With ``--kill-after`` the whole process group is killed after so many seconds, and the same command
is given again: its seconds are those of the second call. Ray Data resumes with checkpoints alone, which are timed too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

BATCH = 16_384
"""Texts of a shard, of a row group of the input and of a batch of Ray Data."""

WORKERS = 2


class Encoder:
    """A worker of Ray Data, with the model of samesense."""

    def __init__(self, model: str) -> None:
        import samesense

        self._model = samesense.load(model)

    def __call__(self, batch: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        texts = batch["text"].tolist()
        return {"id": batch["id"], "vector": self._model.encode(texts, normalize=True)}


def encode_by_ray_data(model: str, rows: str, output: str, checkpoints: str | None) -> None:
    """Write a folder of Parquet files with an id and a vector in each row."""
    import ray

    # One more than the workers, which hold theirs to the end: the rows must be read and written, too.
    ray.init(num_cpus=WORKERS + 1, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    if checkpoints is not None:
        context.checkpoint_config = ray.data.checkpoint.CheckpointConfig(
            id_column="id", checkpoint_path=checkpoints, delete_checkpoint_on_success=False
        )
    dataset = ray.data.read_parquet(rows)
    encoded = dataset.map_batches(
        Encoder, fn_constructor_args=(model,), batch_size=BATCH, compute=ray.data.ActorPoolStrategy(size=WORKERS)
    )
    encoded.write_parquet(output)


def command_of(system: str, model: str, rows: Path, output: Path) -> list[str]:
    if system == "samesense":
        options = ["--columns", "text", "--normalize", "--shard-size", str(BATCH)]
        shared = ["--executor", "ray"]
        return [
            sys.executable,
            "-m",
            "samesense",
            "encode",
            model,
            str(rows),
            "--output",
            str(output),
            *options,
            *shared,
        ]
    options = ["--checkpoints", str(output) + "-checkpoints"] if system == "Ray Data, checkpoints" else []
    return [sys.executable, __file__, "ray-data", str(rows), "--model", model, "--folder", str(output), *options]


def run(command: list[str], kill_after: float | None) -> float:
    """Run a command, kill it after some seconds where wanted, and return the seconds that it took."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE)
    try:
        _, errors = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        subprocess.run([Path(sys.executable).with_name("ray"), "stop", "--force"], check=True, capture_output=True)
        return time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(errors.decode()[-2000:])
    return time.perf_counter() - started


def vectors_in(system: str, output: Path) -> npt.NDArray[np.float32]:
    if system == "samesense":
        return np.concatenate([np.load(path) for path in sorted((output / "shards").glob("*.npy"))])
    table = pq.read_table(output).sort_by("id")
    return np.stack(table["vector"].to_numpy())


def compare(texts: Path, model: str, folder: Path, kill_after: float | None) -> None:
    lines = texts.read_text(encoding="utf-8").splitlines()
    rows = folder / "texts.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": np.arange(len(lines)), "text": lines}), rows, row_group_size=BATCH)
    reference = None
    for system in ("samesense", "Ray Data", "Ray Data, checkpoints"):
        output = folder / system.replace(", ", "-").replace(" ", "-")
        for path in (output, output.with_name(f"{output.name}-checkpoints")):
            shutil.rmtree(path, ignore_errors=True)
        command = command_of(system, model, rows, output)
        if kill_after is not None:
            run(command, kill_after)
        seconds = run(command, None)
        vectors = vectors_in(system, output)
        if reference is None:
            reference = vectors
        same = vectors.shape == reference.shape and float(np.abs(vectors - reference).max())
        print(f"{system}: {seconds:.1f} s, {len(vectors)} vectors, largest difference {same}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["compare", "ray-data"])
    parser.add_argument("texts", help="a file of texts; of ray-data, the Parquet file")
    parser.add_argument("--model", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kill-after", type=float)
    parser.add_argument("--checkpoints")
    arguments = parser.parse_args()
    if arguments.action == "ray-data":
        rows, output = str(Path(arguments.texts).resolve()), str(arguments.folder.resolve())
        encode_by_ray_data(arguments.model, rows, output, arguments.checkpoints)
    else:
        compare(Path(arguments.texts), arguments.model, arguments.folder, arguments.kill_after)


if __name__ == "__main__":
    main()
