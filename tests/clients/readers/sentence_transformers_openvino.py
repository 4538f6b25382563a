"""Open exported folders by the OpenVINO backend of sentence-transformers, which pools by itself."""

from reader import main


def rows(job):
    from sentence_transformers import SentenceTransformer

    # Of itself OpenVINO computes what has no eight bits in bfloat16, where the processor has it.
    options = {"file_name": "openvino_model_qint8_quantized.xml", "ov_config": {"INFERENCE_PRECISION_HINT": "f32"}}
    model = SentenceTransformer(job["folder"], device="cpu", backend="openvino", model_kwargs=options)
    return model.encode(job["inputs"], batch_size=job["batch"]).tolist()


if __name__ == "__main__":
    main(rows, "sentence-transformers", "optimum-intel", "openvino", "transformers")
