// Shows the time that is left, and loads the page again when the state of the payment changes.
"use strict";
(() => {
  const page = document.getElementById("payment");
  const countdown = document.getElementById("countdown");
  const offline = document.getElementById("offline");
  const QUICK_MS = 1500; // a customer sees the payment within 2 s
  const SLOW_MS = 5000; // after ten minutes, and when the code can no longer be paid
  const QUICK_FOR_MS = 10 * 60 * 1000;
  const LONGEST_MS = 30000; // between tries while there is no connection
  const TIMEOUT_MS = 10000;
  const STEADY_MS = 2000; // a slow response does not make the countdown jump
  // The clock of the device may be wrong: count from the server's seconds.
  let ends = endAfter(page.dataset.secondsLeft);
  const opened = performance.now();
  let failures = 0;
  let timer = null;
  let isAsking = false;

  function endAfter(seconds) {
    return performance.now() + 1000 * Number(seconds);
  }

  // The timer of a phone stands still while it sleeps.
  function correct(seconds) {
    const anew = endAfter(seconds);
    if (Math.abs(anew - ends) > STEADY_MS) ends = anew;
  }

  function show() {
    const left = Math.max(0, Math.ceil((ends - performance.now()) / 1000));
    const minutes = Math.floor(left / 60) % 60;
    const parts = left >= 3600 ? [Math.floor(left / 3600), minutes] : [minutes];
    countdown.textContent = [...parts, left % 60].map((part) => String(part).padStart(2, "0")).join(":");
    countdown.classList.toggle("soon", left < 60);
    countdown.hidden = false;
  }

  function wait() {
    const isQuick = countdown !== null && performance.now() - opened < QUICK_FOR_MS;
    const usual = isQuick ? QUICK_MS : SLOW_MS;
    schedule(Math.min(LONGEST_MS, usual * 2 ** failures));
  }

  function schedule(milliseconds) {
    clearTimeout(timer);
    timer = document.hidden ? null : setTimeout(ask, milliseconds);
  }

  async function ask() {
    if (isAsking) return;
    isAsking = true;
    try {
      const response = await fetch(page.dataset.stateUrl, {
        headers: { "If-None-Match": page.dataset.etag },
        cache: "no-store",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (response.status === 200) {
        location.reload();
        return;
      }
      if (response.status === 304) correct(response.headers.get("Seconds-Left"));
      failures = response.status === 304 ? 0 : failures + 1;
      offline.hidden = true;
    } catch {
      failures += 1;
      offline.hidden = false;
    } finally {
      isAsking = false;
    }
    wait();
  }

  document.addEventListener("visibilitychange", () => schedule(0));
  window.addEventListener("online", () => schedule(0));
  if (countdown) {
    show();
    setInterval(show, 500);
  }
  wait();
})();
