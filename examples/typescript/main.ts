// Sells a license, and activates and deactivates it on a device. openapi-typescript makes the types in schema.ts from
// the API document; openapi-fetch makes the calls. Each wrong path, member or type is an error of the compiler.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const { LICET_URL, LICET_API_KEY } = process.env;
assert(LICET_URL && LICET_API_KEY, "load dev.env first: set -a; . ./licet-data/dev.env");

const shop = createClient<paths>({ baseUrl: LICET_URL, headers: { Authorization: `Bearer ${LICET_API_KEY}` } });
const app = createClient<paths>({ baseUrl: LICET_URL }); // a program on a user's device has no API key

type Failure = components["schemas"]["Failure"];

// dataOf returns the result of a call, and throws if the service has refused the call.
function dataOf<T>({ data, error }: { data?: { data: T }; error?: Failure | string }): T {
  if (data) return data.data;
  throw new Error(typeof error === "object" ? `${error.code} ${error.error.reason}: ${error.message}` : error);
}

const product_id = "notes-ts";
dataOf(
  await shop.PUT("/v1/products/{product_id}", {
    params: { path: { product_id } },
    body: { name: "Notes", max_devices: 1, self_service_deactivation: true },
  }),
);

const order = dataOf(
  await shop.POST("/v1/orders", {
    params: { header: { "Idempotency-Key": `order-${crypto.randomUUID()}` } },
    body: { product_id, amount: 4900, currency: "USD", buyer_email: "anna@example.com", metadata: { cart: 8114 } },
  }),
);
assert.equal(order.status, "unpaid");
const paid = dataOf(
  await shop.PUT("/v1/orders/{order_no}/sandbox_payment", { params: { path: { order_no: order.order_no } } }),
);
const license_key = paid.license_key;
assert(license_key, `the order is ${paid.status}`);

const device_id = "laptop-1";
const activation = dataOf(
  await app.POST("/v1/licenses/activate", { body: { license_key, device_id, device_name: "My laptop", product_id } }),
);
assert.equal(activation.status, "activated");
const second = await app.POST("/v1/licenses/activate", { body: { license_key, device_id: "laptop-2" } });
assert.equal(second.error?.code, 40901);
assert.deepEqual(second.error.error.details, { current_devices: 1, max_devices: 1 });

const check = { license_key, device_id, product_id };
assert.equal(dataOf(await app.POST("/v1/licenses/validate", { body: check })).valid, true);

const license = dataOf(await shop.GET("/v1/licenses/{license_key}", { params: { path: { license_key } } }));
assert.deepEqual(license.devices.map((device) => device.device_id), [device_id]);

assert.equal(dataOf(await app.POST("/v1/licenses/deactivate", { body: { license_key, device_id } })).removed, true);
assert.equal(dataOf(await app.POST("/v1/licenses/validate", { body: check })).reason, "device_not_bound");
console.log(`order ${order.order_no}: paid, activated, validated and deactivated`);
