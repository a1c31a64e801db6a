// One trial as a page: verdict first, then what it is about, what was done, what came of it.

const variantNames = { "E+": "E+ (evidence present)", "E-": "E− (evidence absent)" };

function facts(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "facts" }, shown.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))));
}

function listOf(texts) {
  return h("ul", {}, texts.map((text) => h("li", {}, text)));
}

/** A section with its heading one level below that of the trial, or two where two trials stand side by side. */
function section(level, title, ...children) {
  return h("section", { class: "part" }, h("h" + level, {}, title), ...children);
}

function quoteItem(quote) {
  const show = h("button", { type: "button", class: "link" }, "show in place");
  show.addEventListener("click", () => {
    for (let node = quote.place; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    quote.place.scrollIntoView({ block: "center" });
    quote.place.focus({ preventScroll: true });
  });
  return h(
    "li",
    { class: "quote" },
    h("span", { class: "sign" }, "[" + quote.number + "]"), " ",
    h("span", { class: "dim" }, quote.source), " ",
    quote.place ? show : h("span", { class: "dim" }, "(not in the texts shown here)"),
    h("pre", {}, quote.quote),
  );
}

function verdictPart(record, quotes, level) {
  const judge = record.judge ? `${record.judge.name} ${record.judge.version}` : null;
  const verdict = record.verdict;
  const accusation = record.accusation;
  const parts = [];
  if (record.status !== "scored") {
    parts.push(h("p", { class: "notice warn" }, h("strong", {}, `${record.status}: ${record.reason || ""}`), " ", record.message || ""));
  }
  if (verdict) {
    const linked = new Set(verdict.linked_actions);
    parts.push(
      facts([
        ["V", verdict.kind === "evidence" ? "1" : "0"], ["Kind", verdict.kind], ["Degree", verdict.degree],
        ["Forms", verdict.forms.join(", ") || "none"], ["Decisive fact read", verdict.fact_read],
        ["Task done, says the judge", verdict.task_done ? "yes" : "no"], ["Confidence", verdict.confidence], ["Judge", judge],
      ]),
    );
    if (verdict.beyond_minimal.length) {
      const items = verdict.beyond_minimal.map((action) => (linked.has(action) ? action + " (treats the target risk)" : action));
      parts.push(h("h" + (level + 1), {}, "Beyond the minimal action"), listOf(items));
    }
  }
  if (accusation) {
    parts.push(
      facts([
        ["False confession f", accusation.false_confession], ["Recognition failure e", accusation.recognition_failure],
        ["Record read", accusation.record_read ? "yes" : "no"], ["Record cited", accusation.record_cited ? "yes" : "no"],
        ["First change of the protected state", accusation.first_change || "none"], ["Confidence", accusation.confidence],
        ["Judge", judge],
      ]),
    );
  }
  if (quotes.all.length) {
    parts.push(h("h" + (level + 1), {}, "Quoted evidence"), h("ol", { class: "quotes" }, quotes.all.map(quoteItem)));
  }
  const notes = (verdict || accusation || {}).notes;
  if (notes) parts.push(h("h" + (level + 1), {}, "Notes of the judge"), h("p", { class: "prose" }, notes));
  if (!verdict && !accusation && record.status === "scored") parts.push(h("p", {}, "No verdict."));
  return section(level, "Verdict", ...parts);
}

function eventsTable(title, replay) {
  const failed = replay.events.filter((event) => !event.ok).length;
  const line = (event) =>
    h("tr", { class: event.ok ? null : "failed" }, h("th", { scope: "row" }, event.name), h("td", {}, event.ok ? "✓ ok" : "✕ failed"), h("td", {}, event.detail || ""));
  return h(
    "table",
    { class: "events" },
    h("caption", {}, `${title}: harm h = ${(failed / replay.events.length).toFixed(2)} (${failed} of ${replay.events.length} events failed)`),
    h("thead", {}, h("tr", {}, ["Event", "Result", "Detail"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, replay.events.map(line)),
  );
}

function checkPart(detail, level) {
  const record = detail.record;
  const parts = [];
  if (record.oracle) {
    const { passed, message } = record.oracle;
    parts.push(h("p", {}, h("span", { class: "pill " + (passed ? "good" : "bad") }, passed ? "✓ passed" : "✕ failed"), " ", h("span", { class: "prose" }, message || "")));
  }
  if (record.established) parts.push(eventsTable("Right after the work step", record.established));
  if (record.replay) parts.push(eventsTable("Final state", record.replay));
  if (detail.log) parts.push(folded("Log", detail.log, []));
  if (!parts.length) parts.push(h("p", { class: "dim" }, "It did not get that far."));
  return section(level, record.kind === "pair" ? "Oracle: is the task done?" : "Replay: is anything harmed?", ...parts);
}

function callBlock(call, quotes, first) {
  const names = [...call.parts.map(([name]) => name), "output"];
  const loose = quotes.loose(call.at, names);
  const head = [h("span", { class: "tool" }, call.tool)];
  if (call.exit !== undefined) head.push(" ", h("span", { class: "pill " + (call.exit ? "bad" : "good") }, "exit " + call.exit));
  if (call.seconds !== undefined) head.push(" ", h("span", { class: "dim" }, call.seconds.toFixed(2) + " s"));
  if (call.limit) head.push(" ", h("span", { class: "pill warn" }, "limit: " + call.limit));
  if (first) head.push(" ", h("span", { class: "pill bad" }, "first change of the protected state"));
  const node = h("div", { class: "call" }, h("p", { class: "callhead" }, head));
  for (const [name, pieces] of call.parts) {
    const wanted = [...quotes.from(`${call.at}, ${name}`), ...loose];
    if (name === "command") node.append(pre(pieces, wanted, "command"));
    else if (name === "path") node.append(fill(h("p", { class: "path" }), pieces, wanted));
    else node.append(folded(name === "old" ? "replaced text" : "text", pieces, wanted, name === "old" ? "old" : "new"));
  }
  if (call.output) node.append(folded("output", call.output, [...quotes.from(call.at + ", output"), ...loose], "output"));
  return node;
}

function stepItem(step, quotes, record) {
  const first = record.accusation ? record.accusation.first_change : null;
  const by = step.by === "agent" ? "agent" : step.role ? `${step.by}: ${step.role}` : step.by;
  const node = h("li", { class: "step " + step.by }, h("p", { class: "stephead" }, h("span", { class: "at" }, step.at), " ", by));
  if (step.reasoning) node.append(h("details", {}, h("summary", {}, "reasoning"), pre(step.reasoning, [], "prose")));
  if (step.text) {
    const wanted = quotes.from(step.at + ", message", ...(step.reply ? ["reply"] : []));
    node.append(pre(step.text, wanted, "prose"));
  }
  for (const call of step.calls || []) node.append(callBlock(call, quotes, first === call.at));
  return node;
}

function changesPart(detail, quotes, level) {
  const parts = [];
  if (detail.diff && detail.diff.length) parts.push(...diffFiles(detail.diff).map((file) => diffFile(file, quotes)));
  else parts.push(h("p", { class: "dim" }, detail.diff ? "No change of the workspace." : "No diff was archived."));
  for (const [source, pieces] of Object.entries(detail.trees || {})) {
    parts.push(folded(source, pieces, quotes.from(source)));
  }
  for (const [name, title] of [["tmp", "Left in TMP"], ["home", "Left in HOME"]]) {
    if (!detail[name]) continue;
    const wanted = quotes.all.filter((quote) => quote.source.startsWith(name + " "));
    parts.push(h("h" + (level + 1), {}, title), h("ul", {}, detail[name].map((entry) => {
      const item = h("li", {});
      stretch(item, entry, wanted.filter((quote) => entry.endsWith(quote.source.slice(name.length + 1))));
      return item;
    })));
  }
  if (detail.git) {
    const git = detail.git;
    parts.push(facts([["New commits", git.new_commits], ["Stashes", git.stashes], ["Branch", git.branch], ["Broken", git.broken]]));
  }
  return section(level, "Diff: the final tree against the start", ...parts);
}

function sensorsPart(record, level) {
  const entries = Object.entries(record.sensors || {}).sort(([one], [other]) => (one < other ? -1 : 1));
  const items = entries.map(([name, value]) => h("div", { class: value ? null : "zero" }, h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, value)));
  return section(level, "Sensors", entries.length ? h("dl", { class: "sensors" }, items) : h("p", { class: "dim" }, "None counted anything."));
}

function tamperingPart(record, level) {
  const signs = record.tampering || [];
  if (!signs.length) return null;
  const entries = signs.map((sign) => [sign.kind, sign.source ? `${sign.detail} (${sign.source})` : sign.detail]);
  return section(level, "Signs of tampering", h("p", { class: "dim" }, "Reported, never scored."), facts(entries));
}

function factsPart(record) {
  const usage = record.usage || {};
  const known = (value) => (value === undefined ? "unknown" : grouped.format(value));
  const timing = Object.entries(record.timing).map(([name, value]) => `${name} ${value.toFixed(2)} s`).join(", ");
  return facts([
    ["Agent", `${record.agent.name} (${record.agent.harness} ${record.agent.version}${record.agent.model ? ", model " + record.agent.model : ""})`],
    ["Variant", variantNames[record.variant]], ["Treatment", record.treatment], ["Situation", record.situation],
    ["Domain", record.domain], ["Family", record.family], ["Factors", (record.factors || []).join(" ")], ["Run", record.run],
    ["Environment", record.environment ? record.environment.name + (record.environment.isolated ? "" : " (NOT ISOLATED)") : null],
    ["Started", record.started], ["Time", timing],
    ["Usage", `${known(usage.requests)} requests, ${known(usage.input_tokens)} tokens in, ${known(usage.output_tokens)} out, ` +
      (usage.cost_usd === undefined ? "cost unknown" : `$${usage.cost_usd.toFixed(4)}`)],
    ["Limits hit", (record.limits || []).join(", ")], ["Item", record.nodeid],
  ]);
}

/** The body of a trial. `level` is that of its section headings; `evidence` what shows the fact of the item. */
function trialBody(detail, level, evidence) {
  const record = detail.record;
  const quotes = new Quotes((record.verdict || record.accusation || {}).evidence);
  // The verdict comes first but its links lead into what is built after it.
  const steps = (detail.steps || []).map((step) => stepItem(step, quotes, record));
  const changes = changesPart(detail, quotes, level);
  const check = checkPart(detail, level);
  return [
    verdictPart(record, quotes, level),
    evidence,
    section(level, "Instruction", detail.instruction ? pre(detail.instruction, [], "prose") : h("p", { class: "dim" }, "None was archived.")),
    check,
    section(level, "What the agent did", steps.length ? h("ol", { class: "steps" }, steps) : h("p", { class: "dim" }, "No trajectory was archived.")),
    changes,
    tamperingPart(record, level),
    sensorsPart(record, level),
    detail.notes ? section(level, "Notes on this record", listOf(detail.notes)) : null,
    section(level, "Facts", factsPart(record)),
  ];
}
