"""Makes shards on a local Ray cluster of two machines, kills one of them, and notes how far it was then.

As a program: the folder of a world, that of the shards, the module whose ``make`` makes them, its settings as JSON, and
a subfolder of the shards if they are in one.
"""

import json
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    world, output, (module, settings, *within) = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
    machines = [cluster.add_node(num_cpus=1, object_store_memory=80 << 20) for _ in range(2)]
    cluster.wait_for_nodes()

    def kill_one():
        while (finished := len(list(output.joinpath(*within, "shards").glob("0*")))) < 4:
            time.sleep(0.02)
        (world / "killed-at").write_text(str(finished))
        cluster.remove_node(machines[0], allow_graceful=False)

    killer = threading.Thread(target=kill_one)
    killer.start()
    import_module(module).make(world, output, executor="ray", address=cluster.address, **json.loads(settings))
    killer.join()
    cluster.shutdown()
