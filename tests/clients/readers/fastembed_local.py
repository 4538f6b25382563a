"""Open exported folders by fastembed, as models of one's own; run in a venv of its own."""

from reader import main


def rows(known):
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"local/{known['name']}"
    TextEmbedding.add_custom_model(
        model=name,
        pooling=PoolingType.DISABLED,
        normalization=False,
        sources=ModelSource(hf=name),
        dim=len(known["rows"][0]),
        model_file="onnx/model.onnx",
    )
    model = TextEmbedding(model_name=name, specific_model_path=known["folder"])
    return [row.tolist() for row in model.embed([known["prompt"] + text for text in known["inputs"]])]


if __name__ == "__main__":
    main(rows, "fastembed", "onnxruntime")
