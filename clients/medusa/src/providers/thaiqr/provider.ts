import type {
  AuthorizePaymentOutput, CapturePaymentInput, DeletePaymentInput, GetPaymentStatusInput, InitiatePaymentInput,
  InitiatePaymentOutput, Logger, PaymentProviderOutput, ProviderWebhookPayload, RefundPaymentInput, UpdatePaymentInput,
  UpdatePaymentOutput, WebhookActionResult,
} from "@medusajs/framework/types";
import { AbstractPaymentProvider, MedusaError } from "@medusajs/framework/utils";
import { SignatureError, webhooks, type Payment, type QrCode, type Refund, type ThaiQR } from "thai-qr-payments";
import { asking, clientOf, holdsMoney, satang, sessionOf, shown, STATUS, type Options } from "../../service.js";

type Data = Record<string, unknown>;

/** What the provider uses of the container of the payment module. */
interface Cradle extends Record<string, unknown> {
  logger: Logger;
  refundService: { list(filters: { id: string[] }): Promise<{ id: string }[]> };
}

/** Thai QR codes. A session is a code; its payment is authorized and captured when the bank has reported the money. */
export class ThaiQrProvider extends AbstractPaymentProvider<Options> {
  static override identifier = "thaiqr";
  readonly #client: ThaiQR;
  readonly #logger: Logger;
  readonly #refunds: Cradle["refundService"];
  readonly #options: Options;

  static override validateOptions(options: Options): void {
    clientOf(options);
    if (!options.webhookSecret) throw new TypeError("webhookSecret is missing: it is the secret of the webhook");
  }

