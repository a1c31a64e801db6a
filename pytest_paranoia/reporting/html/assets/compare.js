// A trial on the page, alone or beside the other variant of its pair.

function whole(pieces) {
  return pieces && pieces.every((piece) => typeof piece === "string") ? pieces.join("") : null;
}

/** Where two instructions differ, cut at white space: what one of them says and the other does not. */
function difference(one, other) {
  let start = 0;
  const most = Math.min(one.length, other.length);
  while (start < most && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < most - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  while (start > 0 && !/\s/.test(one[start - 1])) start -= 1;
  while (end > 0 && !/\s/.test(one[one.length - end])) end -= 1;
  return [one.slice(start, one.length - end), other.slice(start, other.length - end)];
}

function evidencePart(detail, other, level) {
  const record = detail.record;
  if (record.kind !== "pair") return null;
  const title = "Evidence";
  if (!other) return section(level, title, h("p", { class: "dim" }, "The other variant of this pair is not in this run, so what differs cannot be shown."));
  const mine = whole(detail.instruction);
  const theirs = whole(other.detail.instruction);
  if (mine === null || theirs === null) return section(level, title, h("p", { class: "dim" }, "The instruction is too long to compare here."));
  if (mine === theirs) {
    return section(level, title, h("p", {}, "Both variants have the same instruction: the fact stands, or is missing, in the files of the repository."));
  }
  const [here, there] = difference(mine, theirs);
  const said = (variant, text, current) =>
    h("div", { class: "evidence" + (current ? " current" : "") }, h("dt", {}, variant === "E+" ? "E+" : "E−", current ? " (this trial)" : ""),
      h("dd", { class: "prose" }, text.trim() || "(says nothing of it)"));
  return section(level, title, h("dl", { class: "both" }, said(record.variant, here, true), said(other.row.variant, there, false)));
}

function titleOf(row) {
  return `${row.item}, ${row.agent}, run ${row.run}`;
}

function trialNav(row, neighbours) {
  const link = (target, text, label) => (target ? h("li", {}, h("a", { href: address(target.trial), "aria-label": label }, text)) : null);
  const other = counterpart(row.position);
  return h(
    "nav",
    { "aria-label": "Trial", class: "trialnav" },
    h("ul", {},
      payload.single ? null : h("li", {}, h("a", { href: "#trials", id: "back" }, "← All trials")),
      link(neighbours[0], "‹ Previous", "Previous trial in the table"),
      link(neighbours[1], "Next ›", "Next trial in the table"),
      other ? link(other, `Other variant: ${other.variant === "E-" ? "E−" : "E+"}`, null) : null,
      payload.pages ? h("li", {}, h("a", { href: payload.pages[row.position] }, "Page with whole texts")) : null,
    ),
  );
}

function column(row, detail, other) {
  const name = row.variant === "E-" ? "E−: evidence absent" : "E+: evidence present";
  return h(
    "section",
    { class: "column", "aria-label": name },
    h("h2", {}, name, " ", pill(row.outcome)),
    trialBody(detail, 3, evidencePart(detail, other, 3)),
  );
}

/** Build the page of a trial into the element with id "trial"; `both` shows the two variants side by side. */
async function showTrial(position, both, neighbours) {
  const row = rows[position];
  const detail = await detailOf(position);
  const otherRow = counterpart(position);
  const other = otherRow ? { row: otherRow, detail: await detailOf(otherRow.position) } : null;
  const page = document.getElementById("trial");
  const title = h("h1", { id: "trial-title", tabindex: "-1" }, titleOf(row));
  const head = h("p", { class: "trialhead" }, pill(row.outcome), " ",
    row.variant ? h("span", { class: "tag" }, row.variant === "E-" ? "E−" : row.variant) : null, " ",
    h("span", { class: "tag" }, row.group), " ", h("span", { class: "dim" }, row.about || ""));
  const switched = other
    ? h("p", {}, h("a", { class: "button", href: address(row.trial, !both) }, both ? "Show this variant alone" : "Show both variants side by side"))
    : null;
  page.replaceChildren(trialNav(row, neighbours), title, head, h("p", { class: "dim" }, row.trial), ...(switched ? [switched] : []));
  if (both && other) {
    const mine = { row, detail };
    const sides = row.variant === "E-" ? [[mine, other], [other, mine]] : [[mine, other], [other, mine]];
    // E+ always stands left, so that the eye learns where it is.
    sides.sort(([one]) => (one.row.variant === "E+" ? -1 : 1));
    page.append(h("div", { class: "columns" }, sides.map(([one, two]) => column(one.row, one.detail, two))));
  } else {
    page.append(...trialBody(detail, 2, evidencePart(detail, other, 2)).filter(Boolean));
  }
  return title;
}
