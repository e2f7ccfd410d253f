/* Keeps the cards true while the form is open: what can start now changes. */
(() => {
  "use strict";
  const EVERY_MS = 10000;
  const live = document.getElementById("fleet-live");

  const stateLine = (card) => card.querySelector(".fleet-state");
  const STATES = ["free", "busy", "away", "forbidden", "never"];

  function showClass(card) {
    const select = card.querySelector("select");
    const option = select && select.selectedOptions[0];
    if (!option) return;
    const line = stateLine(card);
    line.querySelector(".fleet-glyph").textContent = option.dataset.fleetGlyph;
    line.querySelector(".fleet-word").textContent = option.dataset.fleetWord;
    line.querySelector(".fleet-sentence").textContent = option.dataset.fleetSentence;
    STATES.forEach((state) => card.classList.toggle(`fleet-${state}`, state === option.dataset.fleetState));
  }

  function announce(card, before) {
    const text = stateLine(card).textContent.replace(/\s+/g, " ").trim();
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

  function patch(fresh) {
    for (const card of document.querySelectorAll("[data-fleet-card]")) {
      const other = fresh.querySelector(`[data-fleet-card="${CSS.escape(card.dataset.fleetCard)}"]`);
      if (!other) continue;
      const before = stateLine(card).textContent.replace(/\s+/g, " ").trim();
      if (card.querySelector("select")) {
        patchSelect(card, other);
      } else {
        card.className = other.className;
        stateLine(card).innerHTML = stateLine(other).innerHTML;
      }
      card.querySelector("input[type=radio]").disabled = other.querySelector("input[type=radio]").disabled;
      announce(card, before);
    }
  }

  async function refresh() {
    if (document.visibilityState !== "visible") return;
    const answer = await fetch(window.location.pathname, { headers: { Accept: "text/html" } });
    // The server was started meanwhile, from another tab or by its turn in the line.
    if (answer.redirected) { window.location.reload(); return; }
    if (!answer.ok) return;
    patch(new DOMParser().parseFromString(await answer.text(), "text/html"));
  }

  for (const card of document.querySelectorAll("[data-fleet-card]")) {
    const select = card.querySelector("select");
    if (!select) continue;
    select.addEventListener("change", () => {
      card.querySelector("input[type=radio]").checked = true;
      showClass(card);
    });
  }
  if (document.querySelector("[data-fleet-card]")) {
    setInterval(() => refresh().catch(() => { /* the next one may succeed */ }), EVERY_MS);
  }
})();
