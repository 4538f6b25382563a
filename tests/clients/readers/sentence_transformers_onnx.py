"""Open exported folders by the ONNX backend of sentence-transformers, which pools by itself."""

from reader import main


def rows(known):
    from sentence_transformers import SentenceTransformer

    file = {"onnx": "onnx/model.onnx", "onnx-int8": "onnx/model_quantized.onnx"}[known["backend"]]
    model = SentenceTransformer(known["folder"], device="cpu", backend="onnx", model_kwargs={"file_name": file})
    return model.encode(known["inputs"], batch_size=known["batch"]).tolist()


if __name__ == "__main__":
    main(rows, "sentence-transformers", "optimum", "optimum-onnx", "onnxruntime")
