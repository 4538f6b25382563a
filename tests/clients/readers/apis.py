"""Call a running `samesense serve` by common clients; each function returns the vectors of the texts."""

import os
from importlib.util import find_spec
from pathlib import Path

from reader import main

KEY = "none is asked for"


def vocabulary_of_openai():
    """Let tiktoken find the vocabulary of OpenAI's models, which litellm has, so that nothing is downloaded."""
    home = Path(find_spec("litellm").submodule_search_locations[0])
    os.environ["TIKTOKEN_CACHE_DIR"] = str(home / "litellm_core_utils" / "tokenizers")


def openai(job):
    from openai import OpenAI

    client = OpenAI(base_url=job["url"], api_key=KEY)
    return [item.embedding for item in client.embeddings.create(model=job["model"], input=job["inputs"]).data]


def langchain(job, **settings):
    from langchain_openai import OpenAIEmbeddings

    vocabulary_of_openai()
    model = OpenAIEmbeddings(model=job["model"], base_url=job["url"], api_key=KEY, **settings)
    return model.embed_documents(job["inputs"])


def langchain_texts(job):
    return langchain(job, check_embedding_ctx_length=False)


def litellm(job):
    import litellm

    answer = litellm.embedding(model=f"openai/{job['model']}", input=job["inputs"], api_base=job["url"], api_key=KEY)
    return [item["embedding"] for item in answer.data]


def llama_index(job):
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding

    model = OpenAILikeEmbedding(model_name=job["model"], api_base=job["url"], api_key=KEY)
    return model.get_text_embedding_batch(job["inputs"])


def haystack(job):
    from haystack import Document
    from haystack.components.embedders import OpenAIDocumentEmbedder
    from haystack.utils import Secret

    embedder = OpenAIDocumentEmbedder(
        model=job["model"], api_base_url=job["url"], api_key=Secret.from_token(KEY), progress_bar=False
    )
    return [
        document.embedding for document in embedder.run([Document(content=text) for text in job["inputs"]])["documents"]
    ]


def chromadb(job):
    import chromadb
    from chromadb.config import Settings
    from chromadb.utils.embedding_functions import OpenAIEmbeddingFunction

    function = OpenAIEmbeddingFunction(api_key=KEY, api_base=job["url"], model_name=job["model"])
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    collection = client.create_collection("texts", embedding_function=function)
    ids = [str(id_) for id_ in range(len(job["inputs"]))]
    collection.add(ids=ids, documents=job["inputs"])
    stored = collection.get(ids=ids, include=["embeddings"])
    rows = dict(zip(stored["ids"], stored["embeddings"], strict=True))
    return [rows[id_].tolist() for id_ in ids]


def cohere(job):
    import cohere

    answer = cohere.ClientV2(base_url=job["url"].removesuffix("/v1"), api_key=KEY).rerank(
        model=job["model"], query=job["inputs"][0], documents=job["inputs"]
    )
    scores = {result.index: result.relevance_score for result in answer.results}
    return [[scores[index]] for index in range(len(job["inputs"]))]


def litellm_rerank(job):
    import litellm

    answer = litellm.rerank(
        model=f"cohere/{job['model']}",
        query=job["inputs"][0],
        documents=job["inputs"],
        api_base=job["url"].removesuffix("/v1"),
        api_key=KEY,
    )
    scores = {result["index"]: result["relevance_score"] for result in answer.results}
    return [[scores[index]] for index in range(len(job["inputs"]))]


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


def rows(job):
    return CLIENTS[job["name"]](job)


if __name__ == "__main__":
    main(rows, *PACKAGES)
