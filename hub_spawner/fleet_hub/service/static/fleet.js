"use strict";

// Copies what another element says, where the browser lets it.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.querySelector(button.dataset.copy).textContent;
    const is = await navigator.clipboard.writeText(text).then(() => "done", () => "failed");
    button.parentElement.querySelector("[role=status]").textContent = button.dataset[is];
  });
}

// Reads tables again when the controller says that there is something new, or now and
// then where it says nothing; and leaves them alone while one is worked in.
(() => {
  const EVERY_MS = 10000;
  const OLD_MS = 60000; // How long somebody has waited changes without any news.
  const PACE_MS = 1000;
  const REST = 9; // One page takes a tenth of the controller's time at most.
  const AWAY_MS = 60000;
  const tables = [...document.querySelectorAll("[data-fresh]")];
  if (tables.length === 0) return;
  const guarded = tables.find((table) => table.dataset.xsrf);
  const hovers = window.matchMedia("(hover: hover)");
  const isSeen = () => document.visibilityState === "visible";
  const says = (what) => {
    const line = document.querySelector("[data-fresh] [data-says]");
    const text = line.dataset[what];
    if (line.textContent !== text) line.textContent = text;
  };
  let link = null;
  let heard = "";
  let readAt = performance.now();
  let restsUntil = 0;
  let isReading = false;
  let again = PACE_MS;

  function isOld() {
    const age = performance.now() - readAt;
    return heard ? heard !== guarded.dataset.news || age >= OLD_MS : age >= EVERY_MS;
  }

  // Nothing moves under a pointer that is about to press, or under a selection.
  function isWorkedIn() {
    const selection = document.getSelection();
    return tables.some((table) => table.contains(document.activeElement)
      || table.querySelector("details[open]") !== null
      || (hovers.matches && table.querySelector("a:hover, summary:hover") !== null)
      || (!selection.isCollapsed && selection.containsNode(table, true)));
  }

  async function read() {
    const headers = { "X-XSRFToken": guarded.dataset.xsrf };
    const answer = await fetch(location.href, { headers, credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = [...page.querySelectorAll("[data-fresh]")];
    if (fresh.length !== tables.length) return false;
    // Nothing was shown, so the news is still to come.
    if (isWorkedIn()) return true;
    tables.forEach((table, at) => {
      Object.assign(table.dataset, fresh[at].dataset);
      table.replaceChildren(...fresh[at].childNodes);
    });
    readAt = performance.now();
    says("on");
    return true;
  }

  async function look() {
    if (isReading || !isSeen() || !isOld()) return;
    if (isWorkedIn()) { says("held"); return; }
    const begun = performance.now();
    if (begun < restsUntil) return;
    isReading = true;
    // The next one may succeed; meanwhile the page says of when it is.
    const isRead = await read().catch(() => false);
    isReading = false;
    const now = performance.now();
    const rest = isRead ? Math.max(PACE_MS, REST * (now - begun)) : EVERY_MS;
    restsUntil = now + rest;
    setTimeout(look, rest);
  }

  function listen() {
    if (link || !isSeen()) return;
    const address = new URL("news", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    link = new WebSocket(address);
    link.onmessage = (message) => {
      heard = message.data;
      again = PACE_MS;
      void look();
    };
    link.onclose = () => {
      link = null;
      heard = "";
      // Not all at once where a controller comes back.
      setTimeout(listen, again * (0.5 + Math.random()));
      again = Math.min(2 * again, AWAY_MS);
    };
  }

  document.addEventListener("visibilitychange", () => {
    if (!isSeen()) { if (link) link.close(); return; }
    listen();
    void look();
  });
  // Whoever lets go of a table sees at once what they had missed.
  for (const what of ["selectionchange", "focusout", "toggle", "pointerout"]) {
    document.addEventListener(what, () => { setTimeout(look, 0); }, { capture: true });
  }

  says("on");
  setInterval(look, EVERY_MS);
  listen();
})();

// Follows one workload's page: the timeline draws itself, the buttons come anew.
(() => {
  const page = document.getElementById("live");
  if (!page) return;
  const { ENDED, LiveTimeline } = window.FleetTimeline;
  const AGAIN_MS = 2000;
  const ANSWER_MS = 15000;
  const HOLDERS_MS = 10000;
  const headers = { "X-XSRFToken": page.dataset.xsrf };
  const wasReady = page.dataset.state === "ready";

  const live = new LiveTimeline({
    element: document.getElementById("fleet-timeline"),
    document: JSON.parse(document.getElementById("fleet-document").textContent),
    catalogue: JSON.parse(document.getElementById("fleet-words").textContent),
    isAnothers: page.dataset.own !== "yes",
    url: page.dataset.timeline,
    headers,
    onState: () => {
      void renew();
    },
    onGone: () => {
      void reload();
    },
  });

  // A page that is loaded while nobody is there is the proxy's, and never comes back.
  let isLeaving = false;
  async function reload() {
    isLeaving = true;
    const signal = AbortSignal.timeout(ANSWER_MS);
    const health = page.dataset.timeline.replace(/api\/workloads\/.*/, "health");
    const answer = await fetch(health, { cache: "no-store", signal }).catch(() => null);
    if (answer && answer.ok) {
      location.reload();
      return;
    }
    live.away();
    setTimeout(reload, AGAIN_MS);
  }

  // What can be done depends on the state, and on who looks: the server knows.  Until it
  // has told of this very state, it is asked again.
  let isRenewing = false;
  async function renew() {
    if (isRenewing) return;
    isRenewing = true;
    const isOld = () => live.timeline.state !== page.dataset.state;
    while (isOld() && !isLeaving) {
      const isTold = await ask().catch(() => false);
      // It has begun anew, and a timeline that had ended is followed no more.
      if (isTold && isOld() && ENDED.has(live.timeline.state)) void reload();
      if (isOld()) await new Promise((go) => setTimeout(go, AGAIN_MS));
    }
    isRenewing = false;
  }

  async function look() {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await fetch(location.href, { headers, credentials: "same-origin", signal });
    if (answer.status >= 500) return null;
    if (!answer.ok || answer.redirected) {
      void reload();
      return null;
    }
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }

  // Who holds what is waited for may be somebody else by now, or is at rest.
  const holders = page.querySelector("#holders");
  setInterval(async () => {
    const waits = live.timeline.phase === "waiting" && live.timeline.state === page.dataset.state;
    if (!waits || isLeaving || document.visibilityState !== "visible") return;
    const fresh = await look().catch(() => null);
    const now = fresh && fresh.getElementById("holders");
    if (!now || holders.contains(document.activeElement)) return;
    if (holders.innerHTML !== now.innerHTML) holders.replaceChildren(...now.childNodes);
  }, HOLDERS_MS);

  async function ask() {
    const fresh = await look();
    if (!fresh) return false;
    const now = fresh.getElementById("live");
    Object.assign(page.dataset, now.dataset);
    headers["X-XSRFToken"] = now.dataset.xsrf;
    for (const part of fresh.querySelectorAll("[data-part]")) {
      const old = page.querySelector(`[data-part="${part.dataset.part}"]`);
      if (!old || old.innerHTML === part.innerHTML) continue;
      const open = old.querySelector("details[open]") !== null;
      old.replaceChildren(...part.childNodes);
      const details = old.querySelector("details");
      if (open && details) details.open = true;
    }
    if (now.dataset.state === "ready" && !wasReady && page.dataset.own === "yes") {
      location.assign(now.dataset.server);
    }
    return true;
  }

  void live.follow();
})();
