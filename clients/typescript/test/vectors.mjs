// Runs a vector, in Node or in a browser. Returns the reason, and what the device has seen.
export async function run({ parseRoot }, { verify }, common, v) {
  const want = {
    root: parseRoot(common.root), accountId: common.account_id, mode: common.mode, productId: common.product_id,
    deviceId: common.device_id, grace: v.grace, nonce: v.nonce,
  };
  const documents = { keys: v.keys, receipt: v.receipt + "A".repeat(v.padding), revocations: v.revocations };
  try {
    const { earlier, ...seen } = (await verify(want, documents, v.seen, v.now)).seen;
    return ["", earlier.length > 0 ? { ...seen, earlier } : seen];
  } catch (error) {
    return [error.reason ?? String(error), error.seen ?? null];
  }
}
