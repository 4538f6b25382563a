"""How work runs: shards on many workers, the trainer, threads and devices; its progress, and what was not read."""
