// Open exported folders by transformers.js in Node: the pipeline, and the second output that it does not show.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [asked, out, home] = process.argv.slice(2);
const require = createRequire(path.join(home, "package.json"));
const { env, pipeline } = await import(pathToFileURL(require.resolve("@huggingface/transformers")).href);
env.allowRemoteModels = false;

const poolings = ["mean", "cls"]; // "last_token" takes the last column, which is right with padding on the left only

async function rows(known) {
  env.localModelPath = path.dirname(known.folder);
  const dtype = known.backend === "onnx" ? "fp32" : "q8";
  const extractor = await pipeline("feature-extraction", path.basename(known.folder), { dtype });
  const texts = known.inputs.map((text) => known.prompt + text);
  if (poolings.includes(known.pooling) && known.batch > 1) return (await extractor(texts, { pooling: known.pooling })).tolist();
  const given = [];
  for (let at = 0; at < texts.length; at += known.batch) {
    const read = extractor.tokenizer(texts.slice(at, at + known.batch), { padding: true, truncation: true });
    given.push(...(await extractor.model(read)).sentence_embedding.tolist());
  }
  return given;
}

const given = {};
for (const known of JSON.parse(fs.readFileSync(asked))) {
  try {
    given[known.name] = { rows: await rows(known) };
  } catch (error) {
    given[known.name] = { error: String(error).slice(0, 600) };
  }
}
const versions = {};
for (const name of ["@huggingface/transformers", "onnxruntime-node"]) {
  versions[name] = JSON.parse(fs.readFileSync(path.join(home, "node_modules", name, "package.json"))).version;
}
fs.writeFileSync(out, JSON.stringify({ rows: given, versions }));
