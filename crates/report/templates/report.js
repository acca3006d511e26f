"use strict";
(() => {
  const form = document.getElementById("filter");
  const rule = document.getElementById("rule");
  const path = document.getElementById("path");
  const shown = document.getElementById("shown");
  const rows = Array.from(document.querySelectorAll("tr[data-artifact]"), (row) => ({
    row,
    verdicts: row.dataset.verdicts.split(" "),
    rules: row.dataset.rules.split(" "),
    path: row.cells[0].textContent.toLowerCase(),
    section: document.getElementById("a" + row.dataset.artifact),
  }));
  const apply = () => {
    const chosen = new Set(Array.from(form.querySelectorAll("input[name=verdict]:checked"), (box) => box.value));
    const words = path.value.toLowerCase();
    let count = 0;
    for (const one of rows) {
      const isShown = one.verdicts.some((verdict) => chosen.has(verdict))
        && (rule.value === "" || one.rules.includes(rule.value))
        && one.path.includes(words);
      one.row.hidden = !isShown;
      if (one.section) one.section.hidden = !isShown;
      count += isShown;
    }
    shown.textContent = `${count} of ${rows.length} artifacts shown`;
  };
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const section = target.closest("section[hidden]");
    if (section) {
      form.reset();
      apply();
    }
    target.scrollIntoView();
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  window.addEventListener("hashchange", open);
  form.hidden = false;
  apply();
  open();
})();
