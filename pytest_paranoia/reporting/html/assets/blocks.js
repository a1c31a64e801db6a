// Texts of a trial, with the verdict's quotes marked where they stand.

/** The quotes of one trial: numbered, by the source they are from, and where each was found on the page. */
class Quotes {
  constructor(evidence) {
    this.all = (evidence || []).map((piece, index) => ({ ...piece, number: index + 1, place: null }));
  }

  from(...sources) {
    return this.all.filter((quote) => sources.includes(quote.source));
  }

  /** Quotes that claim a part of this call which the call does not have: looked for in all of it. */
  loose(source, parts) {
    return this.all.filter((quote) => {
      const cut = quote.source.lastIndexOf(", ");
      const part = quote.source.slice(cut + 2);
      return quote.source === source || (quote.source.slice(0, cut) === source && !parts.includes(part));
    });
  }
}

function markOf(quote, text) {
  const sign = h("sup", { class: "sign" }, "[" + quote.number + "]");
  const mark = h("mark", { tabindex: "-1", "aria-label": "quote " + quote.number }, text, sign);
  if (!quote.place) quote.place = mark;
  return mark;
}

function spans(text, quotes) {
  const found = [];
  for (const quote of quotes) {
    const at = text.indexOf(quote.quote);
    if (at >= 0) found.push({ start: at, stop: at + quote.quote.length, quote });
  }
  return found.sort((one, other) => one.start - other.start || other.stop - one.stop);
}

/** Append one stretch of text; of quotes that overlap, each marks what the earlier ones leave of it. */
function stretch(node, text, quotes) {
  let end = 0;
  for (const { start, stop, quote } of spans(text, quotes)) {
    const from = Math.max(start, end);
    if (from > end) append(node, text.slice(end, from));
    node.append(markOf(quote, text.slice(from, Math.max(stop, from))));
    end = Math.max(stop, end);
  }
  append(node, text.slice(end));
}

function gap(count) {
  return h("span", { class: "gap" }, plural(count, "character"), " left out here");
}

function fill(node, pieces, quotes) {
  for (const piece of pieces) {
    if (typeof piece === "number") node.append(gap(piece));
    else stretch(node, piece, quotes || []);
  }
  return node;
}

function length(pieces) {
  return pieces.reduce((sum, piece) => sum + (typeof piece === "number" ? 1 : piece.split("\n").length), 0);
}

function pre(pieces, quotes, style) {
  return fill(h("pre", { class: style || null }), pieces, quotes);
}

/** A text that is folded away where it is long and holds no quote. */
function folded(title, pieces, quotes, style) {
  const lines = length(pieces);
  const body = pre(pieces, quotes, style);
  const open = lines <= 24 || body.querySelector("mark") !== null;
  return h("details", { open }, h("summary", {}, title, " ", h("span", { class: "dim" }, plural(lines, "line"))), body);
}

// --- the diff: a line starts with its sign, so that colour says nothing alone

function diffFiles(pieces) {
  const files = [];
  for (const piece of pieces) {
    if (typeof piece === "number") {
      if (!files.length) files.push({ path: "", lines: [] });
      files[files.length - 1].lines.push(piece);
      continue;
    }
    const lines = piece.split("\n");
    if (lines[lines.length - 1] === "") lines.pop();
    lines.forEach((line, at) => {
      const header = line.startsWith("--- ") && (lines[at + 1] || "").startsWith("+++ ");
      if (header || /^mode of .*: [0-7]+ -> [0-7]+$/.test(line)) files.push({ path: pathOf(line, lines[at + 1]), lines: [] });
      else if (!files.length) files.push({ path: "", lines: [] });
      files[files.length - 1].lines.push(line);
    });
  }
  return files;
}

function pathOf(line, next) {
  if (line.startsWith("mode of ")) return line.slice(8, line.lastIndexOf(": "));
  const after = (next || "").slice(4);
  return after === "/dev/null" ? line.slice(4).replace(/^a\//, "") : after.replace(/^b\//, "");
}

function kindOf(line, at) {
  if (at < 2 && /^(---|\+\+\+) /.test(line)) return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "add";
  return line.startsWith("-") ? "del" : "same";
}

function diffFile(file, quotes) {
  const wanted = quotes.from("diff " + file.path).map((quote) => ({
    ...quote,
    lines: new Set(quote.quote.split("\n").filter((line) => line.trim())),
    origin: quote,
  }));
  let added = 0;
  let removed = 0;
  const body = h("pre", { class: "diff" });
  file.lines.forEach((line, at) => {
    if (typeof line === "number") return body.append(gap(line), "\n");
    const kind = kindOf(line, at);
    added += kind === "add";
    removed += kind === "del";
    const node = h("span", { class: kind });
    const changed = kind === "add" || kind === "del";
    const text = line.slice(1);
    const quote = changed && wanted.find((one) => [...one.lines].some((part) => text === part || text.includes(part)));
    if (quote) node.append(line[0], markOf(quote.origin, text));
    else append(node, line);
    body.append(node, "\n");
  });
  const open = file.lines.length <= 120 || body.querySelector("mark") !== null;
  const counts = `${added} added, ${removed} removed`;
  return h("details", { open }, h("summary", {}, h("code", {}, file.path || "diff"), " ", h("span", { class: "dim" }, counts)), body);
}
