import { binary, decode, encode, octets, parseRoot, Refused, type Receipt, type Seen } from "./documents.js";
import { parseObject, type JsonObject } from "./json.js";
import { get, parseAddress, post, ServiceError } from "./service.js";
import { verify, type Documents, type Expected, type Verified } from "./verify.js";

/** Keeps one text between two starts of the program. The text contains the license key. */
export interface Store {
  /** Returns the text that was saved last; null or undefined: none. */
  load(): Promise<string | null | undefined> | string | null | undefined;
  save(text: string): Promise<unknown> | unknown;
}

export interface Options {
  url: string; // of the service
  root: string; // the public half of the account's root key in this mode: licet_root_…
  accountId: string;
  mode: "test" | "live";
  productId: string;
  deviceId: string; // 1 to 255 characters that stay the same on this device
  store: Store;
  grace?: number; // for how many seconds a receipt counts longer without a newer list of revocations; 0
  receiptSeconds?: number; // the validity of receipts to ask for; the product's
  leaseSeconds?: number; // the length of leases to ask for; the product's
  retryFor?: number; // for how many seconds a request that failed is sent again; 30
  now?: () => number; // the clock in milliseconds; Date.now
}

/** Whether the program may run. */
export interface Check {
  allowed: boolean;
  receipt: Receipt | null; // what allows it
  reason: string | null; // why not: the reason of a Refused or of a ServiceError, or not_activated
  online: boolean; // whether the service has sent what was due, or said no; false: what is stored has decided
}

interface State {
  account_id: string; // empty in a state that an earlier version has stored
  mode: string;
  license_key: string;
  documents: Documents;
  seen: Seen;
  lists: { etag: string; until: number }; // of the newest list: until when its max-age lasts, in Unix seconds
}

/** The length above which the whole list replaces an increment: each increment since the same list is as long. */
const longIncrement = 256 << 10;

/** The answer that a license is not valid. */
class NotValid extends ServiceError {}

/** Returns a license key, unless it is empty. */
function required(licenseKey: string): string {
  if (licenseKey === "") throw new ServiceError("there is no license on this device", { reason: "not_activated" });
  return licenseKey;
}

