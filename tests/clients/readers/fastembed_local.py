"""Open exported folders by fastembed, as models of one's own; run in a venv of its own."""

from reader import main


def rows(job):
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"local/{job['name']}"
    TextEmbedding.add_custom_model(
        model=name,
        pooling=PoolingType.DISABLED,
        normalization=False,
        sources=ModelSource(hf=name),
        dim=len(job["rows"][0]),
        model_file="onnx/model.onnx",
    )
    model = TextEmbedding(model_name=name, specific_model_path=job["folder"])
    return [row.tolist() for row in model.embed([job["prompt"] + text for text in job["inputs"]])]


if __name__ == "__main__":
    main(rows, "fastembed", "onnxruntime")
