"""Processes that fork after a model was loaded, as workers of Celery do, answer as their parent does."""

import os
import subprocess
import sys

import pytest

CODE = """if True:
    import os, signal, sys
    import numpy as np
    import torch
    import samesense
    model = samesense.load(sys.argv[1], device="cpu", precision="float32", threads=2)
    texts = [f"the dog runs {number}" for number in range(64)]
    torch.ones(600, 600) @ torch.ones(600, 600)  # which needs the threads that a fork leaves behind
    expected = model.encode(texts)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        torch.ones(600, 600) @ torch.ones(600, 600)
        np.testing.assert_allclose(model.encode(texts), expected, atol=1e-5)
        os._exit(torch.get_num_threads())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), torch.get_num_threads() > 0)
"""


@pytest.mark.slow
@pytest.mark.posix
def test_a_child_computes_on_one_thread_and_does_not_hang(tiny_trunk):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("TOKENIZERS_PARALLELISM", None)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tiny_trunk)], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == ["1", "True"]
    assert "forked" not in done.stderr
