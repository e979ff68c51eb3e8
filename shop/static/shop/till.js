// The till: makes codes, shows them, and says what arrived.
//
// What it asked for stays in localStorage until the answer is here, with the key that makes a repeat harmless.
// So a lost answer, a lost network or a reload neither loses a code nor makes a second one.
"use strict";
(() => {
  const part = (id) => document.getElementById(id);
  const { codesUrl, stateUrl, slipUrl, workerUrl, csrf, language, merchant, until, asOf, noAmount, least, most } =
    part("till").dataset;
  const QUICK_MS = 1500; // while a code of this till is open
  const SLOW_MS = 4000;
  const LONGEST_MS = 15000; // between tries while there is no connection
  const TIMEOUT_MS = 10000;
  const WANTED_MS = 10 * 60000; // nobody waits any longer for a code that was asked for
  const KNOWN_MS = 8 * 3600000; // after which it no longer shows what it knew
  const MAX_OWN = 20;
  const PICTURE_PIXELS = 2000; // of the longer side: enough for the small code of a slip, and quick to send
  let failures = 0;
  let timer, sound, lock, isAsking, isPolling;
  let etag = "";
  let codes = new Map(); // as the server last described them, by id

  // {name, asking: {key, body, at}, shown: id, own: [id], heardAt}. Each change reads it anew: another tab has it too.
  const STORE = `till:${merchant}`;
  const kept = () => ({ own: [], ...JSON.parse(localStorage.getItem(STORE) ?? "{}") });
  const keep = (change) => localStorage.setItem(STORE, JSON.stringify({ ...kept(), ...change }));

  function fill(element, texts) {
    for (const line of element.querySelectorAll("[data-text]")) {
      line.textContent = texts[line.dataset.text] ?? "";
      line.hidden = !line.textContent;
    }
  }

  function time(iso) {
    const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "Asia/Bangkok" };
    return new Date(iso).toLocaleTimeString(language, clock);
  }

  async function send(url, { headers, ...options } = {}) {
    const response = await fetch(url, {
      cache: "no-store",
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { "X-CSRFToken": csrf, "Till-Merchant": merchant, ...headers },
      ...options,
    });
    // The session has ended, or shows another shop: the page leads to the log-in and back. A refusal of the API is JSON.
    const isPage = response.headers.get("Content-Type")?.startsWith("text/html");
    if (response.type === "opaqueredirect" || (response.status === 403 && isPage)) location.reload();
    heard(response.status < 500);
    return response;
  }

  const post = (url, body, headers) =>
    send(url, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers } });

  function heard(isConnected) {
    failures = isConnected ? 0 : failures + 1;
    for (const line of document.querySelectorAll(".no-connection")) line.hidden = isConnected;
    const { heardAt } = kept();
    for (const line of document.querySelectorAll(".as-of")) line.textContent = heardAt ? `${asOf} ${time(heardAt)}` : "";
  }

  function refuse(text) {
    part("fault").textContent = text;
    part("fault").hidden = !text;
  }

  // --- Ask for a code

  function begin() {
    const [, baht, rest = ""] = /^0*(\d{1,7})(?:\.(\d{0,2}))?$/.exec(part("amount").value) ?? [];
    const amount = Number(`${baht}${rest.padEnd(2, "0")}`);
    if (!(amount >= Number(least) && amount <= Number(most))) return refuse(noAmount);
    const reference = part("reference").value.trim() || undefined;
    const body = { amount, currency: "THB", reference, metadata: { till: kept().name } };
    const key = crypto.getRandomValues(new Uint32Array(4)).join("-");
    keep({ asking: { key, body, at: Date.now() } });
    ask();
  }

  async function ask() {
    const { asking } = kept();
    if (!asking || isAsking) return;
    if (Date.now() - asking.at > WANTED_MS) return giveUp("");
    isAsking = true;
    present("asking", { amount_display: `${(asking.body.amount / 100).toFixed(2)} ${language === "th" ? "บาท" : "THB"}`, reference: asking.body.reference });
    try {
      const response = await post(codesUrl, asking.body, { "Idempotency-Key": asking.key });
      const answer = await response.json();
      if (kept().asking?.key !== asking.key) poll(); // it was given up meanwhile
      else if (response.ok) opened(answer);
      else if (response.status < 500 && !response.headers.has("Retry-After")) giveUp(answer.error.message);
    } catch {
      heard(false);
    } finally {
      isAsking = false;
    }
    wait();
  }

  function opened(code) {
    keep({ asking: undefined, own: [code.qr_code_id, ...kept().own].slice(0, MAX_OWN) });
    part("pad").reset();
    codes.set(code.qr_code_id, { ...code, state: "pending" });
    show(code.qr_code_id);
  }

  // What was asked for is in the fields again. If the server has made it after all, it is among the open codes.
  function giveUp(reason) {
    const { amount, reference } = kept().asking.body;
    keep({ asking: undefined });
    part("amount").value = (amount / 100).toFixed(2);
    part("reference").value = reference ?? "";
    part("code").close();
    refuse(reason);
  }

  // --- Show a code, or that it is on its way

  function present(state, texts) {
    const dialog = part("code");
    dialog.className = state;
    fill(dialog, texts);
    if (!dialog.open) dialog.showModal();
  }

  function show(id) {
    keep({ shown: id });
    const code = codes.get(id);
    if (!code) return;
    const isOpen = code.state === "pending";
    present(code.state, { ...code, until: isOpen ? `${until} ${time(code.expires_at)}` : "" });
    const picture = part("picture");
    // A picture that the network has lost is loaded again.
    if (isOpen && (picture.dataset.of !== id || (picture.complete && !picture.naturalWidth))) {
      picture.dataset.of = id;
      picture.src = `/Thai/qr-codes/${id}/image?format=svg&at=${Date.now()}`;
    }
  }

  function back() {
    if (kept().asking) giveUp("");
    keep({ shown: undefined });
    part("code").close();
  }

  async function end() {
    try {
      await post(`${codesUrl}/${kept().shown}/expire`, {});
      back();
    } catch {
      heard(false);
    }
    poll();
  }

  // --- Follow what happens

  function wait() {
    const { own, asking } = kept();
    clearTimeout(timer);
    timer = setTimeout(next, Math.min(LONGEST_MS, (own.length || asking ? QUICK_MS : SLOW_MS) * 2 ** failures));
  }

  function next() {
    ask();
    poll();
  }

  async function poll() {
    if (isPolling) return;
    isPolling = true;
    const { own, shown } = kept();
    const asked = [...new Set([shown, ...own])].filter(Boolean);
    const query = new URLSearchParams(asked.map((id) => ["code", id]));
    try {
      const response = await send(`${stateUrl}?${query}`, { headers: { "If-None-Match": etag } });
      if (response.status === 200) {
        const state = await response.json();
        apply(state, own);
        etag = response.headers.get("ETag");
        await remember(state);
      }
      if (response.status < 400) keep({ heardAt: Date.now() });
      if (shown && kept().shown === shown) show(shown);
    } catch {
      heard(false);
      if (!etag) await recall();
    } finally {
      isPolling = false;
    }
    wait();
  }

  // In the cache of the worker, which goes when somebody logs out. It shows only beside the lines that say of when it is.
  async function remember(state) {
    await (await globalThis.caches?.open("till"))?.put(stateUrl, new Response(JSON.stringify({ merchant, state })));
  }

  async function recall() {
    const known = await (await globalThis.caches?.match(stateUrl))?.json();
    if (known?.merchant !== merchant || !(Date.now() - kept().heardAt < KNOWN_MS)) return;
    draw(known.state);
    if (kept().shown) show(kept().shown);
  }

  // Of the codes that were asked about: one that was made meanwhile is not in the answer.
  function apply(state, asked) {
    draw(state);
    const over = kept().own.filter((id) => asked.includes(id) && !codes.get(id)?.may_change);
    keep({ own: kept().own.filter((id) => !over.includes(id)) });
    for (const id of over) if (codes.get(id)?.words) say(codes.get(id).words);
  }

  function draw(state) {
    codes = new Map(state.codes.map((code) => [code.qr_code_id, code]));
    list("open", state.codes.filter((code) => code.state === "pending"));
    for (const button of part("open").querySelectorAll("button")) button.onclick = () => show(button.value);
    list("arrived", state.arrived);
  }

  function list(id, items) {
    const row = (item) => {
      const made = part(`${id}-row`).content.firstElementChild.cloneNode(true);
      made.classList.add(item.level ?? "known");
      fill(made, { ...item, time: time(item.at ?? item.expires_at) });
      for (const button of made.querySelectorAll("button")) button.value = item.qr_code_id;
      return made;
    };
    part(id).replaceChildren(...items.map(row));
    part(id).nextElementSibling.hidden = items.length > 0;
  }

  // --- Say it aloud, or ring where there is no voice for the language

  // Browsers play nothing before a tap.
  function unlock() {
    if (sound) return;
    sound = new AudioContext();
    globalThis.speechSynthesis?.speak(new SpeechSynthesisUtterance(""));
  }

  function say(words) {
    const voice = globalThis.speechSynthesis?.getVoices().find((each) => each.lang.toLowerCase().startsWith(language));
    if (!voice) return ring();
    speechSynthesis.speak(Object.assign(new SpeechSynthesisUtterance(words), { voice, lang: voice.lang, onerror: ring }));
  }

  function ring() {
    if (!sound) return;
    const [tone, volume] = [sound.createOscillator(), sound.createGain()];
    tone.frequency.value = 1047;
    volume.gain.setValueAtTime(0.5, sound.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.001, sound.currentTime + 1);
    tone.connect(volume).connect(sound.destination);
    tone.start();
    tone.stop(sound.currentTime + 1);
  }

  // --- Check a slip

  // A photograph has some MB, which take long to send. What this browser cannot read is sent as it is.
  async function smaller(picture) {
    try {
      const image = await createImageBitmap(picture);
      const scale = Math.min(1, PICTURE_PIXELS / Math.max(image.width, image.height));
      const size = { width: image.width * scale, height: image.height * scale };
      const canvas = Object.assign(document.createElement("canvas"), size);
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      return await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.9));
    } catch {
      return picture;
    }
  }

  async function checkSlip({ target }) {
    if (!target.files.length) return;
    list("findings", []);
    part("checking").hidden = false;
    try {
      const form = new FormData();
      form.append("picture", await smaller(target.files[0]), "slip");
      const answer = await (await send(slipUrl, { method: "POST", body: form })).json();
      list("findings", answer.findings ?? [{ level: "error", text: answer.error.message }]);
    } catch {
      heard(false);
    }
    part("checking").hidden = true;
    target.value = ""; // so that the same picture can be chosen again
  }

  // --- The page

  async function stayAwake() {
    if (document.hidden || lock?.released === false) return;
    lock = await navigator.wakeLock?.request("screen").catch(() => null); // none on a low battery
  }

  function named(name) {
    if (name !== undefined) keep({ name });
    document.body.classList.toggle("unnamed", !kept().name);
    part("name").textContent = kept().name ?? "";
  }

  function press({ target }) {
    const { key } = target.dataset;
    const field = part("amount");
    if (key) field.value = key === "back" ? field.value.slice(0, -1) : field.value + key;
  }

  for (const gesture of ["pointerdown", "keydown"]) document.addEventListener(gesture, unlock);
  part("keys").addEventListener("click", press);
  part("pad").addEventListener("submit", (event) => (event.preventDefault(), refuse(""), begin()));
  part("naming").addEventListener("submit", (event) => (event.preventDefault(), named(part("new-name").value.trim())));
  part("rename").addEventListener("click", () => document.body.classList.add("unnamed"));
  part("back").addEventListener("click", back);
  part("end").addEventListener("click", end);
  part("code").addEventListener("cancel", (event) => (event.preventDefault(), back()));
  part("slip").addEventListener("change", checkSlip);
  window.addEventListener("online", next);
  document.addEventListener("visibilitychange", () => (stayAwake(), next()));
  if (workerUrl) navigator.serviceWorker?.register(workerUrl, { scope: location.pathname });
  named();
  stayAwake();
  next();
})();
