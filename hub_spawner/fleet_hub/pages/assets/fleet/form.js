/* Keeps the cards true while the form is open: what can start now changes. */
(() => {
  "use strict";
  const EVERY_MS = 10000;
  const live = document.getElementById("fleet-live");
  const checked = document.getElementById("fleet-checked");

  const told = (card) => card.querySelector(".fleet-told");
  const PARTS = [".fleet-ends", ".fleet-glyph", ".fleet-word", ".fleet-ahead", ".fleet-sentence"];
  const STATES = ["free", "busy", "away", "forbidden", "never"];

  function showClass(card) {
    const select = card.querySelector("select");
    const option = select && select.selectedOptions[0];
    if (!option) return;
    const { fleetEnds, fleetGlyph, fleetWord, fleetAhead, fleetSentence, fleetState } = option.dataset;
    show(card, [fleetEnds, fleetGlyph, fleetWord, fleetAhead, fleetSentence]);
    STATES.forEach((state) => card.classList.toggle(`fleet-${state}`, state === fleetState));
  }

  /* In place: the link beside it may have the keyboard's focus. */
  function show(card, texts) {
    PARTS.forEach((part, index) => { card.querySelector(part).textContent = texts[index]; });
  }

  /* The page hands over its sentences, in its language. */
  const said = (text, values) => text.replace(/\{(\w+)\}/g, (mark, name) => values[name] ?? mark);

  const stateOf = (card) => told(card).textContent.replace(/\s+/g, " ").trim();

  function announce(card, before) {
    const text = stateOf(card);
    const chosen = card.querySelector("input[type=radio]").checked;
    if (chosen && before !== text) live.textContent = text;
  }

  function patchSelect(card, fresh) {
    const select = card.querySelector("select");
    if (!select) return;
    for (const option of fresh.querySelectorAll("option")) {
      const mine = [...select.options].find((each) => each.value === option.value);
      if (!mine) continue;
      Object.assign(mine.dataset, option.dataset);
      mine.textContent = option.textContent;
      mine.disabled = option.disabled;
    }
    showClass(card);
  }

  const slugs = (page) => [...page.querySelectorAll("[data-fleet-card]")]
    .map((card) => card.dataset.fleetCard).join(" ");

  function patch(fresh) {
    for (const card of document.querySelectorAll("[data-fleet-card]")) {
      const other = fresh.querySelector(`[data-fleet-card="${CSS.escape(card.dataset.fleetCard)}"]`);
      if (!other) continue;
      const before = stateOf(card);
      if (card.querySelector("select")) {
        patchSelect(card, other);
      } else {
        card.className = other.className;
        show(card, PARTS.map((part) => other.querySelector(part).textContent));
      }
      card.querySelector("input[type=radio]").disabled = other.querySelector("input[type=radio]").disabled;
      announce(card, before);
    }
  }

  /* Other profiles are offered now; what is chosen stays chosen, if it still can be. */
  function lookAtNewCatalog() {
    const card = document.querySelector("[data-fleet-card]:has(input[type=radio]:checked)");
    const select = card && card.querySelector("select");
    const choice = card ? [card.dataset.fleetCard, select && select.value].filter(Boolean).join("/") : "";
    window.location.search = choice ? `?choice=${encodeURIComponent(choice)}` : "";
  }

  async function refresh() {
    if (document.visibilityState !== "visible") return;
    const answer = await fetch(window.location.pathname, { headers: { Accept: "text/html" } });
    // The server was started meanwhile, from another tab or by its turn in the line.
    if (answer.redirected) { window.location.reload(); return; }
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    // The Hub answers, the controller does not: what is shown gets older.
    if (!fresh.getElementById("fleet-checked")) return;
    if (slugs(fresh) !== slugs(document)) { lookAtNewCatalog(); return; }
    patch(fresh);
    heard = Date.now();
    tellAge();
  }

  /* What would be started, beside the button, where the list is long. */
  function tellChosen() {
    if (!document.getElementById("fleet-search")) return;
    const line = document.getElementById("fleet-chosen");
    const card = document.querySelector("[data-fleet-card]:has(input[type=radio]:checked)");
    if (!line || !card) return;
    const option = card.querySelector("select")?.selectedOptions[0];
    const named = option ? option.dataset.fleetTitle : card.querySelector(".fleet-class").textContent;
    const profile = `${card.querySelector(".fleet-title").textContent} · ${named}`;
    line.textContent = said(line.dataset.chosen, { profile });
    line.hidden = false;
  }

  /* How old what is shown may be; it ticks, so it is never announced. */
  let heard = Date.now();
  function tellAge() {
    const seconds = Math.round((Date.now() - heard) / 1000);
    const late = Date.now() - heard > 3 * EVERY_MS;
    checked.textContent = late
      ? said(checked.dataset.late, { ago: seconds })
      : seconds < 2 ? checked.dataset.now : said(checked.dataset.ago, { ago: seconds });
  }

  /* Many profiles: only those with all of the words are shown, and the chosen one. */
  function search() {
    const box = document.getElementById("fleet-search");
    if (!box) return;
    box.hidden = false;
    const input = document.getElementById("fleet-search-text");
    const cards = [...document.querySelectorAll("[data-fleet-card]")];
    const named = ".fleet-title, .fleet-description, .fleet-holds, option, .fleet-word";
    const textOf = (card) => [...card.querySelectorAll(named)].map((part) => part.textContent);
    const texts = new Map(cards.map((card) => [card, textOf(card).join(" ").toLowerCase()]));
    function filter() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      for (const card of cards) {
        const matches = words.every((word) => texts.get(card).includes(word));
        found += matches ? 1 : 0;
        card.hidden = !matches && !card.querySelector("input").checked;
      }
      const line = document.getElementById("fleet-found");
      const text = words.length ? said(line.dataset.found, { found, count: cards.length }) : "";
      line.textContent = text;
      live.textContent = text;
    }
    input.addEventListener("input", filter);
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      // It would start the server that happens to be chosen.
      event.preventDefault();
      const first = cards.find((card) => !card.hidden && !card.querySelector("input").disabled
        && input.value && texts.get(card).includes(input.value.toLowerCase().trim().split(/\s+/)[0]));
      if (first) first.querySelector("input").focus();
    });
  }

  document.addEventListener("change", tellChosen);
  // The line for it comes after this script.
  document.addEventListener("DOMContentLoaded", tellChosen);

  for (const card of document.querySelectorAll("[data-fleet-card]")) {
    const select = card.querySelector("select");
    if (!select) continue;
    select.addEventListener("change", () => {
      card.querySelector("input[type=radio]").checked = true;
      showClass(card);
    });
  }
  if (document.querySelector("[data-fleet-card]")) {
    const again = () => refresh().catch(() => { /* the next one may succeed */ });
    setInterval(again, EVERY_MS);
    setInterval(tellAge, 1000);
    document.getElementById("fleet-again").addEventListener("click", (event) => {
      event.preventDefault();
      again();
    });
    search();
  }
})();
