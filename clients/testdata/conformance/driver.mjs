// The driver of the client in TypeScript for TestConformance in client/offline: reads calls and writes outcomes, one
// JSON text a line.
import { createInterface } from "node:readline";
import { Program } from "licet";
import { FileStore } from "licet/file";

async function outcome(call) {
  const program = new Program({
    url: call.url, root: call.root, accountId: call.account_id, mode: "test", productId: call.product_id,
    deviceId: call.device_id, store: new FileStore(call.state), retryFor: call.retry_for,
    leaseSeconds: call.lease_seconds || undefined, grace: call.grace, now: () => Date.now() + call.ahead * 1000,
  });
  try {
    if (call.call === "check" || call.call === "refresh") {
      const { allowed, reason } = await program.check();
      return { ok: allowed, reason: reason ?? "" };
    }
    await program[call.call](call.call === "activate" ? call.license_key : undefined);
    return { ok: true };
  } catch (error) {
    return { ok: false, code: error.code ?? 0, reason: error.reason ?? String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await outcome(JSON.parse(line))));
}
