// The signed documents: the set of receipt keys, receipts, and lists of revocations. docs/reference/receipts.md of
// Licet has the format. Bytes are strings here, one character for each byte: so they compare as the format demands.
import { parseObject, type Json, type JsonObject } from "./json.js";

/** Why a document is refused. The words are part of the format. */
export type Reason =
  | "malformed" | "algorithm" | "type" | "key" | "signature" | "audience" | "device" | "nonce"
  | "not_yet_valid" | "expired" | "clock_set_back" | "older" | "stale" | "voided";

export type Kind = "keys" | "receipt" | "revocations";

/** The newest that the device has seen in genuine documents. */
export interface Seen extends SeenLicense {
  time: number; keys: number; epoch: number;
  as_of?: number; // of the newest list
  earlier?: SeenLicense[]; // seen before license_id, the latest first, at most 15
}

/** The newest revision that the device has seen of a license. In Seen, it is the license seen last. */
export interface SeenLicense { license_id: string; revision: number }

/**
 * The refusal of a document. detail names what is wrong, never the content of the document. seen is what the device has
 * seen with documents that are only voided or stale.
 */
export class Refused extends Error {
  override name = "Refused";
  constructor(readonly reason: Reason, readonly document: Kind, readonly detail: string, readonly seen?: Seen) {
    super(`${document}: ${reason}: ${detail}`);
  }
}

interface Document { readonly iss: string; readonly account_id: string; readonly mode: string }

/** The content of a receipt. iat, nbf and exp are Unix seconds; other times are RFC 3339 in UTC. */
export interface Receipt extends Document {
  readonly sub: string; // the license
  readonly aud: string; // the product
  readonly iat: number; readonly nbf: number; readonly exp: number;
  readonly jti: string;
  readonly device_id: string;
  readonly status: string;
  readonly max_devices: number; // 0: no limit
  readonly entitlements: Readonly<Record<string, true | number | string>>;
  readonly license_expires_at: string | null;
  readonly lease_expires_at: string | null;
  readonly grace_ends_at: string | null;
  readonly trial: boolean;
  readonly revision: number;
  readonly revocation_max_age: number; // in seconds; 0: no list is needed
  readonly nonce?: string; readonly device_key?: string;
}

export interface KeySet extends Document {
  readonly iat: number; readonly exp: number; readonly keys: readonly JsonObject[];
}

export interface Revocations extends Document {
  readonly as_of: number; readonly epoch: number; readonly after: number; readonly entries: string; // bytes
}

const limits = { keys: 64 << 10, receipt: 64 << 10, revocations: 16 << 20 };
const types = { keys: "licet-keys+jwt", receipt: "licet-receipt+jwt", revocations: "licet-revocations+jwt" };
const nameSize = 16;
const entrySize = 24;

/** Returns the bytes of base64url without padding, undefined if the text is something else. */
export function decode(text: string): string | undefined {
  const unused = [0, -1, 15, 3][text.length % 4]!; // the bits of the last character that encode nothing
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  if (unused < 0 || !/^[A-Za-z0-9_-]*$/.test(text)) return undefined;
  if (text !== "" && (alphabet.indexOf(text.slice(-1)) & unused) !== 0) return undefined;
  return atob(text.replaceAll("-", "+").replaceAll("_", "/"));
}

export function encode(bytes: string): string {
  return btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export const binary = (bytes: Uint8Array) => String.fromCharCode(...bytes);
export function octets(bytes: string): Uint8Array<ArrayBuffer> {
  const array = new Uint8Array(bytes.length); // Uint8Array.from takes ten times as long
  for (let i = 0; i < bytes.length; i++) array[i] = bytes.charCodeAt(i);
  return array;
}
const utf8 = (text: string) => new TextEncoder().encode(text);
const sha256 = async (text: string) => binary(new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(text))));

/** Returns the public half of a root key from its text. */
export function parseRoot(text: string): string {
  const raw = text.startsWith("licet_root_") ? decode(text.slice("licet_root_".length)) : undefined;
  if (raw?.length !== 32) throw new TypeError("a root key is licet_root_ and 43 characters");
  return raw;
}

/** Returns the id of a key: its thumbprint, RFC 7638. */
const keyId = async (key: string) => encode(await sha256(`{"crv":"Ed25519","kty":"OKP","x":"${encode(key)}"}`));

