/** Sends requests, and tries again where that helps. */

import { apiError, NetworkError, UnexpectedResponseError, type ApiError, type ErrorObject } from "./errors.js";
import { parsed } from "./json.js";
import { ROUTES, type Answer, type Operation } from "./operations.js";
import { checkLimits, NODE_VERSION, type Settings } from "./settings.js";
import { VERSION } from "./version.js";

const FIRST_PAUSE = 250;
const MAX_PAUSE = 8_000;
/** Seconds. If the service asks for a longer wait, the caller decides. */
const MAX_RETRY_AFTER = 60;
/** The service names these in headers of answers that otherwise look right. */
const WARNINGS = ["Warning-Amount", "Ignored-Parameters"];

/** Options of each method. */
export interface RequestOptions {
  /** Ends the request and its retries. What it should do may be done already. */
  signal?: AbortSignal;
  /** Milliseconds for one attempt. Default: that of the client. */
  timeout?: number;
  /** Retries of this request. Default: that of the client. */
  maxRetries?: number;
}

/** Options of a POST. */
export interface PostOptions extends RequestOptions {
  /** Names what you create, such as your order, so that a restart of your program does not create it twice. */
  idempotencyKey?: string;
}

/** What a method sends. */
export interface Call {
  ids?: Record<string, string>;
  query?: object;
  body?: object;
  options: PostOptions;
}

interface Received {
  response: Response;
  text: string;
}

/** One request as it is sent, the same in each attempt. */
interface Prepared {
  name: string;
  url: string;
  init: RequestInit;
  idempotencyKey: string | undefined;
  signal: AbortSignal | undefined;
  timeout: number;
  maxRetries: number;
}

export class Transport {
  // Private by `#`, so that no log of the client shows the key.
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Send a call, with retries. Throws `ApiError`, `NetworkError` or `UnexpectedResponseError`. */
  async send<O extends Operation>(operation: O, call: Call): Promise<Answer<O>> {
    const prepared = this.#prepare(operation, call);
    for (let failures = 0; ; failures += 1) {
      const outcome = await this.#attempt(prepared);
      if ("text" in outcome) {
        if (outcome.response.ok || isDeletedBefore(prepared, outcome, failures)) {
          return this.#result(prepared, outcome) as Answer<O>;
        }
        const error = refusal(prepared, outcome);
        if (!mayRetry(prepared, error, failures)) throw error;
        await pause(failures, error.retryAfter ?? 0, prepared.signal);
      } else {
        if (failures >= prepared.maxRetries) throw outcome;
        await pause(failures, 0, prepared.signal);
      }
    }
  }

  #prepare(operation: Operation, { ids = {}, query = {}, body, options }: Call): Prepared {
    const [method, template] = ROUTES[operation];
    const path = fill(template, ids);
    const parameters = encode(query);
    const { timeout = this.#settings.timeout, maxRetries = this.#settings.maxRetries } = options;
    checkLimits(timeout, maxRetries);
    const headers = new Headers({ Authorization: `Bearer ${this.#settings.apiKey}`, Accept: "application/json" });
    const idempotencyKey =
      method === "POST" ? options.idempotencyKey || `thaiqr-${crypto.randomUUID()}` : undefined;
    if (idempotencyKey) headers.set("Idempotency-Key", headerOf(idempotencyKey));
    const isForm = body instanceof FormData; // `fetch` writes the type of a form
    if (body && !isForm) headers.set("Content-Type", "application/json");
    if (NODE_VERSION) headers.set("User-Agent", `thaiqr-typescript/${VERSION} node/${NODE_VERSION}`);
    return {
      name: `${method} ${path}`,
      url: `${this.#settings.baseUrl}${path}${parameters ? `?${parameters}` : ""}`,
      // Redirects are not followed: the key is for this host only.
      init: { method, headers, body: isForm ? body : body ? JSON.stringify(body) : null, redirect: "manual" },
      idempotencyKey,
      signal: options.signal,
      timeout,
      maxRetries,
    };
  }

