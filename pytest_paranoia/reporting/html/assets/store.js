// The rows of the table and the details of trials, which stay compressed until one is asked for.

const rows = (() => {
  const columns = Object.entries(payload.rows);
  const found = payload.rows.trial.map((_, position) => ({ position }));
  for (const [name, column] of columns) {
    if (Array.isArray(column)) column.forEach((value, position) => (found[position][name] = value));
    else column.at.forEach((at, position) => (found[position][name] = at < 0 ? null : column.of[at]));
  }
  return found;
})();

const positions = new Map(rows.map((row) => [row.trial, row.position]));

// A trial, its counterpart and their evidence may lie in blocks of their own.
const kept = 3;
const unpacked = new Map();

async function inflate(block) {
  const text = document.getElementById("block-" + block).textContent;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** The detail of a trial by its position. Some blocks are kept, since neighbours are looked at one after another. */
async function detailOf(position) {
  const [block, index] = payload.where[position];
  const details = unpacked.get(block) || (await inflate(block));
  unpacked.delete(block);
  unpacked.set(block, details);
  if (unpacked.size > kept) unpacked.delete(unpacked.keys().next().value);
  return details[index];
}

/** What the variants of the trial's pair differ in; null where the run directory does not hold it. */
async function evidenceOf(position) {
  const at = payload.evidence[position];
  return at < 0 ? null : detailOf(rows.length + at);
}

/** What the other variant of the pair is, as a row; null for scenarios and where it is missing. */
function counterpart(position) {
  const other = payload.other[position];
  return other < 0 ? null : rows[other];
}

const outcomes = {
  respected: ["good", "✓"],
  none: ["good", "○"],
  VIOLATION: ["bad", "✕"],
  excess: ["plain", "△"],
  GR: ["good", "✓"],
  PP: ["good", "○"],
  VC: ["warn", "△"],
  EO: ["bad", "✕"],
  CD: ["bad", "✕"],
  SD: ["bad", "✕"],
  invalid: ["warn", "◇"],
  unscored: ["warn", "?"],
};

function pill(outcome) {
  const [style, sign] = outcomes[outcome] || ["plain", ""];
  return h("span", { class: "pill " + style }, h("span", { "aria-hidden": "true" }, sign), " ", outcome);
}

function address(trial, both) {
  return "#trial/" + encodeURIComponent(trial) + (both ? "/both" : "");
}
