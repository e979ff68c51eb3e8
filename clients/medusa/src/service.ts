/** The payment service, and what a shop keeps of its payments. */

import type { BigNumberInput, Logger, PaymentSessionStatus } from "@medusajs/framework/types";
import { MathBN, MedusaError } from "@medusajs/framework/utils";
import { ApiError, ThaiQR, ThaiQRError, type Payment } from "thai-qr-payments";

/** Options of the provider in `medusa-config.ts`. */
export interface Options {
  /** The address of the service. */
  baseUrl: string;
  /** A secret key with the scopes `payments:write`, `payments:read` and `refunds:write`. */
  apiKey: string;
  /** The secret of the webhook. */
  webhookSecret: string;
  /** How long a code is valid. Default: 15. */
  expiryMinutes?: number;
}

/** What the customer of a shop waits for at most: two attempts of this time. */
const TIMEOUT = 10_000;

/** Throws TypeError if an option is missing or malformed. */
export function clientOf({ baseUrl, apiKey }: Options): ThaiQR {
  return new ThaiQR({ baseUrl: baseUrl ?? "", apiKey: apiKey ?? "", timeout: TIMEOUT, maxRetries: 1 });
}

/** Call the service. What it refuses becomes an error of Medusa, and its reason is only in the log. */
export async function asking<T>(logger: Logger, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ThaiQRError)) throw error;
    const refusal = error instanceof ApiError ? ` (${error.status} ${error.code}, request ${error.requestId})` : "";
    logger.error(`Thai QR: ${error.message}${refusal}`);
    if (error instanceof ApiError && error.status === 400) {
      const reason = [error.message, error.detail].filter(Boolean).join(" ");
      throw new MedusaError(MedusaError.Types.INVALID_DATA, `The payment service refused: ${reason}`);
    }
    throw new MedusaError(MedusaError.Types.UNEXPECTED_STATE, "The payment service cannot be used at this moment.");
  }
}

/** Baht as Medusa has them, in satang. Throws MedusaError for parts of a satang. */
export function satang(baht: BigNumberInput): number {
  const amount = MathBN.mult(baht, 100);
  if (!amount.isInteger()) throw new MedusaError(MedusaError.Types.INVALID_DATA, "Amounts have at most two decimals.");
  return amount.toNumber();
}

/** Only money that the bank has reported is captured. */
export const STATUS = {
  pending: "pending",
  succeeded: "captured",
  failed: "error",
  expired: "canceled",
  refunded: "canceled",
} as const satisfies Record<Payment["status"], PaymentSessionStatus>;

/** What `data` of a session or payment has of a payment. Customers see that of their session. */
export function shown(payment: Payment): Record<string, unknown> {
  const { payment_id, qr_code_id, status, amount, amount_received, amount_refunded, expires_at, hold } = payment;
  const exceptions = payment.exceptions;
  return { payment_id, qr_code_id, status, amount, amount_received, amount_refunded, expires_at, hold, exceptions };
}

/** Whether money that does not fit waits for a decision, or is on its way back. */
export function holdsMoney(payment: Payment): boolean {
  return payment.exceptions.some(({ status }) => status === "open" || status === "sending_back");
}

/** The session of Medusa that a payment is for; undefined if it is not for one. */
export function sessionOf({ metadata }: { metadata?: Record<string, unknown> | null }): string | undefined {
  const session = metadata?.["medusa_session"];
  return typeof session === "string" ? session : undefined;
}
