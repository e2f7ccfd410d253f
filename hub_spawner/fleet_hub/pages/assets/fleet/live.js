/* Keeps a server's page true: from the Hub's event stream while it starts there, else
 * from the controller, and by loading the page anew once the Hub has something else
 * to show.  The page says what it knows in `#fleet-view`'s data. */
(() => {
  "use strict";
  const view = document.getElementById("fleet-view");
  if (!view) return;
  const { ENDED, LiveTimeline, Teller } = window.FleetTimeline;
  const data = view.dataset;
  const SILENCE_MS = 45000;
  const CANCELLED_MS = 2500;
  const AWAY_MS = 3000;
  const LATE_MS = 3000;
  const BLIND_MS = 15000;
  const ANSWER_MS = 10000;
  let leaving = false;
  let isGivingUp = false;
  let hasTold = false;

  const live = new LiveTimeline({
    element: document.getElementById("fleet-timeline"),
    document: JSON.parse(document.getElementById("fleet-document").textContent),
    catalogue: JSON.parse(document.getElementById("fleet-words").textContent),
    isTold: data.page === "over",
    isAnothers: data.ofAnother === "yes",
    // With a token that reads this timeline and nothing else.
    url: data.viewToken ? `${data.serviceUrl}api/timeline` : "",
    headers: { Authorization: `Fleet ${data.viewToken}` },
    onState: settle,
    // Another start began, or this one is forgotten: the page is out of date.
    onGone: () => reloadIn(1000),
  });

  const words = live.words.trans;
  const teller = new Teller(data.server, words);
  const wish = document.getElementById("fleet-tell");

  /* A wish for an earlier start is over, though no page saw that one end. */
  function showWish() {
    teller.about(live.timeline);
    if (wish) wish.setAttribute("aria-pressed", String(teller.isAwaited));
  }

  const isSeen = () => document.visibilityState === "visible";

  function whenSeen(go) {
    if (isSeen()) { go(); return; }
    document.addEventListener("visibilitychange", function look() {
      if (!isSeen()) return;
      document.removeEventListener("visibilitychange", look);
      go();
    });
  }

  function leaveIn(milliseconds, go) {
    if (leaving) return;
    leaving = true;
    live.leave();
    // A notification leads back to the page that it came from.
    setTimeout(() => { if (hasTold) whenSeen(go); else go(); }, milliseconds);
  }

  /* Tells what was asked for, in the words of the timeline where those have come. */
  function tell(state) {
    const { timeline } = live;
    if (!teller.isAwaited || !(state === "ready" || ENDED.has(state))) return;
    const more = timeline && timeline.state === state ? live.headline : "";
    teller.hear(state, [live.words.title(timeline), more].filter(Boolean).join("\n"));
    hasTold = true;
  }

  /* A page that is loaded while the Hub is away is the proxy's, and never comes back. */
  async function hubAnswers() {
    // Who takes the question and says nothing is away as well.
    const asking = new AbortController();
    const limit = setTimeout(() => asking.abort(), ANSWER_MS);
    const question = { cache: "no-store", signal: asking.signal };
    const answer = await fetch(`${window.jhdata.base_url}api/`, question).catch(() => null);
    clearTimeout(limit);
    return Boolean(answer && answer.ok);
  }

  async function reload() {
    if (await hubAnswers()) { window.location.reload(); return; }
    live.away();
    setTimeout(reload, AWAY_MS);
  }

  function reloadIn(milliseconds) {
    // Whoever gives it up is led on by the answer to that.
    if (!isGivingUp) leaveIn(milliseconds, reload);
  }

  const toGonePage = () => window.location.assign(data.goneUrl);

  /* The turn has come, or it is over: the Hub shows another page now. */
  function settle(state) {
    showWish();
    tell(state);
    if (teller.isAwaited && !isSeen()) {
      // While the Hub's next page is on its way the moment could pass.
      whenSeen(() => settle(live.timeline.state));
      return;
    }
    const waits = state === "requested" || state === "queued";
    if (data.page === "waiting" && !waits) reloadIn(700);
    if (data.page === "pending" && !data.progressUrl && (state === "ready" || ENDED.has(state))) reloadIn(700);
  }

  /* Follows the controller.  A page may be made a moment after its time: what it knows
   * already is then no news, and nothing else would ever come. */
  function follow() {
    data.progressUrl = "";
    // There is nobody to follow, but the Hub may have another page by then.
    if (!data.viewToken) { reloadIn(BLIND_MS); return; }
    const state = live.timeline && live.timeline.state;
    tell(state);
    if (data.page === "pending" && (state === "ready" || ENDED.has(state))) reloadIn(700);
    // The Hub has not noticed yet.
    else if (data.page === "waiting" && state === "ready") reloadIn(LATE_MS);
    void live.follow();
  }

  /* The Hub's own stream, while it starts the server. */
  function listen() {
    const source = new EventSource(data.progressUrl);
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.fleet && event.fleet.cancelled) {
        source.close();
        teller.forget();
        live.note(words.__("The start was cancelled."));
        // For a second JupyterHub still takes it for a running server.
        leaveIn(CANCELLED_MS, toGonePage);
        return;
      }
      if (event.fleet) {
        const heading = event.fleet.timeline;
        live.take(heading && { ...heading, events: event.fleet.event ? [event.fleet.event] : [] });
      }
      if (event.ready || event.failed) {
        source.close();
        tell(event.ready ? "ready" : "failed");
        // Ready redirects to the server; failed shows what the controller says now.
        reloadIn(event.ready ? 0 : 300);
      }
    };
    source.onerror = () => {
      // After a Hub restart the stream answers 400: follow the controller instead.
      if (source.readyState !== EventSource.CLOSED || leaving) return;
      follow();
    };
  }

  /* Proxies keep dead streams open, and a Hub that is back may have another page. */
  let isLooking = false;
  setInterval(async () => {
    if (isLooking || leaving || !navigator.onLine || live.silentMs <= SILENCE_MS) return;
    isLooking = true;
    if (await hubAnswers()) leaveIn(0, reload);
    else {
      live.away();
      // The controller may be back first.
      void live.follow();
    }
    isLooking = false;
  }, AWAY_MS);

  const on = (id, action) => {
    const button = document.getElementById(id);
    if (button) button.addEventListener("click", action);
  };

  /* Giving up a start that the Hub has in flight.  The server is named: JupyterHub's
   * own button would stop the default server of whoever looks at the page. */
  on("fleet-leave", () => {
    document.getElementById("fleet-leave-sure").hidden = false;
    document.getElementById("fleet-stay").focus();
  });
  on("fleet-stay", () => {
    document.getElementById("fleet-leave-sure").hidden = true;
    document.getElementById("fleet-leave").focus();
  });
  on("fleet-leave-now", async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    isGivingUp = true;
    teller.forget();
    live.note(words.__("Giving it up…"));
    const answer = await fetch(data.stopUrl, {
      method: "DELETE", headers: { "X-XSRFToken": window.jhdata.xsrf_token },
    }).catch(() => null);
    if (!answer) {
      // Nobody heard it: it can be said again.
      isGivingUp = false;
      button.disabled = false;
      live.note("");
      live.away();
      return;
    }
    if (answer.ok) { toGonePage(); return; }
    // The Hub refuses while it checks servers after its own restart; the controller does not.
    window.location.assign(data.pageUrl || window.location.href);
  });

  /* A page that somebody comes back to is as old as when it was left, and leaves no more. */
  window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });

  /* It can do nothing without a script, so it is hidden until there is one. */
  showWish();
  if (wish) {
    wish.hidden = false;
    wish.addEventListener("click", async () => {
      live.note(await teller.press());
      showWish();
    });
  } else if (data.page === "over") {
    // It was over before this page was made.
    if (document.querySelector(".alert-danger")) tell("failed");
    teller.forget();
  }

  if (data.page === "pending" && data.progressUrl) listen();
  else if (data.page !== "over" || data.viewToken) follow();
  // JupyterHub's own tests wait for this.
  window._jupyterhub_page_loaded = true;
})();
