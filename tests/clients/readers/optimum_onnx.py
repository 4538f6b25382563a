"""Open exported folders by optimum: the states of tokens, and their mean by hand."""

from reader import main


def rows(job):
    import torch
    from optimum.onnxruntime import ORTModelForFeatureExtraction
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(job["folder"])
    model = ORTModelForFeatureExtraction.from_pretrained(job["folder"], file_name="model.onnx", subfolder="onnx")
    texts = [job["prompt"] + text for text in job["inputs"]]
    read = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    states = model(**read).last_hidden_state
    mask = read["attention_mask"].unsqueeze(-1)
    return ((states * mask).sum(1) / mask.sum(1)).detach().to(torch.float32).tolist()


if __name__ == "__main__":
    main(rows, "optimum", "optimum-onnx", "transformers", "onnxruntime")
