"""Ask a running `samesense serve` by the clients that people have; each is one name, and gives the vectors of texts."""

import os
from importlib.util import find_spec
from pathlib import Path

from reader import main

KEY = "none is asked for"


def vocabulary_of_openai():
    """Let tiktoken find the vocabulary of OpenAI's models, which litellm has, so that nothing is downloaded."""
    home = Path(find_spec("litellm").submodule_search_locations[0])
    os.environ["TIKTOKEN_CACHE_DIR"] = str(home / "litellm_core_utils" / "tokenizers")


def openai(known):
    from openai import OpenAI

    client = OpenAI(base_url=known["url"], api_key=KEY)
    return [one.embedding for one in client.embeddings.create(model=known["model"], input=known["inputs"]).data]


def langchain(known, **settings):
    from langchain_openai import OpenAIEmbeddings

    vocabulary_of_openai()
    model = OpenAIEmbeddings(model=known["model"], base_url=known["url"], api_key=KEY, **settings)
    return model.embed_documents(known["inputs"])


def langchain_texts(known):
    return langchain(known, check_embedding_ctx_length=False)


def litellm(known):
    import litellm

    answer = litellm.embedding(
        model=f"openai/{known['model']}", input=known["inputs"], api_base=known["url"], api_key=KEY
    )
    return [one["embedding"] for one in answer.data]


def llama_index(known):
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding

    model = OpenAILikeEmbedding(model_name=known["model"], api_base=known["url"], api_key=KEY)
    return model.get_text_embedding_batch(known["inputs"])


def haystack(known):
    from haystack import Document
    from haystack.components.embedders import OpenAIDocumentEmbedder
    from haystack.utils import Secret

    embedder = OpenAIDocumentEmbedder(
        model=known["model"], api_base_url=known["url"], api_key=Secret.from_token(KEY), progress_bar=False
    )
    return [one.embedding for one in embedder.run([Document(content=text) for text in known["inputs"]])["documents"]]


def chromadb(known):
    import chromadb
    from chromadb.config import Settings
    from chromadb.utils.embedding_functions import OpenAIEmbeddingFunction

    function = OpenAIEmbeddingFunction(api_key=KEY, api_base=known["url"], model_name=known["model"])
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    collection = client.create_collection("texts", embedding_function=function)
    ids = [str(at) for at in range(len(known["inputs"]))]
    collection.add(ids=ids, documents=known["inputs"])
    kept = collection.get(ids=ids, include=["embeddings"])
    rows = dict(zip(kept["ids"], kept["embeddings"], strict=True))
    return [rows[at].tolist() for at in ids]


def cohere(known):
    import cohere

    answer = cohere.ClientV2(base_url=known["url"].removesuffix("/v1"), api_key=KEY).rerank(
        model=known["model"], query=known["inputs"][0], documents=known["inputs"]
    )
    scores = {one.index: one.relevance_score for one in answer.results}
    return [[scores[at]] for at in range(len(known["inputs"]))]


def litellm_rerank(known):
    import litellm

    answer = litellm.rerank(
        model=f"cohere/{known['model']}",
        query=known["inputs"][0],
        documents=known["inputs"],
        api_base=known["url"].removesuffix("/v1"),
        api_key=KEY,
    )
    scores = {one["index"]: one["relevance_score"] for one in answer.results}
    return [[scores[at]] for at in range(len(known["inputs"]))]


CLIENTS = {
    "openai": openai,
    "langchain-openai": langchain,
    "langchain-openai, check_embedding_ctx_length=False": langchain_texts,
    "litellm": litellm,
    "llama-index": llama_index,
    "haystack": haystack,
    "chromadb": chromadb,
    "cohere": cohere,
    "litellm rerank": litellm_rerank,
}

PACKAGES = (
    "openai",
    "langchain-openai",
    "litellm",
    "llama-index-embeddings-openai-like",
    "haystack-ai",
    "chromadb",
    "cohere",
)


def rows(known):
    return CLIENTS[known["name"]](known)


if __name__ == "__main__":
    main(rows, *PACKAGES)
