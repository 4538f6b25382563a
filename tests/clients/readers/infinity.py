"""Open folders by the engine of Infinity."""

import asyncio

from reader import main


async def embedded(job):
    from infinity_emb import AsyncEngineArray, EngineArgs

    arguments = EngineArgs(
        model_name_or_path=job["folder"],
        engine="torch",
        device="cpu",
        bettertransformer=False,
        compile=False,
        model_warmup=False,
        dtype="float32",
    )
    array = AsyncEngineArray.from_args([arguments])
    engine = array[0]
    async with engine:
        rows, _ = await engine.embed(sentences=[job["prompt"] + text for text in job["inputs"]])
    return [list(map(float, row)) for row in rows]


def rows(job):
    return asyncio.run(embedded(job))


if __name__ == "__main__":
    main(rows, "infinity-emb", "sentence-transformers", "transformers")
