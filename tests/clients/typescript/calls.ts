// Carries out calls of the client, given as JSON, all at the same time. Prints what came of each.
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { Pages, ThaiQR, webhooks } from "thai-qr-payments";

type Call = { method: string; arguments: unknown[]; options: object; endsAfter?: number; take?: number };

/** Text such as `Date:2026-11-22T01:02:03Z` is a time. */
function revive(_: string, value: unknown): unknown {
  return typeof value === "string" && value.startsWith("Date:") ? new Date(value.slice(5)) : value;
}

async function result({ method, arguments: given, take }: Call, client: ThaiQR): Promise<unknown> {
  const [group, name] = method.split(".") as [keyof ThaiQR, string];
  const methods = (group as string) === "static" ? webhooks : client[group];
  const value = await (methods as any)[name](...given);
  if (!(value instanceof Pages)) return value;
  if (take === 0) return [];
  const items: unknown[] = [];
  for await (const item of value) if (items.push(item) === take) break;
  return items;
}

async function outcome(call: Call): Promise<object> {
  const warnings: string[] = [];
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  if (call.endsAfter !== undefined) {
    const signal = call.endsAfter ? AbortSignal.timeout(call.endsAfter) : AbortSignal.abort();
    call.arguments.push({ signal });
  }
  try {
    const client = new ThaiQR({ onWarning: (message) => warnings.push(message), ...call.options });
    const value = await result(call, client);
    return { value, warnings, seconds: seconds(), shown: inspect(client, { depth: 9, showHidden: true }) };
  } catch (error: any) {
    const kinds = [];
    for (let kind = error.constructor; kind.name; kind = Object.getPrototypeOf(kind)) kinds.push(kind.name);
    const shown = inspect(error, { depth: 9, showHidden: true });
    return { error: { ...error, name: error.name, message: error.message, kinds }, warnings, seconds: seconds(), shown };
  }
}

const calls: Call[] = JSON.parse(readFileSync(0, "utf8"), revive);
console.log(JSON.stringify(await Promise.all(calls.map(outcome))));
