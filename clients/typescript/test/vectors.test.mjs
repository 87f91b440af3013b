// Every vector of testdata/receipts is accepted or refused, with its reason.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { run } from "./vectors.mjs";

const inner = (file) => import(new URL(file, import.meta.resolve("licet"))); // which the package does not export
const [documents, verify] = [await inner("documents.js"), await inner("verify.js")];
const file = process.env.LICET_VECTORS ?? new URL("../../../testdata/receipts/vectors.json", import.meta.url);
const { vectors, ...common } = JSON.parse(readFileSync(file, "utf8"));

for (const v of vectors) {
  test(`vector: ${v.name}`, async () => {
    assert.deepEqual(await run(documents, verify, common, v), [v.want, v.after]);
  });
}

test("there are enough vectors", () => {
  assert.ok(vectors.filter((v) => v.want !== "").length >= 60);
});