  constructor({ logger, refundService }: Cradle, options: Options) {
    super({}, options);
    [this.#client, this.#logger, this.#refunds, this.#options] = [clientOf(options), logger, refundService, options];
  }

  /** Make a code. `data` may have `return_url` and `lang` of the payment page. Its key makes one code of a session. */
  override async initiatePayment(input: InitiatePaymentInput): Promise<InitiatePaymentOutput> {
    const { data = {}, amount, currency_code } = input;
    if (currency_code.toLowerCase() !== "thb") throw notAllowed("Thai QR codes are paid in THB only.");
    const session = String(data["session_id"]);
    // Without a reference the payment page offers no new code, which Medusa would not know.
    const body = {
      amount: satang(amount),
      expiry_minutes: this.#options.expiryMinutes ?? 15,
      metadata: { medusa_session: session },
    };
    const code = await this.#ask(() => this.#client.qrCodes.create(body, { idempotencyKey: `medusa-${session}` }));
    const { payment_id, qr_code_id, qr_data, qr_image_url, amount_display, expires_at } = code;
    const kept = { payment_id, qr_code_id, qr_data, qr_image_url, amount: code.amount, amount_display, expires_at };
    // Medusa adds what the storefront sent, so each field that is read later is set here.
    const empty = { status: "pending", exceptions: [], refunds: [] };
    return { id: payment_id, status: "pending", data: { ...kept, ...empty, payment_page_url: pageUrl(code, data) } };
  }

  /** Bring `data` up to date. */
  override async updatePayment(input: UpdatePaymentInput): Promise<UpdatePaymentOutput> {
    const payment = await this.#payment(input.data ?? {});
    if (payment.amount !== satang(input.amount)) throw notAllowed("Another amount needs another session.");
    return { status: STATUS[payment.status], data: { ...input.data, ...shown(payment) } };
  }

  /** Medusa deletes a session when its cart changes. A code whose money is there stays, and so does the cart. */
  override async deletePayment({ data = {} }: DeletePaymentInput): Promise<PaymentProviderOutput> {
    if (data["payment_id"]) await this.#end(await this.#payment(data));
    return { data };
  }

  override async cancelPayment(input: DeletePaymentInput): Promise<PaymentProviderOutput> {
    return this.deletePayment(input);
  }

  override async authorizePayment(input: GetPaymentStatusInput): Promise<AuthorizePaymentOutput> {
    return this.getPaymentStatus(input);
  }

  override async getPaymentStatus({ data = {} }: GetPaymentStatusInput): Promise<AuthorizePaymentOutput> {
    const payment = await this.#payment(data);
    return { status: STATUS[payment.status], data: { ...data, ...shown(payment) } };
  }

  override async retrievePayment({ data = {} }: GetPaymentStatusInput): Promise<PaymentProviderOutput> {
    return { data: { ...data, ...shown(await this.#payment(data)) } };
  }

  /** Whoever presses the button: what the bank has not reported is not captured. */
  override async capturePayment({ data = {} }: CapturePaymentInput): Promise<PaymentProviderOutput> {
    const payment = await this.#payment(data);
    if (payment.status !== "succeeded") throw notAllowed(`The payment is ${payment.status}: there is no money.`);
    return { data: { ...data, ...shown(payment) } };
  }

  /** Send money back. Medusa forgets a refund whose answer was lost, so the next one of this amount takes its place. */
  override async refundPayment({ data = {}, amount, context }: RefundPaymentInput): Promise<PaymentProviderOutput> {
    const lost = await this.#lostRefund(data);
    if (lost && lost.amount !== satang(amount)) {
      throw notAllowed(
        `An earlier refund of ${lost.amount_display} was sent, although its answer was lost. ` +
          "First refund this amount again: it is not sent again.",
      );
    }
    const refund = lost ?? (await this.#newRefund(data, satang(amount), String(context?.idempotency_key)));
    return { data: { ...data, refunds: [...refundsOf(data), { refund_id: refund.refund_id, amount: refund.amount }] } };
  }

  /** Messages that are not genuine change nothing. Other events than this one are read from the feed. */
  override async getWebhookActionAndData(payload: ProviderWebhookPayload["payload"]): Promise<WebhookActionResult> {
    const headers = payload.headers as Record<string, string>;
    try {
      const event = await webhooks.unwrap(payload.rawData, headers, this.#options.webhookSecret);
      const session_id = event.event === "payment.succeeded" ? sessionOf(event.data) : undefined;
      if (event.event === "payment.succeeded" && session_id) {
        return { action: "captured", data: { session_id, amount: event.data.amount / 100 } };
      }
    } catch (error) {
      if (!(error instanceof SignatureError)) throw error;
      this.#logger.warn(`Thai QR: a webhook is not genuine: ${error.message}. Check webhookSecret.`);
    }
    return { action: "not_supported" };
  }

  /** Nobody can pay the code any more. Throws MedusaError if somebody has. */
  async #end(payment: Payment): Promise<void> {
    if (payment.status === "succeeded" || holdsMoney(payment)) {
      throw notAllowed("The customer has paid the code of this cart. Complete the cart, or refund the payment.");
    }
    if (payment.status === "pending") await this.#ask(() => this.#client.qrCodes.expire(payment.qr_code_id ?? ""));
  }

  #newRefund(data: Data, amount: number, medusa_refund: string): Promise<Refund> {
    const body = { payment_id: String(data["payment_id"]), amount, metadata: { medusa_refund } };
    const key = { idempotencyKey: `medusa-${medusa_refund}` };
    return this.#ask(() => this.#client.refunds.create({ ...body, reason: "requested_by_customer" }, key));
  }

  /** A refund that the service sent for Medusa, and that Medusa does not have. */
  async #lostRefund(data: Data): Promise<Refund | undefined> {
    const sent: Refund[] = [];
    const list = this.#client.refunds.list({ payment_id: String(data["payment_id"]) });
    await this.#ask(async () => {
      for await (const refund of list) sent.push(refund);
    });
    const taken = new Set(refundsOf(data).map(({ refund_id }) => refund_id));
    const open = sent.filter(({ refund_id, status, metadata }) => {
      return ["pending", "completed"].includes(status) && !taken.has(refund_id) && metadata?.["medusa_refund"];
    });
    const ids = open.map(({ metadata }) => String(metadata?.["medusa_refund"]));
    const known = new Set((ids.length ? await this.#refunds.list({ id: ids }) : []).map(({ id }) => id));
    return open.findLast(({ metadata }) => !known.has(String(metadata?.["medusa_refund"])));
  }

  #payment(data: Data): Promise<Payment> {
    return this.#ask(() => this.#client.payments.get(String(data["payment_id"])));
  }

  #ask<T>(call: () => Promise<T>): Promise<T> {
    return asking(this.#logger, call);
  }
}

/** The payment page with the way back to the shop. */
function pageUrl(code: QrCode, data: Data): string {
  const url = new URL(code.payment_page_url);
  for (const name of ["return_url", "lang"]) {
    const value = data[name];
    if (typeof value === "string") url.searchParams.set(name, value);
  }
  return url.href;
}

/** The refunds that Medusa has. */
function refundsOf(data: Data): { refund_id: string }[] {
  return (data["refunds"] as { refund_id: string }[] | undefined) ?? [];
}

function notAllowed(message: string): MedusaError {
  return new MedusaError(MedusaError.Types.NOT_ALLOWED, message);
}
