"""Our objective in a plain sentence-transformers script: nothing else of samesense is needed to train.

python examples/03_own_trainer.py [MODEL] [STEPS]
"""

import sys
import tempfile

from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

from samesense.data import sample_path
from samesense.encoder.assembly.build import build
from samesense.losses.cosent import CoSENT


def main(model: str = "default", steps: int = 5) -> None:
    encoder = build(model)  # SentenceTransformer(...) does as well
    rows = [line.split("\t") for line in sample_path("train").read_text(encoding="utf-8").splitlines()[1:]]
    dataset = Dataset.from_dict(
        {
            "sentence1": [first for first, *_ in rows],
            "sentence2": [second for _, second, *_ in rows],
            "label": [float(label) for _, _, label, *_ in rows],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=16,
            learning_rate=2e-5,
            save_strategy="no",
            report_to="none",
            use_cpu=encoder.device.type == "cpu",
        )
        objective = CoSENT(encoder, temperature=0.05)
        trainer = SentenceTransformerTrainer(model=encoder, args=arguments, train_dataset=dataset, loss=objective)
        loss = trainer.train().training_loss
    print(f"{steps} steps, mean loss {loss:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