async function isSigned(key: string, signature: string, text: string): Promise<boolean> {
  try {
    const imported = await crypto.subtle.importKey("raw", octets(key), "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, octets(signature), utf8(text));
  } catch (error) {
    if ((error as Error).name === "NotSupportedError") throw error; // an old browser
    return false; // bytes that are no key
  }
}

type KeyOf = (id: string) => Promise<string | undefined>;

/** Verifies a document, in the order of docs/reference/receipts.md, and returns its content. */
async function open(document: string, kind: Kind, keyOf: KeyOf): Promise<JsonObject> {
  const refuse = (reason: Reason, detail: string): never => {
    throw new Refused(reason, kind, detail);
  };
  const parse = (bytes: string) => {
    try {
      return parseObject(octets(bytes));
    } catch {
      return refuse("malformed", "not the JSON of the format");
    }
  };
  if (document.length > limits[kind]) refuse("malformed", `longer than ${limits[kind]} characters`);
  const parts = document.split(".");
  const [head, content, signature] = parts.map(decode);
  if (parts.length !== 3 || head === undefined || content === undefined || signature === undefined) {
    return refuse("malformed", "not three parts in base64url");
  }
  const { alg, crit, typ, kid } = parse(head);
  if (![alg, typ, kid].every(isText)) refuse("malformed", "a member of the header is no text");
  if (crit !== undefined) refuse("malformed", "crit names extensions, and this format has none");
  if (alg !== "EdDSA" && alg !== "Ed25519") refuse("algorithm", "alg is not EdDSA");
  if (typ !== types[kind]) refuse("type", `typ is not ${types[kind]}`);
  const key = (await keyOf(kid as string)) ?? refuse("key", "kid is not a known key");
  if (!(await isSigned(key, signature, `${parts[0]}.${parts[1]}`))) refuse("signature", "the signature is wrong");
  return parse(content);
}

type Check = (value?: Json) => boolean;
const isText = (value?: Json) => typeof value === "string";
const isName = (value?: Json) => isText(value) && value !== "";
const isTextOrNone = (value?: Json) => value === undefined || isText(value);
const isTextOrNull = (value?: Json) => value === null || isText(value);
const isBoolean = (value?: Json) => typeof value === "boolean";
const isCount = (value?: Json) => typeof value === "number" && value >= 0; // NaN is not
const isPositive = (value?: Json) => typeof value === "number" && value > 0;
const isObject = (value?: Json): value is JsonObject => typeof value === "object" && value !== null &&
  !Array.isArray(value);
const isEntitlements = (value?: Json) => isObject(value) &&
  Object.values(value).every((each) => each === true || isText(each) || Number.isInteger(each));
const isKey = (value: Json) => isObject(value) && [value.kty, value.crv, value.x, value.kid].every(isText);
const isKeys = (value?: Json) => Array.isArray(value) && value.length >= 1 && value.length <= 16 &&
  value.every(isKey) && new Set(value.map((key) => (key as JsonObject).kid)).size === value.length;
const document = { iss: isText, account_id: isName, mode: isName };

/** Refuses content with a member that does not pass its check. */
function check(kind: Kind, content: JsonObject, checks: Record<string, Check>): void {
  for (const [name, passes] of Object.entries(checks)) {
    if (!passes(content[name])) {
      throw new Refused("malformed", kind, `${name} is missing, of a wrong type or out of range`);
    }
  }
}

/** Verifies a set of receipt keys under the root key. */
export async function openKeySet(text: string, root: string): Promise<KeySet> {
  const rootId = await keyId(root);
  const set = await open(text, "keys", async (id) => (id === rootId ? root : undefined));
  const isEnd: Check = (exp) => isPositive(exp) && exp! > set.iat!;
  check("keys", set, { ...document, iat: isPositive, exp: isEnd, keys: isKeys });
  return set as unknown as KeySet;
}

/** Returns the finder of the keys of a set. */
const keysOf = (set: KeySet): KeyOf => async (id) => {
  const key = set.keys.find((each) => each.kid === id);
  const raw = key?.kty === "OKP" && key.crv === "Ed25519" ? decode(String(key.x)) : undefined;
  return raw?.length === 32 && (await keyId(raw)) === id ? raw : undefined;
};

/** Verifies a receipt under the keys of a set. */
export async function openReceipt(text: string, set: KeySet): Promise<Receipt> {
  const receipt = await open(text, "receipt", keysOf(set));
  const isEnd: Check = (exp) => isPositive(exp) && exp! >= receipt.nbf!;
  check("receipt", receipt, {
    ...document, sub: isName, aud: isName, iat: isPositive, nbf: isPositive, exp: isEnd, jti: isText,
    device_id: isName, status: isText, max_devices: isCount, entitlements: isEntitlements,
    license_expires_at: isTextOrNull, lease_expires_at: isTextOrNull, grace_ends_at: isTextOrNull, trial: isBoolean,
    revision: isPositive, revocation_max_age: isCount, nonce: isTextOrNone, device_key: isTextOrNone,
  });
  return receipt as unknown as Receipt;
}

/** Verifies a list of revocations under the keys of a set. */
export async function openRevocations(text: string, set: KeySet): Promise<Revocations> {
  const list = await open(text, "revocations", keysOf(set));
  const entries = typeof list.entries === "string" ? decode(list.entries) : undefined;
  const isBefore: Check = (after) => isCount(after) && after! <= list.epoch!;
  const isInOrder: Check = () => entries !== undefined && inOrder(entries);
  check("revocations", list, {
    ...document, as_of: isPositive, epoch: isCount, after: isBefore, entries: isInOrder,
  });
  return { ...list, entries } as unknown as Revocations;
}

const nameAt = (entries: string, at: number) => entries.slice(at, at + nameSize);

function inOrder(entries: string): boolean {
  for (let at = entrySize; at < entries.length; at += entrySize) {
    if (nameAt(entries, at - entrySize) >= nameAt(entries, at)) return false;
  }
  return entries.length % entrySize === 0;
}

/** Reports whether a list voids a revision of a license, or of a device of the license. */
export async function voids(list: Revocations, revision: number, ...ids: string[]): Promise<boolean> {
  const name = (await sha256(["licet revocation", ...ids].join("\0"))).slice(0, nameSize);
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, BigInt(revision));
  for (let at = 0; at < list.entries.length; at += entrySize) {
    if (nameAt(list.entries, at) !== name) continue;
    return list.entries.slice(at + nameSize, at + entrySize) >= binary(new Uint8Array(bytes.buffer));
  }
  return false;
}
