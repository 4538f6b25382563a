"""Call a running `samesense serve` by common clients, with the code of docs/clients.md; write what they return."""

import os
from importlib.util import find_spec
from pathlib import Path

from reader import documented, main

SETTING = "check_embedding_ctx_length=False"


def prepare():
    """Keep tiktoken and Chroma from connecting out; litellm has the vocabulary of OpenAI's models."""
    home = Path(find_spec("litellm").submodule_search_locations[0])
    os.environ["TIKTOKEN_CACHE_DIR"] = str(home / "litellm_core_utils" / "tokenizers")
    os.environ["ANONYMIZED_TELEMETRY"] = "False"


def run(job, *blocks, changed=()):
    """Execute blocks of the page for the job's server and model; return the names that they assign."""
    names = {"texts": job["inputs"]}
    server = ("http://127.0.0.1:8000", job["url"].removesuffix("/v1"))
    for block in blocks:
        code = documented("clients.md", *block)
        for written, value in (server, ("default", job["model"]), *changed):
            assert written in code, f"{block} does not have {written}"
            code = code.replace(written, value)
        exec(code, names)
    return names


def vectors(title, **options):
    return lambda job: [list(map(float, vector)) for vector in run(job, (title,), **options)["vectors"]]


def scores(*blocks):
    def by_text(job):
        by_index = run(job, *blocks)["scores"]
        return [[by_index[index]] for index in range(len(job["inputs"]))]

    return by_text


CLIENTS = {
    "openai": vectors("OpenAI"),
    "langchain-openai": vectors("LangChain", changed=[(SETTING, SETTING.replace("False", "True"))]),
    f"langchain-openai, {SETTING}": vectors("LangChain"),
    "litellm": vectors("LiteLLM"),
    "llama-index": vectors("LlamaIndex"),
    "haystack": vectors("Haystack"),
    "chromadb": vectors("Chroma"),
    "cohere": scores(("Cohere",)),
    "litellm rerank": scores(("LiteLLM",), ("LiteLLM", 1)),
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
    prepare()
    main(rows, *PACKAGES)
