/** Each minute: read the events after the last one that was applied. What no webhook told is found here. */

import type { ConfigModule, MedusaContainer } from "@medusajs/framework/types";
import { ContainerRegistrationKeys } from "@medusajs/framework/utils";
import { ThaiQRError } from "thai-qr-payments";
import { applyEvent, note, type Shop } from "../events.js";
import { THAIQR, type CursorService } from "../modules/thaiqr/index.js";
import { clientOf, type Options } from "../service.js";

export const config = { name: "thaiqr-events", schedule: "* * * * *" };

/** An event that fails as often as this is left out. Others wait behind it until then. */
const MOST_FAILURES = 10;

type ProviderConfig = { resolve: unknown; id?: string; options: Options };

export default async function readEvents(container: MedusaContainer): Promise<void> {
  const { modules } = container.resolve<ConfigModule>(ContainerRegistrationKeys.CONFIG_MODULE);
  const { options } = (modules?.["payment"] ?? {}) as { options?: { providers?: ProviderConfig[] } };
  for (const provider of options?.providers ?? []) {
    if (provider.resolve !== "thai-qr-payments-medusa/providers/thaiqr") continue;
    const id = `pp_thaiqr${provider.id ? `_${provider.id}` : ""}`;
    try {
      await readFeed(id, { container, client: clientOf(provider.options) });
    } catch (error) {
      if (!(error instanceof ThaiQRError)) throw error;
      container.resolve(ContainerRegistrationKeys.LOGGER).error(`Thai QR: events are not read: ${error.message}`);
    }
  }
}

/** Apply the events of one provider, and keep the place after each. Throws ThaiQRError. */
async function readFeed(id: string, shop: Shop): Promise<void> {
  const cursors = shop.container.resolve<CursorService>(THAIQR);
  const cursor = (await cursors.listCursors({ id }))[0] ?? (await cursors.createCursors({ id }));
  let { failures } = cursor;
  const logger = shop.container.resolve(ContainerRegistrationKeys.LOGGER);
  for await (const event of shop.client.events.follow({ after_sequence: await placeOf(cursor, shop) })) {
    if (event.sequence === null) return;
    try {
      await applyEvent(shop, event);
    } catch (error) {
      if (error instanceof ThaiQRError) throw error;
      logger.error(`Thai QR: event ${event.event_id} failed: ${error instanceof Error ? error.message : error}`);
      if (++failures < MOST_FAILURES) {
        await cursors.updateCursors({ id, failures });
        return;
      }
      const text = "It could not be applied. The log has the reason. See its payment at the payment service.";
      await note(shop, `Thai QR event ${event.event_id}, ${event.event}`, event.event_id, text);
    }
    failures = 0;
    await cursors.updateCursors({ id, failures, sequence: event.sequence, event_id: event.event_id });
  }
}

/** Where to go on: at the start, if the last event is not there, because the key is of another merchant. */
async function placeOf(cursor: { sequence: number; event_id: string | null }, { client }: Shop): Promise<number> {
  if (!cursor.event_id) return 0;
  const page = await client.events.follow({ after_sequence: cursor.sequence - 1, page_size: 1 }).firstPage();
  return page.items[0]?.event_id === cursor.event_id ? cursor.sequence : 0;
}
