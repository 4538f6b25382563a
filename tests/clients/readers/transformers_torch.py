"""Open folders by transformers alone: the states of tokens, and their mean by hand."""

from reader import main


def rows(job):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(job["folder"])
    model = AutoModel.from_pretrained(job["folder"]).eval()
    with torch.inference_mode():
        read = tokenizer(job["inputs"], padding=True, truncation=True, return_tensors="pt")
        states = model(**read).last_hidden_state
        mask = read["attention_mask"].unsqueeze(-1)
    return ((states * mask).sum(1) / mask.sum(1)).tolist()


if __name__ == "__main__":
    main(rows, "transformers")
