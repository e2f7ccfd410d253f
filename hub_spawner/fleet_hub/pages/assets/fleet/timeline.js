/* Draws an admission timeline: a document in, rows patched in place.
 *
 * The document is the contract `jupyterhub-fleet/timeline/v1`.  Nothing here fetches
 * or decides; the pages that include this file do. */
window.FleetTimeline = (() => {
  "use strict";
  const PHASES = ["asked", "waiting", "placed", "starting", "ready"];
  const PHASE_OF = {
    requested: "asked", refused: "asked", queued: "waiting", placed: "placed",
    preparing: "starting", starting: "starting", ready: "ready",
  };
  const ENDED = new Set(["stopped", "failed", "refused"]);
  const LABELS = {
    asked: "Asked", waiting: "Waiting in line", placed: "Placed on a machine",
    starting: "Starting the server", ready: "Ready",
  };
  const GLYPHS = {
    done: ["✓", "done"], now: ["●", "now"], todo: ["○", "not yet"], failed: ["✕", "ended here"],
  };
  const STEPS = {
    resolve_environment: "Looking for the environment",
    build_environment: "Building the environment",
    create_environment: "Creating the environment",
    install_packages: "Installing packages",
    download_packages: "Fetching packages",
    compile_packages: "Compiling the packages",
    start_sandbox: "Making the sandbox",
    verify_environment: "Checking the environment",
    start_server: "Starting the notebook server",
    wait_for_server: "Waiting for the notebook server to answer",
  };

  function inWords(seconds) {
    const whole = Math.max(0, Math.round(seconds));
    const hours = Math.floor(whole / 3600);
    const minutes = Math.floor((whole % 3600) / 60);
    if (hours) return `${hours} h ${minutes} min`;
    if (minutes) return `${minutes} min ${whole % 60} s`;
    return `${whole} s`;
  }

  /* Returns the document with these events added, of its newest generation alone. */
  function merge(doc, heading, events) {
    const next = Object.assign({ events: [] }, doc, heading || {});
    const known = new Map();
    for (const event of [...((doc && doc.events) || []), ...events]) known.set(event.seq, event);
    next.events = [...known.values()]
      .filter((event) => event.generation === next.generation)
      .sort((one, other) => one.seq - other.seq);
    return next;
  }

  function phaseOf(event) {
    return ENDED.has(event.state) && event.state !== "refused" ? null : PHASE_OF[event.state] || null;
  }

  function spent(events, now) {
    const seconds = {};
    events.forEach((event, index) => {
      const phase = phaseOf(event);
      if (!phase || phase === "ready") return;
      const end = index + 1 < events.length ? Date.parse(events[index + 1].at) : now;
      seconds[phase] = (seconds[phase] || 0) + Math.max(0, end - Date.parse(event.at)) / 1000;
    });
    return seconds;
  }

  function stepText(progress) {
    const name = STEPS[progress.step] || progress.step.replaceAll("_", " ");
    const words = name.charAt(0).toUpperCase() + name.slice(1);
    return progress.total ? `${words}: ${progress.done} of ${progress.total} ${progress.unit}` : words;
  }

  function label(phase, doc, status) {
    if (phase === "asked" && doc.profile_title) return `Asked for ${doc.profile_title}`;
    if (phase === "placed" && doc.machine && status !== "todo") return `Placed on ${doc.machine}`;
    return LABELS[phase];
  }

  /* Returns the five rows of the document as of `now` (ms since the epoch). */
  function rows(doc, now) {
    const events = doc.events || [];
    const reached = events.map(phaseOf).filter(Boolean);
    const latest = reached.length ? Math.max(...reached.map((phase) => PHASES.indexOf(phase))) : 0;
    const over = ENDED.has(doc.state);
    const seconds = spent(events, over && events.length ? Date.parse(events[events.length - 1].at) : now);
    const lastWith = (test) => events.findLast(test);
    return PHASES.map((phase, index) => {
      let status = index < latest ? "done" : "todo";
      if (index === latest) status = over ? "failed" : phase === "ready" ? "done" : "now";
      const row = { phase, status, label: label(phase, doc, status), detail: "", progress: null };
      row.seconds = status === "todo" || phase === "ready" ? null : seconds[phase] || 0;
      if (phase === "starting" && status === "now") {
        const step = lastWith((event) => event.progress && event.state === doc.state);
        if (step) {
          row.detail = stepText(step.progress);
          row.progress = step.progress;
        }
      }
      return row;
    });
  }

  function element(tag, className, parent) {
    const made = document.createElement(tag);
    made.className = className;
    if (parent) parent.append(made);
    return made;
  }

  function setText(target, text) {
    if (target.textContent !== text) target.textContent = text;
  }

  function makeRow(list, phase) {
    const item = element("li", "fleet-row", list);
    item.dataset.phase = phase;
    const line = element("div", "fleet-line", item);
    const glyph = element("span", "fleet-glyph", line);
    glyph.setAttribute("role", "img");
    element("span", "fleet-label", line);
    element("time", "fleet-time", line);
    element("div", "fleet-detail", item);
    const bar = element("div", "progress fleet-progress", item);
    bar.setAttribute("aria-hidden", "true");
    element("div", "progress-bar", bar);
    return item;
  }

  function patchRow(list, row) {
    const item = list.querySelector(`[data-phase="${row.phase}"]`) || makeRow(list, row.phase);
    const part = (name) => item.querySelector(`.${name}`);
    item.dataset.status = row.status;
    if (row.status === "now") item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    const [glyph, word] = GLYPHS[row.status];
    setText(part("fleet-glyph"), glyph);
    part("fleet-glyph").setAttribute("aria-label", word);
    setText(part("fleet-label"), row.label);
    const time = part("fleet-time");
    setText(time, row.seconds === null ? "" : inWords(row.seconds));
    if (row.seconds !== null) time.setAttribute("datetime", `PT${Math.round(row.seconds)}S`);
    setText(part("fleet-detail"), row.detail);
    const total = row.progress && row.progress.total;
    part("fleet-progress").hidden = !total;
    if (total) part("progress-bar").style.width = `${Math.min(100, (100 * row.progress.done) / total)}%`;
  }

  /* Patches the rows into an <ol>, and the sums into the view around it. */
  function render(view, doc, now) {
    const list = view.querySelector(".fleet-rows");
    const drawn = rows(doc, now);
    if (!list.querySelector("[data-phase]")) list.replaceChildren();
    drawn.forEach((row) => patchRow(list, row));
    const headline = view.querySelector(".fleet-headline");
    if (headline && doc.headline) setText(headline, doc.headline);
    const of = (phase) => drawn.find((row) => row.phase === phase).seconds || 0;
    const waiting = of("waiting");
    const starting = of("placed") + of("starting");
    const total = of("asked") + waiting + starting;
    const sums = view.querySelector(".fleet-total");
    if (sums) setText(sums, `${inWords(total)} in all, ${inWords(waiting)} of it waiting`);
    const bar = view.querySelector(".fleet-bar");
    if (bar) {
      bar.querySelector(".fleet-bar-waiting").style.flexGrow = String(waiting);
      bar.querySelector(".fleet-bar-starting").style.flexGrow = String(starting);
    }
  }

  /* The fixed-width text that people paste into a message. */
  function asText(doc) {
    const lines = [`${doc.headline || ""}`, `workload ${doc.workload}, start ${doc.generation}`];
    for (const event of doc.events || []) {
      const why = event.explanation ? ` ${event.explanation.reason}` : "";
      const where = event.machine ? ` on ${event.machine}` : "";
      const step = event.progress ? ` ${stepText(event.progress)}` : "";
      lines.push(`${event.at}  ${event.kind.padEnd(10)}${where}${why}${step}`);
    }
    return lines.join("\n");
  }

  return { PHASES, ENDED, merge, rows, render, inWords, asText };
})();
