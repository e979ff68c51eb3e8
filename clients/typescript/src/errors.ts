/** What can go wrong. Every exception of this package is a `ThaiQRError`. */

import type { components } from "./schema.js";

/** The base of all exceptions of this package. */
export class ThaiQRError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * The service could not be reached, or did not answer in time, also after all retries.
 *
 * A POST may have been carried out. Send it again with the same `idempotencyKey`.
 */
export class NetworkError extends ThaiQRError {
  constructor(
    message: string,
    readonly idempotencyKey: string | undefined,
    options: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The answer does not come from this API: no JSON, a redirect, or not what was asked for. */
export class UnexpectedResponseError extends ThaiQRError {}

/** A payment was not paid: it failed, expired, was refunded, or is still pending. See `payment.status`. */
export class NotPaidError extends ThaiQRError {
  constructor(readonly payment: components["schemas"]["PaymentObject"]) {
    super(`${payment.payment_id} is ${payment.status}.`);
  }
}

/** A webhook is not genuine, or too old. Answer it with 400 and do nothing else. */
export class SignatureError extends ThaiQRError {}

/** The `error` object of an answer, as far as it is known. */
export interface ErrorObject {
  code?: unknown;
  type?: unknown;
  message?: unknown;
  param?: unknown;
  detail?: unknown;
  payment_id?: unknown;
}

/** What an `ApiError` knows beside the error object. */
export interface ErrorContext {
  status: number;
  requestId: string | undefined;
  retryAfter: number | undefined;
  idempotencyKey: string | undefined;
}

/** The API refused a request. Compare `code`; show `message` and `detail` to people. */
export class ApiError extends ThaiQRError {
  /** The HTTP status. */
  readonly status: number;
  readonly code: string;
  readonly type: string;
  /** The field at fault. */
  readonly param: string | undefined;
  /** The rule that it breaks. */
  readonly detail: string | undefined;
  /** The failed payment of a declined card. */
  readonly paymentId: string | undefined;
  /** Name it when you ask for support. */
  readonly requestId: string | undefined;
  /** Seconds to wait. */
  readonly retryAfter: number | undefined;
  /** The key of the request, for sending a POST again. */
  readonly idempotencyKey: string | undefined;

  constructor(error: ErrorObject, context: ErrorContext) {
    super(text(error.message) ?? "");
    this.status = context.status;
    this.code = text(error.code) ?? "";
    this.type = text(error.type) ?? "";
    this.param = text(error.param);
    this.detail = text(error.detail);
    this.paymentId = text(error.payment_id);
    this.requestId = context.requestId;
    this.retryAfter = context.retryAfter;
    this.idempotencyKey = context.idempotencyKey;
  }
}

/** The request or the state of the object does not allow it: 400, 408, 413, 415, 422. */
export class ValidationError extends ApiError {}

/** The API key is missing or not valid: 401. */
export class AuthenticationError extends ApiError {}

/** The key lacks a scope, or may not do this: 403. */
export class PermissionDeniedError extends ApiError {}

/** No such object or path: 404, 405, 410. */
export class NotFoundError extends ApiError {}

/** A card was declined, or the balance does not cover the amount: 402. */
export class PaymentError extends ApiError {}

/** The idempotency key belongs to another request, or that request still runs: 409. */
export class IdempotencyError extends ApiError {}

/** Too many requests: 429. `retryAfter` says how long to wait. */
export class RateLimitError extends ApiError {}

/** The service could not answer, also after all retries: 5xx. */
export class ServerError extends ApiError {}

const BY_TYPE: Readonly<Record<string, typeof ApiError>> = {
  validation_error: ValidationError,
  authentication_error: AuthenticationError,
  permission_error: PermissionDeniedError,
  not_found: NotFoundError,
  payment_error: PaymentError,
  idempotency_error: IdempotencyError,
  rate_limit_error: RateLimitError,
  api_error: ServerError,
};

/** The error of an answer, of the class of its type. A type that this version does not know is an `ApiError`. */
export function apiError(error: ErrorObject, context: ErrorContext): ApiError {
  const type = text(error.type) ?? "";
  const known = Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : undefined;
  const kind = known ?? (context.status >= 500 ? ServerError : ApiError);
  return new kind(error, context);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
