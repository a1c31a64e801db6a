// A trial on the page, alone or beside the other variant of its pair.

function whole(pieces) {
  return pieces && pieces.every((piece) => typeof piece === "string") ? pieces.join("") : null;
}

/** Where two instructions differ, in whole sentences: what one of them says and the other does not. */
function difference(one, other) {
  let start = 0;
  const most = Math.min(one.length, other.length);
  while (start < most && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < most - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  while (start > 0 && !/\n$|[.!?]\s$/.test(one.slice(Math.max(start - 2, 0), start))) start -= 1;
  while (end > 0 && !/[.!?\n]$/.test(one.slice(0, one.length - end))) end -= 1;
  return [one.slice(start, one.length - end), other.slice(start, other.length - end)];
}

const sideNames = ["E+ (evidence present)", "E− (evidence absent)"];

/** One file of the evidence in two columns, E+ left; a sign says which lines only one variant has. */
function evidenceFile(file) {
  const [plus, minus] = file.there;
  const where = plus && minus ? "differs" : plus ? "only in E+" : "only in E−";
  const title = [h("code", {}, file.path), " ", h("span", { class: "dim" }, where)];
  if (file.sizes) {
    const sizes = file.sizes.map((size) => (size === null ? "not there" : plural(size, "byte")));
    return h("div", { class: "evidencefile" }, h("p", {}, title, `: binary or too large to show; E+ ${sizes[0]}, E− ${sizes[1]}`));
  }
  const cell = (text, other, sign) => {
    if (text === null) return h("td", { class: "void" }, h("span", { class: "sr" }, "no such line"));
    const own = text !== other;
    return h("td", { class: own ? (sign === "+" ? "add" : "del") : "same" }, own ? sign : " ", text);
  };
  const line = (one) =>
    typeof one === "number"
      ? h("tr", {}, h("td", { colspan: 2, class: "gap" }, `${plural(one, "line")} that both have`))
      : h("tr", {}, cell(one[0], one[1], "+"), cell(one[1], one[0], "−"));
  return h(
    "table",
    { class: "sides" },
    h("caption", {}, title),
    h("thead", {}, h("tr", {}, sideNames.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, file.lines.map(line), file.more ? h("tr", {}, h("td", { colspan: 2, class: "gap" }, `${plural(file.more, "line")} left out here`)) : null),
  );
}

function instructionsDiffer(mine, theirs, variant) {
  const [here, there] = difference(mine, theirs);
  const said = (name, text, current) =>
    h("div", { class: "evidence" + (current ? " current" : "") }, h("dt", {}, name === "E+" ? "E+" : "E−", current ? " (this trial)" : ""),
      h("dd", { class: "prose" }, text.trim() || "(says nothing of it)"));
  return h("dl", { class: "both" }, said(variant, here, true), said(variant === "E+" ? "E-" : "E+", there, false));
}

function inFiles(archived) {
  return Boolean(archived) && !archived.problem && archived.carrier === "repository";
}

/** The fact that decides: from the archive of the run, else from the instructions of both trials. */
function evidencePart(detail, other, level, archived) {
  const record = detail.record;
  if (record.kind !== "pair") return null;
  const part = (...children) => section(level, "Evidence", ...children);
  const told = (text) => part(h("p", { class: "dim" }, text));
  if (archived && archived.problem) return part(h("p", { class: "notice warn" }, archived.problem));
  if (inFiles(archived)) {
    return part(
      h("p", {}, "Both variants have the same instruction. The fact stands, or is missing, in the files of the repository:"),
      ...archived.files.map((file) => h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Evidence in " + file.path }, evidenceFile(file))),
    );
  }
  const both = archived ? archived.instructions : null;
  const own = record.variant === "E+" ? 0 : 1;
  const mine = whole(both ? both[own] : detail.instruction);
  if (!both && !other) return told("What differs was not archived with this run, and the other variant of this pair is not in it.");
  const theirs = whole(both ? both[1 - own] : other.detail.instruction);
  if (mine === null || theirs === null) return told("The instruction is too long to compare here.");
  if (mine === theirs) return told("Both variants have the same instruction: the fact stands, or is missing, in the files of the repository. What differs was not archived with this run.");
  return part(instructionsDiffer(mine, theirs, record.variant));
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

function column(row, detail, other, archived) {
  const name = row.variant === "E-" ? "E−: evidence absent" : "E+: evidence present";
  return h(
    "section",
    { class: "column", "aria-label": name },
    h("h2", {}, name, " ", pill(row.outcome)),
    // Evidence in files has two columns of its own and stands above these.
    trialBody(detail, 3, inFiles(archived) ? null : evidencePart(detail, other, 3, archived)),
  );
}

/** Build the page of a trial into the element with id "trial"; `both` shows the two variants side by side. */
async function showTrial(position, both, neighbours) {
  const row = rows[position];
  const detail = await detailOf(position);
  const otherRow = counterpart(position);
  const other = otherRow ? { row: otherRow, detail: await detailOf(otherRow.position) } : null;
  const archived = await evidenceOf(position);
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
    const sides = [[mine, other], [other, mine]];
    // E+ always stands left, so that the eye learns where it is.
    sides.sort(([one]) => (one.row.variant === "E+" ? -1 : 1));
    if (inFiles(archived)) page.append(evidencePart(detail, other, 2, archived));
    page.append(h("div", { class: "columns" }, sides.map(([one, two]) => column(one.row, one.detail, two, archived))));
  } else {
    page.append(...trialBody(detail, 2, evidencePart(detail, other, 2, archived)).filter(Boolean));
  }
  return title;
}
