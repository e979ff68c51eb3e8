/** The module `thaiqr`: how far the events of the service have been read. */

import { MedusaService, Module } from "@medusajs/framework/utils";
import { Cursor } from "./models/cursor.js";

export const THAIQR = "thaiqr";

export class CursorService extends MedusaService({ Cursor }) {}

export default Module(THAIQR, { service: CursorService });
