import { ModuleProvider, Modules } from "@medusajs/framework/utils";
import { ThaiQrProvider } from "./provider.js";

export default ModuleProvider(Modules.PAYMENT, { services: [ThaiQrProvider] });
