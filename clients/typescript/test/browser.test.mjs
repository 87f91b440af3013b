// The vectors in a browser, with its own WebCrypto, and a program and documents of a service of another origin. The
// environment names the service, as clients/testdata/check.bash sets it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

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
await fetch("./shown", { method: "POST", body: document.body.textContent });
</script><body>`;

const skip = chromium === undefined && "LICET_CHROMIUM names no Chromium";

/** Returns the text that a page sends at the end of its script. */
async function shown(page) {
  let send, fail;
  const sent = new Promise((resolve, reject) => [send, fail] = [resolve, reject]);
  const server = createServer(async (request, response) => {
    const name = request.url.slice(1);
    if (name === "shown") return send(await text(request)), response.end();
    response.setHeader("Content-Type", /js$/.test(name) ? "text/javascript" : "text/html");
    if (name === "") return response.end(page);
    const beside = name.endsWith(".mjs") ? import.meta.url : import.meta.resolve("licet");
    const file = name === "vectors.json" ? vectors : new URL(name, beside);
    readFile(file).then((bytes) => response.end(bytes), () => response.writeHead(404).end());
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const profile = await mkdtemp(join(tmpdir(), "chromium-"));
  const browser = execFile(chromium, [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${profile}`,
    `http://127.0.0.1:${server.address().port}/`,
  ], { timeout: 120_000 }, (error) => fail(error ?? new Error("Chromium has ended")));
  const ended = once(browser, "close");
  try {
    return await sent;
  } finally {
    browser.kill();
    await ended;
    server.closeAllConnections();
    server.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

test("vectors in Chromium", { skip }, async () => {
  const count = JSON.parse(await readFile(vectors, "utf8")).vectors.length;
  assert.equal(await shown(page), `${count} of ${count}`);
});

/** Asks the service with the API key, and returns the data of its answer. */
async function api(method, path, body) {
  const { LICET_SERVICE: url, LICET_API_KEY: key } = process.env;
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const response = await fetch(`${url}/v1/${path}`, { method, headers, body: JSON.stringify(body) });
  const answer = await response.json();
  assert.equal(answer.code, 0, answer.message);
  return answer.data;
}

test("a program with a service of another origin, in Chromium", { skip }, async () => {
  const { root } = await api("PUT", "receipt_keys");
  await api("PUT", "products/page", {
    name: "Page", max_devices: 1, self_service_deactivation: true, trial: { validity: "P14D", per: "device" },
  });
  const { licenses } = await api("POST", "licenses", { product_id: "page", quantity: 1 });
  const options = {
    url: process.env.LICET_SERVICE, root, accountId: process.env.LICET_ACCOUNT, mode: "test", productId: "page",
    deviceId: "chromium",
  };
  const said = await shown(`<!doctype html><script type="module">
import { Program } from "./index.js";
import { IndexedDBStore } from "./indexeddb.js";
const options = { ...${JSON.stringify(options)}, receiptSeconds: 3600 };
const started = (more) => new Program({ ...options, store: new IndexedDBStore("page"), ...more });
const trying = (more) => started({ store: new IndexedDBStore("trial"), deviceId: "trying", ...more });
const show = ({ allowed, reason, online }) => document.body.append([allowed, reason, online].join(" ") + "; ");
try {
  show(await started().check());
  await started().activate("${licenses[0].license_key}", { deviceName: "Chromium" });
  show(await started({ url: "http://127.0.0.1:1" }).check()); // by what the page has stored
  show(await started({ deviceId: "another", url: "http://127.0.0.1:1", retryFor: 0 }).check());
  show(await started({ now: () => Date.now() + 2_700_000 }).check()); // renews the receipt
  await started().validate();
  await started().deactivate();
  show(await started().check());
  document.body.append("trial: " + (await trying().trial()).trial + "; ");
  show(await trying({ url: "http://127.0.0.1:1" }).check());
  const large = new IndexedDBStore("large");
  const text = "x".repeat(20_000_000); // more than localStorage takes
  await large.save(text);
  document.body.append("kept: " + (await new IndexedDBStore("large").load() === text));
} catch (problem) {
  document.body.append(String(problem));
}
await fetch("./shown", { method: "POST", body: document.body.textContent });
</script><body>`);
  assert.equal(said, "false not_activated false; true  false; false device false; true  true; " +
    "false not_activated false; trial: true; true  false; kept: true");
});

test("documents of another origin, with their ETag, in Chromium", { skip }, async () => {
  const { LICET_SERVICE: url, LICET_ACCOUNT: account } = process.env;
  await api("PUT", "receipt_keys");
  const said = await shown(`<!doctype html><script type="module">
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
await fetch("./shown", { method: "POST", body: document.body.textContent });
</script><body>`);
  assert.equal(said, "jwks.json 200 304 true; revocations 200 304 true; ");
});
