/** What a client needs to send requests. */

/** Options of `new ThaiQR()`. */
export interface ThaiQROptions {
  /** Your secret key. Default: the environment variable THAIQR_API_KEY. */
  apiKey?: string;
  /** The address of the service. Default: the environment variable THAIQR_BASE_URL. */
  baseUrl?: string;
  /** Milliseconds for one attempt, to the end of its answer. Default: 30000. */
  timeout?: number;
  /** Retries after connection errors, time-outs, 408, 429 and 5xx. Default: 3. */
  maxRetries?: number;
  /** Sends requests instead of the global `fetch`, for proxies or certificates. */
  fetch?: typeof fetch;
  /** Receives warnings of the service, such as an amount 100 times the usual one. Default: `console.warn`. */
  onWarning?: (message: string) => void;
}

export type Settings = Required<ThaiQROptions>;

interface Runtime {
  process?: { env?: Record<string, string | undefined>; version?: string };
}

const { process } = globalThis as Runtime;

/** The version of Node.js; undefined in a browser. */
export const NODE_VERSION = process?.version;

/** Fill in the environment and the defaults. Throws TypeError if something is missing or malformed. */
export function settingsOf(options: ThaiQROptions): Settings {
  const { timeout = 30_000, maxRetries = 3 } = options;
  checkLimits(timeout, maxRetries);
  if (typeof (options.fetch ?? globalThis.fetch) !== "function") throw new TypeError("there is no fetch here");
  return {
    apiKey: checkedKey(given(options.apiKey, "apiKey", "THAIQR_API_KEY")),
    baseUrl: checkedUrl(given(options.baseUrl, "baseUrl", "THAIQR_BASE_URL")),
    timeout,
    maxRetries,
    fetch: options.fetch ?? globalThis.fetch,
    onWarning: options.onWarning ?? ((message) => console.warn(message)),
  };
}

/** Throws TypeError. */
export function checkLimits(timeout: number, maxRetries: number): void {
  if (!(timeout > 0 && timeout <= 2 ** 31 - 1)) throw new TypeError("timeout must be milliseconds above 0");
  if (!Number.isInteger(maxRetries) || maxRetries < 0) throw new TypeError("maxRetries must be 0 or more");
}

function given(value: string | undefined, name: string, variable: string): string {
  const found = (value ?? process?.env?.[variable] ?? "").trim();
  if (!found) throw new TypeError(`${name} is missing: pass it, or set ${variable}`);
  return found;
}

function checkedKey(key: string): string {
  if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError("the apiKey has characters that no key has");
  return key;
}

function checkedUrl(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new TypeError("the baseUrl must look like https://pay.example.com");
  }
  // Each call adds its whole path, so `/Thai/v1` or `/v1` is taken off.
  return url.href.replace(/\/+$/, "").replace(/((\/Thai)?\/v1|\/Thai)$/i, "").replace(/\/+$/, "");
}
