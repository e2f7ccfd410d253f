/* Keeps a server's page true: from the Hub's event stream while it starts there, else
 * from the controller, and by loading the page anew once the Hub has something else
 * to show.  The page says what it knows in `#fleet-view`'s data. */
(() => {
  "use strict";
  const view = document.getElementById("fleet-view");
  if (!view) return;
  const drawing = window.FleetTimeline;
  const data = view.dataset;
  const SILENCE_MS = 45000;
  const CANCELLED_MS = 2500;
  const title = document.title;
  let doc = JSON.parse(document.getElementById("fleet-document").textContent);
  let heard = Date.now();
  // The clocks of server and browser differ: durations are counted on the server's.
  let ahead = doc.as_of ? Date.parse(doc.as_of) - Date.now() : 0;
  let leaving = false;

  const note = (text) => { view.querySelector(".fleet-note").textContent = text; };

  function draw() {
    if (!doc.state) return;
    drawing.render(view, doc, Date.now() + ahead);
    const ahead_of_you = doc.position;
    document.title = ahead_of_you > 0 ? `(${ahead_of_you} ahead) ${title}` : title;
  }

  function take(heading, events) {
    heard = Date.now();
    if (!heading) { note("The controller is not answering; trying again."); return; }
    note("");
    ahead = Date.parse(heading.as_of) - Date.now();
    const before = doc.state;
    doc = drawing.merge(doc, heading, events);
    draw();
    view.dispatchEvent(new CustomEvent("fleet-state", { detail: { before, now: doc.state } }));
  }

  function reloadIn(milliseconds) {
    if (leaving) return;
    leaving = true;
    setTimeout(() => window.location.reload(), milliseconds);
  }

  /* 1. The Hub's own stream, while it starts the server. */
  function listen() {
    const source = new EventSource(data.progressUrl);
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      heard = Date.now();
      if (event.fleet && event.fleet.cancelled) {
        source.close();
        note("The start was cancelled.");
        // For a second JupyterHub still takes it for a running server.
        reloadIn(CANCELLED_MS);
        return;
      }
      if (event.fleet) take(event.fleet.timeline, event.fleet.event ? [event.fleet.event] : []);
      if (event.ready || event.failed) {
        source.close();
        // Ready redirects to the server; failed shows what the controller says now.
        reloadIn(event.ready ? 0 : 300);
      }
    };
    source.onerror = () => {
      // After a Hub restart the stream answers 400: follow the controller instead.
      if (source.readyState === EventSource.CLOSED && !leaving) follow();
    };
  }

  /* 2. The controller, with a token that reads this timeline and nothing else. */
  let following = false;
  async function follow() {
    if (following) return;
    following = true;
    let pause = 1000;
    while (!leaving) {
      try {
        const last = doc.events && doc.events.length ? doc.events[doc.events.length - 1].seq : 0;
        const answer = await fetch(`${data.serviceUrl}api/timeline?after=${last}&wait=20`, {
          headers: { Authorization: `Fleet ${data.viewToken}` }, cache: "no-store",
        });
        if (answer.status === 401 || answer.status === 403 || answer.status === 404) {
          // Another start began, or this one is forgotten: the page is out of date.
          reloadIn(pause);
          return;
        }
        if (answer.ok) {
          const fresh = await answer.json();
          const { events, ...heading } = fresh;
          take(heading, events || []);
          pause = 1000;
          settle();
          continue;
        }
        if (answer.status === 304) { heard = Date.now(); continue; }
        throw new Error(`HTTP ${answer.status}`);
      } catch {
        note("The controller is not answering; trying again.");
        await new Promise((resolve) => setTimeout(resolve, pause));
        pause = Math.min(pause * 2, 15000);
      }
    }
  }

  /* The turn has come, or it is over: the Hub shows another page now. */
  function settle() {
    const waits = doc.state === "requested" || doc.state === "queued";
    if (data.page === "waiting" && !waits) reloadIn(700);
    if (data.page === "pending" && (doc.state === "ready" || drawing.ENDED.has(doc.state))) reloadIn(700);
  }

  setInterval(() => {
    if (document.visibilityState === "visible") draw();
    if (!navigator.onLine) { note("You are offline."); return; }
    if (Date.now() - heard > SILENCE_MS) reloadIn(0);
  }, 1000);

  function copy(text) {
    navigator.clipboard.writeText(text).then(() => note("Copied."), () => note("The browser did not allow copying."));
  }
  const on = (id, action) => {
    const button = document.getElementById(id);
    if (button) button.addEventListener("click", action);
  };
  on("fleet-copy-text", () => copy(drawing.asText(doc)));
  on("fleet-copy-json", () => copy(JSON.stringify(doc, null, 2)));

  /* Giving up a start that the Hub has in flight.  The server is named: JupyterHub's
   * own button would stop the default server of whoever looks at the page. */
  on("fleet-leave", () => { document.getElementById("fleet-leave-sure").hidden = false; });
  on("fleet-stay", () => { document.getElementById("fleet-leave-sure").hidden = true; });
  on("fleet-leave-now", async (event) => {
    event.currentTarget.disabled = true;
    note("Giving it up…");
    const answer = await fetch(data.stopUrl, {
      method: "DELETE", headers: { "X-XSRFToken": window.jhdata.xsrf_token },
    });
    if (answer.ok) { reloadIn(0); return; }
    // The Hub refuses while it checks servers after its own restart; the controller does not.
    window.location.assign(data.pageUrl || window.location.href);
  });

  draw();
  if (data.page === "pending" && data.progressUrl) listen();
  else if (data.viewToken) follow();
  else if (data.page !== "over") reloadIn(15000);
  // JupyterHub's own tests wait for this.
  window._jupyterhub_page_loaded = true;
})();
