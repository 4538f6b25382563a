"""A harvest on a local Ray cluster of two machines, one of which is killed on the way; notes how far it was then."""

import sys
import threading
import time
from pathlib import Path

from ray.cluster_utils import Cluster

from tests.recipes.harvest_world import make

if __name__ == "__main__":
    place, output = Path(sys.argv[1]), Path(sys.argv[2])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
    machines = [cluster.add_node(num_cpus=1, object_store_memory=80 << 20) for _ in range(2)]
    cluster.wait_for_nodes()

    def kill_one():
        while (finished := len(list((output / "shards").glob("*.parquet")))) < 4:
            time.sleep(0.02)
        (place / "killed-at").write_text(str(finished))
        cluster.remove_node(machines[0], allow_graceful=False)

    killer = threading.Thread(target=kill_one)
    killer.start()
    make(place, output, executor="ray", address=cluster.address)
    killer.join()
    cluster.shutdown()
