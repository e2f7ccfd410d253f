// Follows one workload's page: the server renders it, this patches what changed.
"use strict";

(() => {
  const live = document.getElementById("live");
  if (!live) return;

  const OVER = new Set(["stopped", "failed", "refused"]);
  const WAIT_SECONDS = 25;
  const stale = document.getElementById("stale");
  let etag = live.dataset.etag;
  let heard = Date.now();
  let failures = 0;
  const wasReady = live.dataset.state === "ready";

  const pause = (milliseconds) =>
    new Promise((resolve) => setTimeout(resolve, milliseconds));

  function showStale(text) {
    stale.hidden = !text;
    stale.textContent = text;
  }

  // Rows are patched in place, so that focus and open details survive.
  function patch(fresh) {
    document.title = fresh.title;
    for (const part of fresh.querySelectorAll("[data-part]")) {
      const old = live.querySelector(`[data-part="${part.dataset.part}"]`);
      if (!old) continue;
      const open = old.querySelector("details[open]") !== null;
      if (old.className !== part.className) old.className = part.className;
      if (part.hasAttribute("aria-current")) old.setAttribute("aria-current", "step");
      else old.removeAttribute("aria-current");
      if (part.dataset.part === "headline") {
        if (old.textContent !== part.textContent) old.textContent = part.textContent;
      } else if (old.innerHTML !== part.innerHTML) {
        old.replaceChildren(...part.childNodes);
        const details = old.querySelector("details");
        if (open && details) details.open = true;
      }
    }
    const now = fresh.getElementById("live");
    live.dataset.state = now.dataset.state;
    live.dataset.server = now.dataset.server;
  }

  async function refresh() {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) {
      location.reload();
      return;
    }
    const text = await answer.text();
    patch(new DOMParser().parseFromString(text, "text/html"));
    if (live.dataset.state === "ready" && !wasReady && live.dataset.own === "yes") {
      location.assign(live.dataset.server);
    }
  }

  async function poll() {
    const headers = etag ? { "If-None-Match": etag } : {};
    const answer = await fetch(`${live.dataset.timeline}?wait=${WAIT_SECONDS}`, {
      credentials: "same-origin",
      cache: "no-store",
      headers,
    });
    if (answer.status === 401 || answer.status === 403 || answer.status === 404) {
      location.reload();
      await pause(5000);
      return;
    }
    if (answer.status !== 304 && !answer.ok) throw new Error(`${answer.status}`);
    heard = Date.now();
    failures = 0;
    showStale("");
    if (answer.status === 304) return;
    etag = answer.headers.get("Etag");
    await refresh();
  }

  async function follow() {
    while (!OVER.has(live.dataset.state)) {
      try {
        await poll();
      } catch {
        failures += 1;
        const seconds = Math.round((Date.now() - heard) / 1000);
        showStale(
          navigator.onLine
            ? `Last heard ${seconds} s ago · trying again`
            : "You are offline",
        );
        await pause(Math.min(10000, 500 * 2 ** failures));
      }
    }
  }

  function spoken(seconds) {
    const whole = Math.floor(seconds);
    if (whole < 60) return `${whole} s`;
    const minutes = Math.floor(whole / 60);
    if (minutes < 60) return `${minutes} min ${whole % 60} s`;
    return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  // Only the running step ticks, and only while somebody looks.
  setInterval(() => {
    if (document.visibilityState !== "visible") return;
    for (const cell of live.querySelectorAll(".duration[data-seconds]")) {
      cell.dataset.since ??= String(Date.now() - Number(cell.dataset.seconds) * 1000);
      cell.textContent = spoken((Date.now() - Number(cell.dataset.since)) / 1000);
    }
  }, 1000);

  void follow();
})();
