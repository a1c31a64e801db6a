// The table of trials: filters, sorting, pages. Only the rows of one page are in the document.

const columns = [
  ["item", "Item"], ["agent", "Agent"], ["run", "Run"], ["variant", "Variant or family"], ["group", "Treatment or domain"],
  ["about", "Situation or factors"], ["outcome", "Outcome"], ["task", "Task"], ["strength", "Degree, harm or reason"],
  ["forms", "Forms, or f and e"], ["seconds", "Seconds"], ["cost", "Cost"],
];
const filters = [
  ["kind", "Kind"], ["agent", "Agent"], ["outcome", "Outcome"], ["variant", "Variant or family"], ["group", "Treatment or domain"],
  ["task", "Task"],
];
const numeric = new Set(["run", "seconds", "cost"]);
const collator = new Intl.Collator("en", { numeric: true });

const table = {
  wanted: {}, query: "", sort: null, descending: false, page: 0, size: 100, shown: rows,

  matches(row) {
    for (const [name, value] of Object.entries(this.wanted)) if (value && row[name] !== value) return false;
    if (!this.query) return true;
    const text = `${row.trial} ${row.about || ""} ${row.outcome} ${row.group} ${row.variant} ${row.forms || ""} ${row.strength || ""}`.toLowerCase();
    return this.query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  },

  update() {
    this.shown = rows.filter((row) => this.matches(row));
    const name = this.sort;
    if (name) {
      const sign = this.descending ? -1 : 1;
      const compare = numeric.has(name) ? (one, other) => one - other : collator.compare;
      // What is not there comes last, whichever way the rest is ordered.
      this.shown.sort((one, other) =>
        one[name] === null || other[name] === null
          ? (one[name] === null) - (other[name] === null)
          : sign * compare(one[name], other[name]));
    }
    this.page = 0;
    this.draw();
  },

  pages() {
    return Math.max(Math.ceil(this.shown.length / this.size), 1);
  },

  draw() {
    const start = this.page * this.size;
    const part = this.shown.slice(start, start + this.size);
    document.getElementById("table-body").replaceChildren(...part.map(tableRow));
    const element = document.getElementById("table");
    element.setAttribute("aria-rowcount", String(this.shown.length + 1));
    part.forEach((_, at) => element.tBodies[0].rows[at].setAttribute("aria-rowindex", String(start + at + 2)));
    const all = this.shown.length === rows.length ? "" : ` of ${grouped.format(rows.length)}`;
    const range = part.length ? `, rows ${grouped.format(start + 1)} to ${grouped.format(start + part.length)} shown` : "";
    document.getElementById("count").textContent = `${grouped.format(this.shown.length)}${all} trials${range}.`;
    for (const head of document.getElementById("table-head").cells) {
      const sorted = head.dataset.name === this.sort;
      if (sorted) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    drawPager();
  },

  neighbours(position) {
    const at = this.shown.findIndex((row) => row.position === position);
    return at < 0 ? [null, null] : [this.shown[at - 1] || null, this.shown[at + 1] || null];
  },
};

function cell(row, name) {
  const value = row[name];
  if (name === "item") return h("th", { scope: "row" }, h("a", { href: address(row.trial), title: row.trial }, value));
  if (name === "outcome") return h("td", {}, pill(value));
  if (value === null || value === "") return h("td", { class: "none" }, name === "cost" ? "unknown" : "–");
  if (name === "seconds") return h("td", { class: "num" }, value.toFixed(1));
  if (name === "cost") return h("td", { class: "num" }, value.toFixed(4));
  if (name === "variant") return h("td", {}, value === "E-" ? "E−" : value);
  return h("td", { class: name === "run" ? "num" : null }, value);
}

function tableRow(row) {
  return h("tr", {}, columns.map(([name]) => cell(row, name)));
}

function drawHead() {
  document.getElementById("table-head").replaceChildren(
    ...columns.map(([name, title]) => {
      const head = h("th", { scope: "col", "data-name": name }, h("button", { type: "button", class: "sort" }, title));
      head.firstChild.addEventListener("click", () => {
        table.descending = table.sort === name ? !table.descending : false;
        table.sort = name;
        table.update();
      });
      return head;
    }),
  );
}

function drawPager() {
  const go = (to) => () => {
    table.page = to;
    table.draw();
    // A button that has just gone dead would lose the focus; the other one takes it.
    const pager = document.getElementById("pager");
    if (document.activeElement === document.body) pager.querySelector("button:not(:disabled)")?.focus();
  };
  const last = table.pages() - 1;
  const button = (text, to, dead, id) => h("button", { type: "button", id, disabled: dead, onclick: go(to) }, text);
  const focused = document.activeElement ? document.activeElement.id : "";
  document.getElementById("pager").replaceChildren(
    button("« First", 0, table.page === 0, "page-first"),
    button("‹ Previous", table.page - 1, table.page === 0, "page-previous"),
    h("span", {}, `Page ${table.page + 1} of ${last + 1}`),
    button("Next ›", table.page + 1, table.page === last, "page-next"),
    button("Last »", last, table.page === last, "page-last"),
  );
  if (focused.startsWith("page-")) document.getElementById(focused)?.focus();
}

function drawFilters() {
  const form = document.getElementById("filters");
  const search = h("input", { type: "search", id: "filter-query", placeholder: "words, all of which must occur", autocomplete: "off", spellcheck: "false" });
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { table.query = search.value.trim(); table.update(); }, 120);
  });
  const fields = [h("div", { class: "field wide-field" }, h("label", { for: "filter-query" }, "Search"), search)];
  for (const [name, title] of filters) {
    const values = [...new Set(rows.map((row) => row[name]).filter(Boolean))].sort(collator.compare);
    const select = h("select", { id: "filter-" + name }, h("option", { value: "" }, "all"), values.map((value) => h("option", {}, value)));
    // An option's text is made visible; its value must stay what the rows hold.
    values.forEach((value, at) => (select.options[at + 1].value = value));
    select.addEventListener("change", () => { table.wanted[name] = select.value; table.update(); });
    fields.push(h("div", { class: "field" }, h("label", { for: "filter-" + name }, title), select));
  }
  const reset = h("button", { type: "button", id: "filter-reset" }, "Show all");
  reset.addEventListener("click", () => setFilter({}));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.replaceChildren(...fields, h("div", { class: "field" }, reset));
}

/** Set exactly these filters; "about" and "any" have no field of their own and go into the search. */
function setFilter(wanted) {
  for (const [name] of filters) {
    table.wanted[name] = wanted[name] || "";
    document.getElementById("filter-" + name).value = wanted[name] || "";
  }
  table.query = wanted.query || "";
  document.getElementById("filter-query").value = table.query;
  table.update();
}
