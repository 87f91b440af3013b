// The vectors in a browser, with its own WebCrypto, and documents of a service of another origin. The environment names
// the service, as clients/testdata/check.bash sets it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const chromium = process.env.LICET_CHROMIUM; // as the check of this client sets it
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

const skip = chromium === undefined && "LICET_CHROMIUM names no Chromium";

/** Returns the text of a page once its scripts have ended. */
async function shown(page) {
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
    return stdout;
  } finally {
    server.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

test("vectors in Chromium", { skip }, async () => {
  const count = JSON.parse(await readFile(vectors, "utf8")).vectors.length;
  assert.match(await shown(page), new RegExp(`<body>${count} of ${count}`));
});

test("documents of another origin, with their ETag, in Chromium", { skip }, async () => {
  const { LICET_SERVICE: url, LICET_ACCOUNT: account, LICET_API_KEY: key } = process.env;
  const made = await fetch(`${url}/v1/receipt_keys`, { method: "PUT", headers: { Authorization: `Bearer ${key}` } });
  assert.equal(made.status, 200);
  const stdout = await shown(`<!doctype html><script type="module">
for (const name of ["jwks.json", "revocations"]) {
  const address = "${url}/v1/accounts/${account}/test/" + name;
  try {
    const first = await fetch(address, { cache: "no-store" });
    const etag = first.headers.get("ETag");
    const again = await fetch(address, { cache: "no-store", headers: { "If-None-Match": etag } });
    document.body.append([name, first.status, again.status, again.headers.get("ETag") === etag].join(" ") + "; ");
  } catch (problem) {
    document.body.append(name + ": " + problem + "; ");
  }
}
</script><body>`);
  assert.match(stdout, /<body>jwks\.json 200 304 true; revocations 200 304 true; /);
});
