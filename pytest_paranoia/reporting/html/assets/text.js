"use strict";
// Elements and text. Nothing here or elsewhere parses markup: text becomes text nodes, whatever it holds.

const payload = JSON.parse(document.getElementById("paranoia-data").textContent);

// The same ranges that the Python side makes visible.
const invisible = new RegExp(
  "[" + payload.invisible.map(([low, high]) => `\\u{${low.toString(16)}}-\\u{${high.toString(16)}}`).join("") + "]",
  "gu",
);

function spelt(character) {
  const code = character.codePointAt(0);
  if (code < 0x100) return "\\x" + code.toString(16).padStart(2, "0");
  return code < 0x10000 ? "\\u" + code.toString(16).padStart(4, "0") : "\\U" + code.toString(16).padStart(8, "0");
}

/** Text for attributes and titles, with what cannot be seen spelt out. */
function plain(text) {
  return String(text).replace(invisible, spelt);
}

/** Append text to a node; what cannot be seen stands in a marked span. */
function append(node, text) {
  let end = 0;
  for (const match of text.matchAll(invisible)) {
    if (match.index > end) node.append(text.slice(end, match.index));
    const code = document.createElement("span");
    code.className = "ctl";
    code.textContent = spelt(match[0]);
    node.append(code);
    end = match.index + match[0].length;
  }
  if (end < text.length) node.append(text.slice(end));
  return node;
}

/** h("p", {class: "x", onclick: f}, "text", node): an element. Null attributes and children are left out. */
function h(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : plain(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) node.append(child);
    else append(node, String(child));
  }
  return node;
}

const grouped = new Intl.NumberFormat("en");

function plural(count, one, many) {
  return `${grouped.format(count)} ${count === 1 ? one : many || one + "s"}`;
}
