// A program against a service. The environment names the service, as clients/testdata/check.bash sets it. order tells
// the stand-in before the service what shall happen.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { Program } from "licet";
import { FileStore } from "licet/file";

const { LICET_URL: url, LICET_ROOT: root, LICET_ACCOUNT: accountId, LICET_API_KEY: apiKey } = process.env;
const hour = 3600, day = 24 * hour;
const run = randomUUID();
let folder, files = 0, offset = 0;
const device = () => `${run}-${files}`;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "licet-"));
});
after(() => rm(folder, { recursive: true }));
afterEach(() => {
  offset = 0;
  return order({ offset: 0, validity: 7 * day, keys_validity: 90 * day, max_age: day, seal: 0, forge: "", fail: [] });
});

/** Returns the requests since the last orders. */
async function order(orders) {
  const answer = await fetch(`${url}/standin`, { method: "POST", body: JSON.stringify(orders) });
  return ((await answer.json()) ?? []).map((request) => request.replace(/.*\//, ""));
}
const gone = (times = 50) => order({ fail: Array(times).fill({ status: 0 }) });
const back = () => order({ fail: [] });

/** Moves the clocks of the service and of the programs. */
async function travel(seconds) {
  offset += seconds;
  await order({ offset });
}

async function api(path, body, method = "POST") {
  const headers = { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" };
  const response = await fetch(`${url}/v1/${path}`, { method, headers, body: JSON.stringify(body) });
  const answer = await response.json();
  assert.equal(answer.code, 0, answer.message);
  return answer.data;
}
const grant = async (more) =>
  (await api("licenses", { product_id: "sold", quantity: 1, max_devices: 2, ...more })).licenses[0].license_key;

function program(more = {}) {
  const store = more.store ?? new FileStore(join(folder, "new", `${++files}.json`));
  const { deviceId = device() } = more;
  const options = { url, root, accountId, mode: "test", productId: "sold", deviceId, store, retryFor: 3 };
  return new Program({ ...options, now: () => Date.now() + offset * 1000, ...more });
}
async function activated(more) {
  const [made, key] = [program(more), await grant()];
  await made.activate(key);
  await order({});
  return [made, key];
}
const memory = () => ({ text: null, load() { return this.text; }, save(text) { this.text = text; } });
async function is(checked, allowed, reason, online) {
  const { receipt, ...rest } = await checked;
  assert.deepEqual(rest, { allowed, reason, online });
  assert.equal(receipt !== null, allowed);
  return receipt;
}

test("a program without a license", () => is(program().check(), false, "not_activated", false));

test("activates, and then runs without the service", async () => {
  const path = join(folder, "a", "state.json");
  const store = new FileStore(path);
  const made = program({ store });
  const receipt = await made.activate(await grant({ entitlements: { seats: 5 } }), { deviceName: "Laptop" });
  assert.deepEqual([receipt.aud, receipt.max_devices, receipt.entitlements.seats], ["sold", 2, 5]);
  assert.deepEqual(await order({}), ["licenses", "activate", "jwks.json"]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  await gone();
  await is(program({ store, deviceId: receipt.device_id }).check(), true, null, false);
  assert.deepEqual(await order({}), []);
});

test("a receipt counts until revocation_max_age without the service, and for the grace", async () => {
  const store = memory();
  const [made] = await activated({ store });
  await gone();
  await travel(day - 60);
  await is(made.check(), true, null, false);
  assert.deepEqual(await order({}), ["revocations"]); // one try
  await travel(120);
  await is(program({ store, grace: hour, deviceId: device() }).check(), true, null, false);
  await is(made.check(), false, "stale", false);
  await back();
  await is(made.check(), true, null, true);
});

test("a stale receipt is good with a list from a cache", async () => {
  const [made, key] = await activated({ retryFor: 0 });
  await travel(day + 60);
  await order({ fail: [{ status: 0 }] });
  await is(made.check(), true, null, true);
  assert.deepEqual(await order({ void: key }), ["validate", "revocations"]);
  await travel(day + 60);
  await order({ fail: [{ status: 0 }] });
  await is(made.check(), false, "voided", false);
  await gone();
  await is(made.check(), false, "voided", false);
});

test("a voided receipt ends with the next list, and stays void without the service", async () => {
  const [made, key] = await activated();
  await is(made.check(), true, null, false);
  await api(`licenses/${key}/suspend`);
  await order({ void: key });
  await travel(day / 2);
  await is(made.check(), false, "license_suspended", true);
  assert.deepEqual(await gone(), ["revocations", "validate"]);
  await is(made.check(), false, "unreachable", false);
  await back();
  await api(`licenses/${key}/reinstate`);
  assert.equal((await is(made.check(), true, null, true)).revision, 2);
});

test("a list that has voided the receipt can't be put back", async () => {
  const store = memory();
  const [made, key] = await activated({ store });
  const { documents } = JSON.parse(store.text);
  await order({ void: key, fail: [{ status: 100 }, ...Array(50).fill({ status: 0 })] });
  await travel(day / 2);
  await is(made.check(), false, "voided", false);
  const now = JSON.parse(store.text);
  assert.equal(now.documents.receipt, documents.receipt);
  store.text = JSON.stringify({ ...now, documents });
  await is(made.check(), false, "older", false);
  await back();
  assert.equal((await is(made.check(), true, null, true)).revision, 2);
});

test("a license that has changed gets a newer receipt", async () => {
  const [made, key] = await activated();
  await order({ void: key, void_device: device() });
  await travel(day / 2);
  assert.equal((await is(made.check(), true, null, true)).revision, 2);
});

test("asks for a list no sooner than told, and then for its increment", async () => {
  const store = memory();
  const [made] = await activated({ store });
  await travel(day / 2 + 1);
  await is(made.check(), true, null, true);
  await is(made.check(), true, null, false);
  assert.deepEqual(await order({ void: "LIC-OTHER" }), ["revocations"]);
  await travel(day / 2 + 1);
  await is(made.check(), true, null, true);
  const epoch = JSON.parse(store.text).seen.epoch;
  assert.deepEqual(await order({}), [`revocations?after=${epoch - 1}`]);
  assert.equal(JSON.parse(store.text).documents.revocations.length, 2);
});

test("a list that has not changed makes no receipt younger", async () => {
  const store = memory();
  const [made] = await activated({ store });
  await order({ seal: 1 });
  await travel(day / 2 + 1);
  await is(made.check(), true, null, true);
  await order({});
  const { documents, lists } = JSON.parse(store.text);
  await travel(day / 2 + 1);
  await is(made.check(), true, null, true); // 304
  const now = JSON.parse(store.text);
  assert.deepEqual([now.documents, now.lists.etag], [documents, lists.etag]);
  assert.match((await order({}))[0], /^revocations\?after=/);
  await travel(day / 2 + 1);
  await is(made.check(), true, null, true);
  assert.deepEqual(await order({}), ["validate"]);
});

test("renews the receipt at half of its life", async () => {
  const [made] = await activated();
  await travel(3.5 * day);
  const { iat } = await is(made.check(), true, null, true);
  assert.ok(Math.abs(iat - Date.now() / 1000 - offset) < 60);
  assert.deepEqual(await order({}), ["validate"]);
});

test("follows new receipt keys", async () => {
  const [made] = await activated();
  await order({ rotate: true });
  await order({ rotate: true });
  await travel(day / 2);
  await is(made.check(), true, null, true); // the list needs the new set, which lacks the key of the receipt
  assert.deepEqual(await order({}), ["revocations", "jwks.json", "validate"]);
  await order({ keys_validity: 3 * day });
  await travel(60 * day);
  await order({ rotate: true });
  await is(made.check(), true, null, true);
});

test("refuses what the service did not answer to this device and request", async () => {
  for (const [forge, reason] of [["nonce", "nonce"], ["device", "device"], ["key", "key"], ["set", "key"]]) {
    const [made, key] = [program(), await grant()];
    await order({ forge });
    await assert.rejects(made.activate(key), { name: "Refused", reason });
    await order({ forge: "" });
    await is(made.check(), false, "not_activated", false);
  }
});

test("a forged list counts for nothing", async () => {
  const store = memory();
  const [made] = await activated({ store });
  await travel(day / 2);
  await order({ forge: "list" });
  await is(made.check(), true, null, true);
  assert.deepEqual(await order({}), ["revocations", "jwks.json", "revocations", "validate"]);
  assert.deepEqual(JSON.parse(store.text).documents.revocations, []);
});

test("refuses documents that were put back", async () => {
  const store = memory();
  const [made, key] = await activated({ store });
  const before = JSON.parse(store.text);
  await order({ void: key });
  await travel(4 * day);
  await is(made.check(), true, null, true);
  const { receipt, revocations } = before.documents;
  const now = JSON.parse(store.text);
  store.text = JSON.stringify({ ...now, documents: { ...now.documents, receipt, revocations } });
  await gone();
  await is(made.check(), false, "older", false);
  store.text = JSON.stringify({ ...before, seen: { ...before.seen, time: now.seen.time } });
  offset -= 4 * day;
  await is(made.check(), false, "clock_set_back", false);
});

test("an older receipt of an earlier license", async () => {
  const store = memory();
  const [made, key] = await activated({ store });
  const { receipt: old } = JSON.parse(store.text).documents;
  await order({ void: key }); // and raises the revision
  const { sub, revision } = await made.validate();
  await made.activate(await grant());
  const state = JSON.parse(store.text);
  assert.deepEqual(state.seen.earlier, [{ license_id: sub, revision }]);
  await gone();
  store.text = JSON.stringify({ ...state, documents: { ...state.documents, receipt: old } });
  await is(made.check(), false, "older", false);
  const { earlier, ...seen } = state.seen; // of a version that remembered one license
  store.text = JSON.stringify({ ...state, seen });
  await is(made.check(), true, null, false);
});

test("a trial, and only one", async () => {
  await api("products/tried", { trial: { validity: "P14D", per: "device" } }, "PUT");
  const made = program({ productId: "tried" });
  const { trial, sub } = await made.trial({ buyerEmail: "a@example.com" });
  assert.equal(trial, true);
  await is(made.check(), true, null, false);
  assert.equal((await made.trial()).sub, sub);
  await assert.rejects(program().trial(), { code: 40308, reason: "trial_not_offered" });
});

test("refusals of the service", async () => {
  const key = await grant({ max_devices: 1 });
  const made = program();
  await made.activate(key);
  const details = { current_devices: 1, max_devices: 1 };
  await assert.rejects(program().activate(key), { name: "ServiceError", code: 40901, details });
  await assert.rejects(program({ productId: "other" }).activate(key), { reason: "product_mismatch" });
  await assert.rejects(program().activate("LIC-1"), { reason: "invalid_license_key", status: 400 });
  await assert.rejects(made.deactivate(), { reason: "self_service_not_allowed" });
  await is(made.check(), true, null, false);
});

test("frees the device", async () => {
  await api("products/free", { name: "Free", max_devices: 1, self_service_deactivation: true }, "PUT");
  const [made, key] = [program({ productId: "free" }), await grant({ product_id: "free", max_devices: 1 })];
  await made.activate(key);
  await made.deactivate();
  await is(made.check(), false, "not_activated", false);
  await assert.rejects(made.validate(), { reason: "not_activated", status: 0 });
  await assert.rejects(made.deactivate(), { reason: "not_activated", status: 0 });
  await program({ productId: "free" }).activate(key);
  await assert.rejects(made.activate(key), { reason: "device_limit_reached" });
});

test("sends again what may succeed, after the time that the service demands", async () => {
  const [made] = await activated();
  const busy = JSON.stringify({ code: 42900, message: "", error: { reason: "rate_limited", retryable: true } });
  const limited = { status: 429, retry_after: "1", body: busy };
  await order({ fail: [{ status: 0 }, { status: 502, body: "<html>" }, limited] });
  const started = Date.now();
  await made.validate();
  assert.ok(Date.now() - started >= 1000);
  assert.deepEqual(await order({}), Array(4).fill("validate"));

  await order({ fail: [{ status: 429, retry_after: "60", body: busy }] });
  await assert.rejects(made.validate(), { reason: "rate_limited", retryAfter: 60 });
  await gone(1000);
  await assert.rejects(made.validate(), { reason: "unreachable", status: 0 });
  assert.ok((await back()).length > 2);
});

test("another server at the address decides nothing", async () => {
  const [made] = await activated();
  const invalid = JSON.stringify({ code: 0, data: {} });
  for (const answer of [
    { status: 200, body: "<html>sign in" }, { status: 302, location: `${url}/v1/other` }, { status: 404, body: "{}" },
    { status: 200, body: invalid }, { status: 200, body: "null" }, { status: 200, body: "A".repeat(2 << 20) },
  ]) {
    await order({ fail: [answer] });
    await assert.rejects(made.validate(), { name: "ServiceError" });
    assert.deepEqual(await order({}), ["validate"]);
    await is(made.check(), true, null, false);
  }
});

test("a state that is none", async () => {
  for (const text of ["", "{", "null", "7"]) {
    await is(program({ store: { ...memory(), text } }).check(), false, "not_activated", false);
  }
});

test("a state with a member of another type is none", async () => {
  const store = memory();
  await activated({ store });
  const good = store.text;
  const names = [["license_key"], ["documents"], ["seen"], ["lists"],
    ...Object.entries({ documents: ["keys", "receipt", "revocations"], lists: ["etag", "until"],
      seen: ["time", "keys", "license_id", "revision", "epoch", "earlier"] })
      .flatMap(([of, members]) => members.map((name) => [of, name]))];
  for (const [of, name] of names) {
    for (const wrong of [null, true, 7, "x", [7], {}]) {
      const state = JSON.parse(good);
      const right = name === undefined ? state[of] : state[of][name];
      if (typeof right === typeof wrong && !(right instanceof Object)) continue;
      if (name === undefined) state[of] = wrong; else state[of][name] = wrong;
      await is(program({ store: { ...memory(), text: JSON.stringify(state) } }).check(), false, "not_activated", false);
    }
  }
});

test("calls at the same time do not lose what another has stored", async () => {
  const store = memory();
  const [made] = await activated({ store });
  await travel(4 * day);
  const checks = await Promise.all([made.check(), made.check(), made.check()]);
  assert.deepEqual(checks.map((check) => check.online), [true, false, false]);
});

test("saves in one step", async () => {
  const store = new FileStore(join(folder, "one.json"));
  await store.save("a");
  await Promise.all(["b".repeat(100000), "c".repeat(100000)].map((text) => store.save(text)));
  assert.match(await readFile(join(folder, "one.json"), "utf8"), /^(b{100000}|c{100000})$/);
  await assert.rejects(new FileStore(join(folder, "one.json", "a")).save("a"));
});

test("options that can't work", () => {
  assert.throws(() => program({ root: "licet_root_AA" }), TypeError);
  assert.throws(() => program({ url: "ftp://example.com" }), TypeError);
  assert.throws(() => program({ url: "https://user:password@example.com" }), TypeError);
});
