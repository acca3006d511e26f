"use strict";
(() => {
  const form = document.getElementById("filter");
  const rule = document.getElementById("rule");
  const path = document.getElementById("path");
  const shown = document.getElementById("shown");
  const elements = document.querySelectorAll("tr[data-artifact]");
  let rows;
  // Read when somebody filters, so that a long page opens at once.
  const read = () => Array.from(elements, (row) => ({
    row,
    verdicts: row.dataset.verdicts.split(" "),
    rules: row.dataset.rules.split(" "),
    path: row.cells[0].textContent.toLowerCase(),
    section: document.getElementById("a" + row.dataset.artifact),
  }));
  const say = (count) => { shown.textContent = `${count} of ${elements.length} artifacts shown`; };
  const apply = () => {
    const chosen = new Set(Array.from(form.querySelectorAll("input[name=verdict]:checked"), (box) => box.value));
    const words = path.value.toLowerCase();
    let count = 0;
    rows ??= read();
    for (const one of rows) {
      const isShown = one.verdicts.some((verdict) => chosen.has(verdict))
        && (rule.value === "" || one.rules.includes(rule.value))
        && one.path.includes(words);
      one.row.hidden = !isShown;
      if (one.section) one.section.hidden = !isShown;
      count += isShown;
    }
    say(count);
  };
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    const section = target.closest("section[hidden]");
    if (section) {
      form.reset();
      apply();
    }
    target.scrollIntoView();
  };
  // A browser may have kept the filter of a page that is loaded again.
  form.reset();
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  window.addEventListener("hashchange", open);
  form.hidden = false;
  say(elements.length);
  open();
})();
