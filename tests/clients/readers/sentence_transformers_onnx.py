"""Open exported folders by the ONNX backend of sentence-transformers, which pools by itself."""

from reader import main


def rows(job):
    from sentence_transformers import SentenceTransformer

    file = {"onnx": "onnx/model.onnx", "onnx-int8": "onnx/model_quantized.onnx"}[job["backend"]]
    model = SentenceTransformer(job["folder"], device="cpu", backend="onnx", model_kwargs={"file_name": file})
    return model.encode(job["inputs"], batch_size=job["batch"]).tolist()


if __name__ == "__main__":
    main(rows, "sentence-transformers", "optimum", "optimum-onnx", "onnxruntime")
