/**
 * Verify webhooks, which are signed as Standard Webhooks describe, and read their events.
 *
 * Source: https://github.com/standard-webhooks/standard-webhooks, the symmetric signature `v1`.
 */

import { SignatureError, UnexpectedResponseError } from "./errors.js";
import { parsed } from "./json.js";
import type { Json } from "./operations.js";
import type { webhooks as messages } from "./schema.js";

type Messages = { [E in keyof messages]: Json<messages[E]["post"]["requestBody"]> };

/** The type of an event. */
export type EventType = keyof Messages;

/**
 * An event, as a message brings it. `switch (event.event)` tells the type of its `data`. A newer service may
 * send events that this version does not know, so have a `default`.
 */
export type WebhookEvent<E extends EventType = EventType> = Messages[E];

/** The headers of a request: those of `fetch` and of Node.js, or pairs. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | readonly (readonly [string, string])[];

export interface UnwrapOptions {
  /** Seconds that the clocks may differ, which limits replays. Default: 300. */
  tolerance?: number;
}

const TOLERANCE = 300;
const PREFIX = "whsec_";
const VERSION = "v1,";

/**
 * Verify a message and read its event. Throws `SignatureError` if it is not genuine, or too old.
 *
 * body: exactly the bytes that arrived, before anything parses them. headers: those of the request, in any case.
 * secret: that of the webhook. An event may arrive twice: keep its `event_id` and ignore what you know. Also throws
 * TypeError for a malformed secret, and `UnexpectedResponseError` if a genuine message is no event.
 */
export async function unwrap(
  body: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string,
  { tolerance = TOLERANCE }: UnwrapOptions = {},
): Promise<WebhookEvent> {
  const key = await keyOf(secret, "verify");
  const bytes = bytesOf(body);
  const [id, sentAt, given] = [
    header(headers, "webhook-id"),
    header(headers, "webhook-timestamp"),
    header(headers, "webhook-signature"),
  ];
  checkTime(sentAt, tolerance);
  const message = signedContent(id, sentAt, bytes);
  // `verify` compares in constant time.
  for (const signature of signaturesOf(given)) {
    if (await crypto.subtle.verify("HMAC", key, signature, message)) return eventOf(bytes);
  }
  throw new SignatureError("no signature of the message fits the secret");
}

/** The signature of a message, to test your receiver: `v1,` and the HMAC-SHA256 in base64. */
export async function sign(
  body: string | Uint8Array | ArrayBuffer,
  { messageId, timestamp, secret }: { messageId: string; timestamp: number; secret: string },
): Promise<string> {
  const message = signedContent(messageId, String(timestamp), bytesOf(body));
  const signature = await crypto.subtle.sign("HMAC", await keyOf(secret, "sign"), message);
  return VERSION + btoa(String.fromCharCode(...new Uint8Array(signature)));
}

/**
 * Body and headers of a genuine message, to test your receiver: post them, or give them to `unwrap`. An `eventId` that
 * was sent before is a repeat.
 */
export async function signedMessage<E extends EventType>(
  event: E,
  data: WebhookEvent<E>["data"],
  secret: string,
  { eventId = "evt_test" }: { eventId?: string } = {},
): Promise<{ body: string; headers: Record<string, string> }> {
  const now = new Date();
  const body = JSON.stringify({ event, event_id: eventId, data, timestamp: now.toISOString() });
  const timestamp = Math.floor(now.getTime() / 1_000);
  const headers = {
    "Content-Type": "application/json",
    "webhook-id": eventId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": await sign(body, { messageId: eventId, timestamp, secret }),
  };
  return { body, headers };
}

/** After `whsec_` comes the key in base64. Any other text is the key itself. */
async function keyOf(secret: string, use: "sign" | "verify"): Promise<CryptoKey> {
  if (typeof secret !== "string") throw new TypeError("the webhook secret is missing: it is text after whsec_");
  const bytes = secret.startsWith(PREFIX)
    ? fromBase64(secret.slice(PREFIX.length))
    : new TextEncoder().encode(secret);
  if (!bytes) throw new TypeError("the webhook secret is no base64 after whsec_");
  if (!bytes.length) throw new TypeError("the webhook secret is empty: anybody could sign");
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [use]);
}

function header(headers: WebhookHeaders, name: string): string {
  if (typeof headers !== "object" || headers === null) {
    throw new TypeError("the headers must be those of the request");
  }
  const given = "get" in headers && typeof headers.get === "function" ? headers.get(name) : named(headers, name);
  // Some frameworks give a list with each header of the name.
  const found: unknown = Array.isArray(given) && given.length === 1 ? given[0] : given;
  if (typeof found !== "string" || !/^[\x20-\x7e]+$/.test(found)) {
    throw new SignatureError(`the header ${name} is missing or malformed`);
  }
  return found;
}

function named(headers: object, name: string): unknown {
  const pairs: unknown[][] = Array.isArray(headers) ? headers.filter(Array.isArray) : Object.entries(headers);
  return pairs.find(([each]) => typeof each === "string" && each.toLowerCase() === name)?.[1];
}

function checkTime(sentAt: string, tolerance: number): void {
  if (!/^\d{1,12}$/.test(sentAt)) throw new SignatureError("the header webhook-timestamp is malformed");
  // Written so that a tolerance that is no number accepts nothing.
  if (!(Math.abs(Date.now() / 1_000 - Number(sentAt)) <= tolerance)) {
    throw new SignatureError("the message is too old, or a clock is wrong");
  }
}

function signedContent(id: string, sentAt: string, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`${id}.${sentAt}.`);
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  return content;
}

/** The signatures of version 1. After the renewal of a secret there are two. */
function signaturesOf(given: string): Uint8Array<ArrayBuffer>[] {
  const ours = given.split(" ").filter((each) => each.startsWith(VERSION));
  return ours.flatMap((each) => fromBase64(each.slice(VERSION.length)) ?? []);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function bytesOf(body: string | Uint8Array | ArrayBuffer): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  // Not `instanceof`: the bytes may come from another realm, as in Jest.
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body);
  throw new TypeError("the body must be the bytes or the text that arrived, before anything parses them");
}

function eventOf(body: Uint8Array): WebhookEvent {
  const message = parsed(new TextDecoder().decode(body)) as Partial<WebhookEvent> | null | undefined;
  const texts = [message?.event, message?.event_id, message?.timestamp];
  if (texts.every((each) => typeof each === "string") && typeof message?.data === "object" && message.data) {
    return message as WebhookEvent;
  }
  throw new UnexpectedResponseError("The message is genuine, but no event.");
}
