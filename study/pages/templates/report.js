"use strict";
// A click on a column's name sorts by that column; another click reverses the order. Numbers start
// with the largest, words with the first; cells without a number stay at the end.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const rows = Array.from(table.tBodies[0].rows);
      const cells = new Map(rows.map((row) => [row, row.cells[column]]));
      const value = (row) => parseFloat(cells.get(row).dataset.value);
      const numeric = rows.some((row) => !Number.isNaN(value(row)));
      const first = numeric ? "descending" : "ascending";
      const second = numeric ? "ascending" : "descending";
      const order = before === first ? second : first;
      const sign = order === "ascending" ? 1 : -1;
      const last = sign * Infinity;
      rows.sort((a, b) => {
        if (!numeric) {
          return sign * cells.get(a).textContent.localeCompare(cells.get(b).textContent);
        }
        const [x, y] = [a, b].map((row) => (Number.isNaN(value(row)) ? last : value(row)));
        return x === y ? 0 : sign * (x - y);
      });
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      table.tBodies[0].append(...rows);
    });
  });
}
// The leaderboards show the models of one kind and the data of one family, or all of them.
const filters = Array.from(document.querySelectorAll(".filters select"));
const applyFilters = () => {
  const [kind, family] = filters.map((select) => select.value);
  for (const part of document.querySelectorAll(".board [data-kind]")) {
    part.hidden = !["", part.dataset.kind].includes(kind);
  }
  for (const part of document.querySelectorAll(".board [data-family]")) {
    part.hidden = !["", part.dataset.family].includes(family);
  }
};
filters.forEach((select) => select.addEventListener("change", applyFilters));