  /** One attempt, within the time-out. Returns NetworkError; throws only what the caller's signal says. */
  async #attempt({ name, url, init, idempotencyKey, signal, timeout }: Prepared): Promise<Received | NetworkError> {
    signal?.throwIfAborted();
    const { fetch } = this.#settings;
    const ending = new AbortController();
    const stop = (): void => ending.abort(signal?.reason);
    const timer = setTimeout(() => ending.abort(new Error(`no answer within ${timeout} ms`)), timeout);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      const response = await fetch(url, { ...init, signal: ending.signal });
      return { response, text: await response.text() };
    } catch (cause) {
      signal?.throwIfAborted();
      return new NetworkError(`${name}: ${reasonOf(cause)}`, idempotencyKey, { cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  #result({ name, init }: Prepared, { response, text }: Received): unknown {
    for (const header of WARNINGS) {
      const value = response.headers.get(header);
      if (value) this.#settings.onWarning(`${name}: ${header}: ${value}`);
    }
    if (init.method === "DELETE") return undefined;
    const answer = parsed(text);
    if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
      throw new UnexpectedResponseError("The answer is no JSON object: check the baseUrl.");
    }
    return answer;
  }
}

function mayRetry({ maxRetries }: Prepared, error: ApiError, failures: number): boolean {
  const isTemporary =
    error.status >= 500 || [408, 429].includes(error.status) || error.code === "idempotency_key_in_progress";
  return isTemporary && failures < maxRetries && (error.retryAfter ?? 0) <= MAX_RETRY_AFTER;
}

/** Whether an earlier attempt, whose answer was lost, has deleted the object. */
function isDeletedBefore({ init }: Prepared, { response }: Received, failures: number): boolean {
  return init.method === "DELETE" && failures > 0 && response.status === 404;
}

function refusal({ idempotencyKey }: Prepared, { response, text }: Received): ApiError {
  const { status, headers } = response;
  if (status < 400) throw new UnexpectedResponseError(`The service answered a redirect: check the baseUrl.`);
  const wait = headers.get("Retry-After") ?? "";
  return apiError(shownError(status, text), {
    status,
    requestId: headers.get("X-Request-Id") ?? undefined,
    retryAfter: /^\d+$/.test(wait) ? Number(wait) : undefined,
    idempotencyKey,
  });
}

/** The error object. A proxy in between may answer in another form. */
function shownError(status: number, text: string): ErrorObject {
  const error = (parsed(text) as { error?: unknown } | null | undefined)?.error;
  if (typeof error === "object" && error !== null) return error;
  return { code: `http_${status}`, message: "The answer is not from the API." };
}

/** `fetch` hides its reason in the cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { message?: string; code?: string } };
  return cause?.message || cause?.code || message || String(error);
}

/** Wait as the service says, and a random time that grows with each failure. */
async function pause(failures: number, seconds: number, signal: AbortSignal | undefined): Promise<void> {
  const longest = Math.min(FIRST_PAUSE * 2 ** failures, MAX_PAUSE);
  await sleep(seconds * 1_000 + longest * (0.5 + Math.random() / 2), signal);
}

/** Wait for milliseconds, or until the signal ends it. */
export async function sleep(wait: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, wait);
    signal?.addEventListener("abort", done, { once: true });
    if (signal?.aborted) done();
  });
}

/** A key as a header: the bytes of UTF-8. Throws TypeError for what no header can have. */
function headerOf(key: string): string {
  if (/[\x00-\x1f\x7f]/.test(key)) throw new TypeError("the idempotencyKey has characters that no header can have");
  return String.fromCharCode(...new TextEncoder().encode(key));
}

/** Fill ids into a path. Throws TypeError for an id that would name another path. */
function fill(template: string, ids: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name];
    if (typeof id !== "string" || ["", ".", ".."].includes(id)) throw new TypeError(`${name} must be an id`);
    return encodeURIComponent(id);
  });
}

/** Parameters as text: times as ISO 8601, an object `metadata` as `metadata[key]`. */
function encode(query: object): string {
  const encoded = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value instanceof Date) encoded.set(name, value.toISOString());
    else if (typeof value === "object" && value !== null) {
      for (const [key, item] of Object.entries(value)) encoded.set(`${name}[${key}]`, String(item));
    } else if (value !== undefined && value !== null) encoded.set(name, String(value));
  }
  return encoded.toString();
}