/** The license of a program on a device. */
export class Program {
  readonly #options: Options;
  readonly #expected: Expected;
  readonly #api: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: Options) {
    this.#options = options;
    this.#expected = { ...options, root: parseRoot(options.root), grace: options.grace ?? 0 };
    this.#api = `${parseAddress(options.url)}/v1`;
  }

  /** Binds this device to a license; without a key, to the license that is stored. Throws if that fails. */
  activate(licenseKey?: string, { deviceName }: { deviceName?: string } = {}): Promise<Receipt> {
    return this.#inTurn((state) => {
      const body = { license_key: required(licenseKey || state.license_key), device_name: deviceName };
      return this.#obtain(state, "licenses/activate", body, this.#patience);
    });
  }

  /**
   * Starts a trial of the product on this device, or goes on with a trial that this device has started. Activates the
   * trial again if this device has given it back. Throws if that fails, such as with license_expired after its end.
   */
  trial({ buyerEmail }: { buyerEmail?: string } = {}): Promise<Receipt> {
    return this.#inTurn((state) => this.#obtain(state, "trials", { buyer_email: buyerEmail }, this.#patience));
  }

  /** Asks the service now whether this device may use its license. Throws if not, and if no answer comes. */
  validate(): Promise<Receipt> {
    return this.#inTurn((state) => this.#validate(state, this.#patience));
  }

  /** Frees this device's slot of the license, and forgets the license. Throws if that fails. */
  deactivate(): Promise<void> {
    return this.#inTurn(async (state) => {
      const { accountId: account_id, mode, deviceId: device_id } = this.#options;
      const body = { license_key: required(state.license_key), account_id, mode, device_id };
      await post(`${this.#api}/licenses/deactivate`, body, this.#patience);
      state.license_key = state.documents.receipt = "";
    });
  }

  /**
   * Reports whether the program may run. Uses the receipt that is stored, asks the service when a receipt, a list or a
   * set of keys is due, and keeps to the offline rules where no answer comes. Throws only if the store does.
   */
  check(): Promise<Check> {
    return this.#inTurn(async (state) => {
      let reason = "not_activated";
      let online = false;
      const verifyStored = async () => {
        try {
          return await this.#verify(state.documents, state.seen);
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          if (state.documents.receipt !== "") reason = error.reason;
          return undefined;
        }
      };
      let verified = await verifyStored();
      try {
        online = await this.#refresh(state, verified, reason);
        if (online) verified = await verifyStored();
      } catch (error) {
        if (!(error instanceof Refused || error instanceof ServiceError)) throw error;
        online = isVerdict(error);
        verified = await verifyStored();
        if (error instanceof Refused || state.documents.receipt === "") reason = error.reason;
      }
      const receipt = verified?.receipt ?? null;
      return { allowed: verified !== undefined, receipt, reason: verified ? null : reason, online };
    });
  }

  /** Renews what is due. reason says why no stored receipt is valid. Reports whether the service was asked. */
  async #refresh(state: State, verified: Verified | undefined, reason: string): Promise<boolean> {
    if (state.license_key === "" && state.documents.receipt === "") return false;
    const now = this.#now();
    if (!verified) {
      try {
        await this.#validate(state, this.#patience);
      } catch (error) {
        const isOurs = error instanceof ServiceError || error instanceof Refused;
        if (!isOurs || isVerdict(error) || reason !== "stale") throw error;
        // A cache may have a newer list although the service has no good receipt, or can't be reached.
        await this.#update(state, false, true);
      }
      return true;
    }
    const { receipt, keys, known } = verified; // a program that may run anyway does not wait long, and sends once
    const maxAge = receipt.revocation_max_age;
    // In its grace, the program runs only because no answer has come: one answer of two is enough to end that.
    const inGrace = maxAge > 0 && now >= known + maxAge;
    if (now >= (receipt.iat + receipt.exp) / 2) {
      try {
        await this.#validate(state, 0);
      } catch (error) {
        const isOurs = error instanceof ServiceError || error instanceof Refused;
        if (!isOurs || isVerdict(error) || !inGrace) throw error;
        await this.#update(state, false, true);
      }
      return true;
    }
    // The service sends at most half of revocation_max_age as max-age: more is that of another server or time.
    const { until } = state.lists;
    const isFresh = now < until && until <= now + maxAge / 2;
    const listIsDue = inGrace || (maxAge > 0 && now >= known + maxAge / 2 && !isFresh);
    const keysAreDue = keys.exp < receipt.exp;
    if (!keysAreDue && !listIsDue) return false;
    try {
      await this.#update(state, keysAreDue, listIsDue);
    } catch (error) {
      if (!(error instanceof Refused || (error instanceof ServiceError && inGrace))) throw error;
      await this.#validate(state, 0); // a newer receipt may be good
    }
    return true;
  }

  /** Gets a set of keys, a list, or both, and keeps them if the stored receipt is good with them. */
  async #update(state: State, keys: boolean, list: boolean): Promise<void> {
    const next = { ...state, documents: { ...state.documents } };
    if (keys) next.documents.keys = await this.#getKeys(0);
    if (list) await this.#getLists(next, 0);
    await this.#accept(state, next, 0);
  }

  async #validate(state: State, retryFor: number): Promise<Receipt> {
    try {
      return await this.#obtain(state, "licenses/validate", { license_key: required(state.license_key) }, retryFor);
    } catch (error) {
      if (isVerdict(error)) state.documents.receipt = ""; // the answer counts without a network, too
      throw error;
    }
  }

  /** Asks a route for a receipt, and accepts only a receipt that answers this request. */
  async #obtain(state: State, route: string, body: Record<string, unknown>, retryFor: number): Promise<Receipt> {
    const { productId: product_id, accountId: account_id, mode, deviceId: device_id } = this.#options;
    const { receiptSeconds: receipt_seconds, leaseSeconds: lease_seconds } = this.#options;
    const nonce = encode(binary(crypto.getRandomValues(new Uint8Array(16))));
    const data = await post(`${this.#api}/${route}`, {
      ...body, product_id, account_id, mode, device_id, lease_seconds, receipt: true, receipt_seconds, nonce,
    }, retryFor);
    if (data.valid === false) {
      throw new NotValid("the license is not valid", { status: 200, reason: String(data.reason) });
    }
    const key = data.license_key;
    const other = state.license_key ? state.license_key !== key : Boolean(state.documents.receipt);
    if (typeof data.receipt !== "string" && body.license_key === undefined && typeof key === "string" && !other) {
      // A trial that this device no longer has, or that is not usable: an activation takes it, or says why not.
      state.license_key = key;
      return this.#obtain(state, "licenses/activate", { license_key: key }, retryFor);
    }
    if (typeof data.receipt !== "string") {
      throw new ServiceError("the service issues no receipts", { status: 200, reason: "no_receipt" });
    }
    const next = { ...state, documents: { ...state.documents, receipt: data.receipt } };
    const { receipt } = await this.#accept(state, next, retryFor, nonce);
    state.license_key = String(body.license_key ?? data.license_key ?? "");
    return receipt;
  }

  /**
   * Verifies the documents of a next state, and keeps them and their lists in the state. Gets a set of keys and a whole
   * list where these are what is refused.
   */
  async #accept(state: State, next: State, retryFor: number, nonce?: string): Promise<Verified> {
    for (let keys = false, lists = false; ; ) {
      try {
        const verified = await this.#verify(next.documents, state.seen, nonce);
        state.documents = next.documents;
        state.lists = next.lists;
        state.seen = verified.seen;
        return verified;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (!keys && (error.document === "keys" || error.reason === "key")) {
          keys = true;
          next.documents.keys = await this.#getKeys(retryFor);
        } else if (!lists && error.document === "revocations") {
          lists = true;
          await this.#getLists(next, retryFor, true);
        } else {
          // Newer keys and lists may rule out the stored receipt, too: keep them, so that this holds offline.
          if (error.document === "receipt" || error.seen) {
            state.documents = { ...next.documents, receipt: state.documents.receipt };
            state.lists = next.lists;
          }
          state.seen = error.seen ?? state.seen;
          throw error;
        }
      }
    }
  }

  #url(document: string): string {
    const { accountId, mode } = this.#options;
    return `${this.#api}/accounts/${encodeURIComponent(accountId)}/${mode}/${document}`;
  }

  async #getKeys(retryFor: number): Promise<string> {
    const { text } = await get(this.#url("jwks.json"), "", 256 << 10, retryFor);
    try {
      return String((JSON.parse(text) as { signed: unknown }).signed);
    } catch {
      throw new Refused("malformed", "keys", "the answer is no JSON");
    }
  }

  /** Gets the increment since the whole list of a state, or a whole list, and puts it into the state. */
  async #getLists(state: State, retryFor: number, anew = false): Promise<void> {
    const isLong = (state.documents.revocations[1]?.length ?? 0) > longIncrement;
    const stored = anew || isLong ? [] : state.documents.revocations;
    const after = Number(peek(stored[0]).epoch ?? 0);
    const query = after > 0 ? `?after=${after}` : "";
    const etag = stored.length > 0 ? state.lists.etag : "";
    const { status, headers, text } = await get(this.#url("revocations") + query, etag, 16 << 20, retryFor);
    const maxAge = Number(/\bmax-age=(\d{1,9})/.exec(headers.get("Cache-Control") ?? "")?.[1] ?? 0);
    state.lists = { etag: status === 304 ? etag : (headers.get("ETag") ?? ""), until: this.#now() + maxAge };
    const from = Number(peek(text).after ?? 0);
    const isIncrement = from > 0 && from <= after;
    state.documents.revocations = status === 304 ? stored : isIncrement ? [stored[0]!, text] : [text];
  }

  #verify(documents: Documents, seen: Seen, nonce = ""): Promise<Verified> {
    return verify({ ...this.#expected, nonce }, documents, seen, this.#now());
  }

  #now(): number {
    return Math.floor((this.#options.now ?? Date.now)() / 1000);
  }

  get #patience(): number {
    return this.#options.retryFor ?? 30;
  }

  /** Runs one call after the other, each with the state that is stored, and stores what a call has changed. */
  #inTurn<T>(call: (state: State) => Promise<T>): Promise<T> {
    const { store } = this.#options;
    const turn = this.#last.then(async () => {
      const text = await store.load();
      const state = parseState(text ?? "", this.#options);
      try {
        return await call(state);
      } finally {
        const changed = JSON.stringify(state);
        if (changed !== text) await store.save(changed);
      }
    });
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** Reports whether the service has answered that this device may not use the license. */
function isVerdict(error: unknown): boolean {
  return error instanceof NotValid || (error instanceof ServiceError && [40001, 40401].includes(error.code));
}

/** Returns the content of a list, unverified: only to know which list it is. */
function peek(list = ""): JsonObject {
  try {
    return parseObject(octets(decode(list.split(".")[1] ?? "") ?? ""));
  } catch {
    return {};
  }
}

/**
 * Returns the state of a text. A text that is none counts as no state: the program is not activated. Of a state of
 * another account or mode, lists and what the device has seen do not count: positions and times are not comparable.
 */
function parseState(text: string, { accountId, mode }: Options): State {
  const empty: State = {
    account_id: "",
    mode: "",
    license_key: "",
    documents: { keys: "", receipt: "", revocations: [] },
    seen: { time: 0, keys: 0, license_id: "", revision: 0, epoch: 0 },
    lists: { etag: "", until: 0 },
  };
  try {
    const state = { ...empty, ...(JSON.parse(text) as object) };
    // A text of an earlier version has neither.
    const { earlier = [], as_of = 0 }: { earlier?: unknown; as_of?: unknown } = state.seen ?? {};
    const isList = Array.isArray(earlier) && earlier.every((each) => isLike(each, { license_id: "", revision: 0 }));
    const isState = isList && isLike(as_of, 0) && isLike(state, empty);
    const { license_key, documents, seen, lists } = isState ? state : empty;
    const isOurs = !isState || state.account_id === "" || (state.account_id === accountId && state.mode === mode);
    const ours = isOurs ? { documents, seen, lists } : { ...empty, documents: { ...documents, revocations: [] } };
    return { ...ours, account_id: accountId, mode, license_key };
  } catch {
    return { ...empty, account_id: accountId, mode };
  }
}

/** Reports whether a value has the members of a model, with the same types. The arrays of the model are of texts. */
function isLike(value: unknown, model: unknown): boolean {
  if (Array.isArray(model)) return Array.isArray(value) && value.every((item) => typeof item === "string");
  if (!(model instanceof Object)) return typeof value === typeof model;
  if (!(value instanceof Object)) return false;
  return Object.entries(model).every(([name, member]) => isLike((value as Record<string, unknown>)[name], member));
}
