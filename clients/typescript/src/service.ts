// Requests to the service, and their retries.

/** The refusal of a request; or no answer at all, with the reason `unreachable`. */
export class ServiceError extends Error {
  override name = "ServiceError";
  status = 0; // of HTTP; 0: no answer came
  code = 0; // of the service; 0: the answer is not from a Licet service, or is no refusal
  reason = "unreachable"; // the code as a word, such as device_limit_reached; or why a license is not valid
  retryable = false; // whether sending the same request again is safe and may help
  retryAfter = 0; // in seconds: how long to wait before
  requestId = ""; // the id of the request in the service's log
  details: Record<string, unknown> = {}; // counts about the error

  constructor(message: string, members: Partial<ServiceError>, options?: ErrorOptions) {
    super(message, options);
    Object.assign(this, members);
  }
}

export interface Answer { status: number; headers: Headers; text: string }

/** Returns the address of a service without a slash at its end. */
export function parseAddress(address: string): string {
  const { protocol, username, password, search, hash, href } = new URL(address);
  if (!/^https?:$/.test(protocol) || username + password + search + hash !== "") {
    throw new TypeError("the address of the service must be a URL such as https://licenses.example.com");
  }
  return href.replace(/\/+$/, "");
}

/** Posts to a route of the API, and returns the data of the answer. */
export async function post(url: string, body: object, retryFor: number): Promise<Record<string, unknown>> {
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const { text } = await withRetries(url, request, 1 << 20, retryFor);
  return (JSON.parse(text) as { data: Record<string, unknown> }).data;
}

/** Gets a document, which is no answer of the API. Status 304: the document has not changed since the etag. */
export function get(url: string, etag: string, longest: number, retryFor: number): Promise<Answer> {
  const isTag = /^[!-~]+$/.test(etag); // the stored state may be damaged
  return withRetries(url, isTag ? { headers: { "If-None-Match": etag } } : {}, longest, retryFor);
}

/** Sends a request until there is an answer, an error that is not retryable, or no time: retryFor seconds. */
async function withRetries(url: string, request: RequestInit, longest: number, retryFor: number): Promise<Answer> {
  const started = performance.now();
  for (let bound = 100; ; bound = Math.min(2 * bound, 5000)) {
    try {
      return await send(url, request, longest, retryFor > 0 ? 20 : 5);
    } catch (error) {
      if (!(error instanceof ServiceError) || !error.retryable) throw error;
      // The pause is random, so that programs that failed together don't come back together.
      const wait = error.retryAfter * 1000 + Math.random() * bound;
      if (performance.now() - started + wait > retryFor * 1000) throw error;
      await new Promise((resume) => setTimeout(resume, wait));
    }
  }
}

async function send(url: string, request: RequestInit, longest: number, timeout: number): Promise<Answer> {
  const signal = AbortSignal.timeout(timeout * 1000);
  let response: Response, text: string;
  try {
    response = await fetch(url, { ...request, signal, redirect: "manual", credentials: "omit" });
    text = await read(response, longest);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    // Node names the cause. A retry helps neither a name that does not exist nor a certificate that is not trusted.
    const code = String((error as { cause?: { code?: unknown } }).cause?.code ?? "");
    const retryable = !/ENOTFOUND|CERT|SSL|EPROTO|SIGNATURE/.test(code);
    throw new ServiceError(`no answer came ${code}`.trim(), { retryable }, { cause: error });
  }
  const { status, headers, ok } = response;
  if (request.method === undefined && (ok || status === 304)) return { status, headers, text };
  const answer = parseEnvelope(text);
  if (ok && answer.code === 0 && answer.data instanceof Object) return { status, headers, text };

  const seconds = headers.get("Retry-After") ?? "";
  const retryAfter = /^\d{1,9}$/.test(seconds) ? Number(seconds) : 0;
  if (ok || !Number.isInteger(answer.code)) {
    const retryable = [429, 502, 503, 504].includes(status); // a proxy that can't reach its service
    const message = `HTTP ${status} from a server that is no Licet service`;
    throw new ServiceError(message, { status, reason: "not_licet", retryable, retryAfter });
  }
  const { reason, retryable, request_id, details } = answer.error ?? {};
  throw new ServiceError(String(answer.message), {
    status, code: answer.code as number, reason: String(reason), retryable: retryable === true, retryAfter,
    requestId: String(request_id), details: (details ?? {}) as Record<string, unknown>,
  });
}

/** Reads the body of an answer, and fails if the body is too long. */
async function read(response: Response, longest: number): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    text += decoder.decode(part.value as Uint8Array, { stream: true });
    if (text.length > longest) {
      await reader?.cancel();
      throw new ServiceError(`the answer has more than ${longest} characters`, { status: response.status });
    }
  }
  return text + decoder.decode();
}

interface Envelope { code?: unknown; message?: unknown; data?: unknown; error?: Record<string, unknown> }

function parseEnvelope(text: string): Envelope {
  try {
    return (JSON.parse(text) as Envelope | null) ?? {};
  } catch {
    return {};
  }
}
