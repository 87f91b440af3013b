// The checks of a receipt on a device.
import {
  openKeySet, openReceipt, openRevocations, Refused, voids, type Kind, type KeySet, type Reason, type Receipt,
  type Revocations, type Seen,
} from "./documents.js";

/** How far a device's clock may be behind the service's, in seconds. */
const leeway = 300;

/**
 * What a program expects of its documents. root is the bytes of the root key; grace is in seconds; nonce is of the
 * request that the receipt must answer, or empty.
 */
export interface Expected {
  root: string; accountId: string; mode: string; productId: string; deviceId: string; grace: number; nonce?: string;
}

/** What a device has, each as the service sent it: revocations are a whole list and the increments after it. */
export interface Documents { keys: string; receipt: string; revocations: string[] }

/** known is the time of the service until which the device knows what was revoked. */
export interface Verified { receipt: Receipt; keys: KeySet; known: number; seen: Seen }

/** How many licenses the device remembers besides the last one. */
const maxEarlier = 15;

/** Checks the set of keys, the receipt, the clock and the lists. Throws Refused with the first reason. */
export async function verify(want: Expected, documents: Documents, seen: Seen, now: number): Promise<Verified> {
  const soon = now + leeway;
  let shown: Seen | undefined; // by documents that pass all checks but the last two
  const require = (holds: boolean, reason: Reason, document: Kind, detail: string) => {
    if (!holds) throw new Refused(reason, document, detail, shown);
  };
  const isOurs = (document: { account_id: string; mode: string }) =>
    document.account_id === want.accountId && document.mode === want.mode;

  const keys = await openKeySet(documents.keys, want.root);
  require(isOurs(keys), "audience", "keys", "of another account or mode");
  require(keys.iat >= seen.keys, "older", "keys", "the device has seen a newer set");
  require(keys.iat <= soon, "not_yet_valid", "keys", "from the future");
  require(keys.exp > now, "expired", "keys", "the set has ended");

  const receipt = await openReceipt(documents.receipt, keys);
  const { iat, revision, sub, device_id, revocation_max_age } = receipt;
  require(isOurs(receipt) && receipt.aud === want.productId, "audience", "receipt",
    "of another account, mode or product");
  require(device_id === want.deviceId, "device", "receipt", "of another device");
  require(!want.nonce || receipt.nonce === want.nonce, "nonce", "receipt", "answers another request");
  require(receipt.nbf <= soon && iat <= soon, "not_yet_valid", "receipt", "from the future");
  require(receipt.exp > now, "expired", "receipt", "the receipt has ended");
  const licenses = [{ license_id: seen.license_id, revision: seen.revision }, ...(seen.earlier ?? [])];
  const isNewest = licenses.every((each) => each.license_id !== sub || revision >= each.revision);
  require(isNewest, "older", "receipt", "the device has seen a newer one");
  require(seen.time <= soon, "clock_set_back", "receipt", "the device has seen a later time of the service");

  const lists: Revocations[] = [];
  let { epoch, as_of } = { epoch: 0, as_of: 0 };
  for (const document of documents.revocations) {
    const list = await openRevocations(document, keys);
    require(isOurs(list), "audience", "revocations", "of another account or mode");
    require(list.as_of <= soon, "not_yet_valid", "revocations", "from the future");
    const continues = list.after <= epoch && list.epoch >= epoch && list.as_of >= as_of;
    require(continues, "older", "revocations", "does not continue the list before");
    lists.push(list);
    ({ epoch, as_of } = list);
  }
  const isLatest = epoch >= seen.epoch && as_of >= (seen.as_of ?? 0); // a text of an earlier version has no as_of
  require(isLatest, "older", "revocations", "the device has seen a newer list");
  const known = Math.max(iat, as_of);
  shown = { ...seen, time: Math.max(seen.time, keys.iat, known), keys: keys.iat, epoch, as_of };
  const isOff = receipt.status === "revoked" || receipt.status === "suspended";
  require(!isOff, "voided", "receipt", "the license is revoked or suspended");
  for (const list of lists) {
    const isVoid = (await voids(list, revision, sub)) || (await voids(list, revision, sub, device_id));
    require(!isVoid, "voided", "receipt", "the service has revoked the receipt");
  }
  require(revocation_max_age === 0 || now - known < revocation_max_age + want.grace, "stale", "revocations",
    `the newest list is ${now - known} seconds old`);
  const earlier = licenses.filter(({ license_id }) => license_id !== "" && license_id !== sub).slice(0, maxEarlier);
  return { receipt, keys, known, seen: { ...shown, license_id: sub, revision, earlier } };
}
