// Which page the address asks for, and moving the focus there.

const pageTitle = document.title;
let back = null;

async function openTrial(rest) {
  const both = rest.endsWith("/both");
  let name = null;
  try {
    name = decodeURIComponent(both ? rest.slice(0, -5) : rest);
  } catch {
    // A mangled address: the same as a trial that is not here.
  }
  const position = positions.get(name);
  if (position === undefined) return false;
  const overview = document.getElementById("overview");
  if (overview && !overview.hidden) back = { scroll: window.scrollY, trial: name };
  const title = await showTrial(position, both, table.neighbours(position));
  if (overview) overview.hidden = true;
  document.getElementById("sections")?.setAttribute("hidden", "");
  document.getElementById("trial").hidden = false;
  document.title = plain(titleOf(rows[position]));
  window.scrollTo(0, 0);
  title.focus({ preventScroll: true });
  return true;
}

function openOverview(target) {
  const trial = document.getElementById("trial");
  const returning = !trial.hidden;
  document.getElementById("overview").hidden = false;
  document.getElementById("sections").hidden = false;
  trial.hidden = true;
  trial.replaceChildren();
  document.title = pageTitle;
  if (!returning) return;
  if (back && (target === "trials" || target === "")) {
    window.scrollTo(0, back.scroll);
    const links = [...document.querySelectorAll("#table-body a")];
    links.find((link) => link.getAttribute("href") === address(back.trial))?.focus({ preventScroll: true });
  } else {
    const place = document.getElementById(target);
    place?.scrollIntoView();
    place?.focus({ preventScroll: true });
  }
}

async function route() {
  const target = location.hash.slice(1);
  if (target.startsWith("trial/") && (await openTrial(target.slice(6)))) return;
  if (!payload.single) openOverview(target);
}

if (payload.single) {
  showTrial(0, false, [null, null]);
} else {
  drawFilters();
  drawHead();
  table.update();
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-filter]");
    if (!link) return;
    const { filter, value } = link.dataset;
    setFilter(filter === "about" || filter === "any" ? { query: value } : { [filter]: value });
  });
  route();
}
window.addEventListener("hashchange", route);
