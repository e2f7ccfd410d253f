/* Keeps a server's page true: from the Hub's event stream while it starts there, else
 * from the controller, and by loading the page anew once the Hub has something else
 * to show.  The page says what it knows in `#fleet-view`'s data. */
(() => {
  "use strict";
  const view = document.getElementById("fleet-view");
  if (!view) return;
  const { ENDED, LiveTimeline } = window.FleetTimeline;
  const data = view.dataset;
  const SILENCE_MS = 45000;
  const CANCELLED_MS = 2500;
  const AWAY_MS = 3000;
  const LATE_MS = 3000;
  let leaving = false;

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

  function leaveIn(milliseconds, go) {
    if (leaving) return;
    leaving = true;
    live.leave();
    setTimeout(go, milliseconds);
  }

  /* A page that is loaded while the Hub is away is the proxy's, and never comes back. */
  async function hubAnswers() {
    const answer = await fetch(`${window.jhdata.base_url}api/`, { cache: "no-store" }).catch(() => null);
    return Boolean(answer && answer.ok);
  }

  async function reload() {
    if (await hubAnswers()) { window.location.reload(); return; }
    live.away();
    setTimeout(reload, AWAY_MS);
  }

  function reloadIn(milliseconds) { leaveIn(milliseconds, reload); }

  const toGonePage = () => window.location.assign(data.goneUrl);

  /* The turn has come, or it is over: the Hub shows another page now. */
  function settle(state) {
    const waits = state === "requested" || state === "queued";
    if (data.page === "waiting" && !waits) reloadIn(700);
    if (data.page === "pending" && !data.progressUrl && (state === "ready" || ENDED.has(state))) reloadIn(700);
  }

  /* Follows the controller.  A page may be made a moment after its time: what it knows
   * already is then no news, and nothing else would ever come. */
  function follow() {
    data.progressUrl = "";
    const state = live.timeline && live.timeline.state;
    if (state === "ready") {
      if (data.page === "pending") reloadIn(700);
      // The Hub has not noticed yet.
      else if (data.page === "waiting") reloadIn(LATE_MS);
    }
    void live.follow();
  }

  /* The Hub's own stream, while it starts the server. */
  function listen() {
    const source = new EventSource(data.progressUrl);
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.fleet && event.fleet.cancelled) {
        source.close();
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
    if (await hubAnswers()) reloadIn(0);
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
    event.currentTarget.disabled = true;
    live.note(words.__("Giving it up…"));
    const answer = await fetch(data.stopUrl, {
      method: "DELETE", headers: { "X-XSRFToken": window.jhdata.xsrf_token },
    });
    if (answer.ok) { toGonePage(); return; }
    // The Hub refuses while it checks servers after its own restart; the controller does not.
    window.location.assign(data.pageUrl || window.location.href);
  });

  if (data.page === "pending" && data.progressUrl) listen();
  else if (data.viewToken) follow();
  else if (data.page !== "over") reloadIn(15000);
  // JupyterHub's own tests wait for this.
  window._jupyterhub_page_loaded = true;
})();
