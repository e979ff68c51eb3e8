/** Lists, page after page. A cursor keeps the pages the same while newer objects arrive. */

import { UnexpectedResponseError } from "./errors.js";

/** One page. `total` counts all objects that match; the request log has none. `raw` is the JSON. */
export interface Page<T> {
  items: T[];
  total: number | undefined;
  raw: Readonly<Record<string, unknown>>;
}

/** The query of a list, with its `limit`. */
export type ListQuery = Readonly<Record<string, unknown> & { limit: number }>;

/** What the query of the next page has more than that of this page; undefined at the end. */
export type Next = (page: Page<Record<string, unknown>>, query: ListQuery) => Record<string, unknown> | undefined;

/** A list. Iterate with `for await` over all objects; pages are fetched when they are needed. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #plural: string;
  readonly #query: ListQuery;
  readonly #next: Next;
  readonly #fetch: (query: ListQuery) => Promise<unknown>;

  constructor(plural: string, query: ListQuery, next: Next, fetch: (query: ListQuery) => Promise<unknown>) {
    this.#plural = plural;
    this.#query = query;
    this.#next = next;
    this.#fetch = fetch;
  }

  /** The first page, with the `total`. */
  firstPage(): Promise<Page<T>> {
    return this.#page(this.#query);
  }

  /** All pages, one after the other. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let query: ListQuery = this.#query;
    for (;;) {
      const page = await this.#page(query);
      yield page;
      const more = this.#next(page as Page<Record<string, unknown>>, query);
      if (!more) return;
      query = { ...query, ...more };
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.items;
  }

  async #page(query: ListQuery): Promise<Page<T>> {
    const raw = (await this.#fetch(query)) as Record<string, unknown>;
    const items = raw[this.#plural];
    if (!Array.isArray(items)) throw new UnexpectedResponseError(`The answer is no list of ${this.#plural}.`);
    return { items, total: typeof raw["total"] === "number" ? raw["total"] : undefined, raw };
  }
}

/** The next page follows the last id. A search says how far it came if it has not seen all. */
export function byCursor(idField: string): Next {
  return ({ items, raw }, { limit }) => {
    const after = items.length >= limit ? items.at(-1)?.[idField] : raw["searched_to"];
    return after ? { after } : undefined;
  };
}

/** The next page skips all that were read. For short lists, which have no cursor. */
export const byOffset: Next = ({ items }, { limit, offset }) =>
  items.length >= limit ? { offset: Number(offset ?? 0) + items.length } : undefined;

/** The answer says itself how to go on. */
export const byNextAfter: Next = ({ raw }) => (raw["next_after"] ? { after: raw["next_after"] } : undefined);

/** The feed of events goes on after the last number. */
export const bySequence: Next = ({ items }, { limit }) => {
  const last = items.length >= limit ? items.at(-1)?.["sequence"] : undefined;
  return last ? { after_sequence: last } : undefined;
};
