import { model } from "@medusajs/framework/utils";

/** The last event that a provider applied, and how often the next one failed. Its id is that of the provider. */
export const Cursor = model.define("thaiqr_cursor", {
  id: model.text().primaryKey(),
  sequence: model.number().default(0),
  event_id: model.text().nullable(),
  failures: model.number().default(0),
});
