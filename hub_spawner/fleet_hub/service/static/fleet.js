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

// Reads tables again while somebody looks at them, and leaves them alone while one is
// worked in.
(() => {
  const EVERY_MS = 10000;
  const tables = [...document.querySelectorAll("[data-fresh]")];
  if (tables.length === 0) return;
  const guarded = tables.find((table) => table.dataset.xsrf);
  const says = (what) => {
    const line = document.querySelector("[data-fresh] [data-says]");
    const text = line.dataset[what];
    if (line.textContent !== text) line.textContent = text;
  };

  function isWorkedIn() {
    const selection = document.getSelection();
    return tables.some((table) => table.contains(document.activeElement)
      || table.querySelector("details[open]") !== null
      || (!selection.isCollapsed && selection.containsNode(table, true)));
  }

  async function renew() {
    if (document.visibilityState !== "visible") return;
    if (isWorkedIn()) { says("held"); return; }
    const headers = { "X-XSRFToken": guarded.dataset.xsrf };
    const answer = await fetch(location.href, { headers, credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = [...page.querySelectorAll("[data-fresh]")];
    if (fresh.length !== tables.length || isWorkedIn()) return;
    tables.forEach((table, at) => {
      Object.assign(table.dataset, fresh[at].dataset);
      table.replaceChildren(...fresh[at].childNodes);
    });
    says("on");
  }

  says("on");
  // The next one may succeed; meanwhile the page says of when it is.
  setInterval(() => renew().catch(() => undefined), EVERY_MS);
})();

// Follows one workload's page: the timeline draws itself, the buttons come anew.
(() => {
  const page = document.getElementById("live");
  if (!page) return;
  const { ENDED, LiveTimeline } = window.FleetTimeline;
  const AGAIN_MS = 2000;
  const ANSWER_MS = 15000;
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

  async function ask() {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await fetch(location.href, { headers, credentials: "same-origin", signal });
    if (answer.status >= 500) return false;
    if (!answer.ok || answer.redirected) {
      void reload();
      return false;
    }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
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
