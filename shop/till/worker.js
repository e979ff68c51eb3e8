// Opens the till without a network. It keeps the page and its files; what the till shows about money, the page keeps itself.
"use strict";
const CACHE = "till"; // who logs out deletes it: console.js
const PAGE = new URL(registration.scope).pathname;
const STATIC = "/static/";
const FILE = new RegExp(`(?:href|src)="(${STATIC}[^"]+)"`, "g");
const TIMEOUT_MS = 10000;
const LONGEST_MS = 8 * 3600 * 1000; // of a session

const known = async (url) => (await caches.match(url, { ignoreVary: true })) ?? Response.error();

async function keep(response) {
  const text = await response.clone().text();
  if (!text.includes("data-worker-url")) return caches.delete(CACHE); // the choice of a shop, or staff who look at it
  const files = [...new Set([...text.matchAll(FILE)].map(([, path]) => path))];
  const cache = await caches.open(CACHE);
  await cache.put(PAGE, response);
  await cache.addAll(files);
  for (const { url } of await cache.keys()) {
    const { pathname } = new URL(url);
    if (pathname.startsWith(STATIC) && !files.includes(pathname)) await cache.delete(url);
  }
}

async function page(event) {
  let response;
  try {
    response = await fetch(event.request, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch {
    const kept = await known(PAGE);
    return Date.now() - Date.parse(kept.headers.get("Date")) < LONGEST_MS ? kept : Response.error();
  }
  if (response.ok) event.waitUntil(keep(response.clone()));
  else if (response.status < 500) await caches.delete(CACHE); // the session has ended, or this person uses no till
  return response;
}

async function begin() {
  const response = await fetch(PAGE, { redirect: "manual" });
  if (response.ok) await keep(response);
  await skipWaiting();
}

addEventListener("install", (event) => event.waitUntil(begin()));
addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url);
  if (origin !== location.origin || event.request.method !== "GET") return;
  if (pathname === PAGE && event.request.mode === "navigate") event.respondWith(page(event));
  else if (pathname.startsWith(STATIC)) event.respondWith(fetch(event.request).catch(() => known(event.request.url)));
});
