// The vectors in a browser, with its own WebCrypto.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const chromium = "/usr/bin/chromium";
const vectors = process.env.LICET_VECTORS ?? new URL("../../../testdata/receipts/vectors.json", import.meta.url);
const page = `<!doctype html><script type="module">
import * as verify from "./verify.js";
import * as documents from "./documents.js";
import { run } from "./vectors.mjs";
const { vectors, ...common } = await (await fetch("./vectors.json")).json();
let good = 0;
for (const v of vectors) {
  const [got] = await run(documents, verify, common, v);
  if (got === v.want) good++;
  else document.body.append(v.name + ": " + got + "; ");
}
document.body.append(good + " of " + vectors.length);
</script><body>`;

test("vectors in Chromium", { skip: !existsSync(chromium) && "no Chromium" }, async () => {
  const server = createServer(async (request, response) => {
    const name = request.url.slice(1);
    response.setHeader("Content-Type", /js$/.test(name) ? "text/javascript" : "text/html");
    if (name === "") return response.end(page);
    const beside = name.endsWith(".mjs") ? import.meta.url : import.meta.resolve("licet");
    const file = name === "vectors.json" ? vectors : new URL(name, beside);
    readFile(file).then((text) => response.end(text), () => response.writeHead(404).end());
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const profile = await mkdtemp(join(tmpdir(), "chromium-"));
  try {
    const { stdout } = await promisify(execFile)(chromium, [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${profile}`,
      "--virtual-time-budget=60000", "--dump-dom", `http://127.0.0.1:${server.address().port}/`,
    ], { timeout: 120_000 });
    const count = JSON.parse(await readFile(vectors, "utf8")).vectors.length;
    assert.match(stdout, new RegExp(`<body>${count} of ${count}`));
  } finally {
    server.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
