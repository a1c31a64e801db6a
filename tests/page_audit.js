// Audits of a page; each returns a list of faults. Loaded by browsing.py, run inside the page.
({
  // Text whose contrast with what lies behind it is under 4.5 (WCAG 1.4.3; 3 for large text), colours blended.
  contrast: () => {
    const parse = (text) => { const found = text.match(/[\d.]+/g).map(Number); return found.length < 4 ? [...found, 1] : found; };
    const over = (top, under) => [0, 1, 2].map((at) => top[at] * top[3] + under[at] * (1 - top[3]));
    const behind = (node) => {
      const layers = [];
      for (let one = node; one; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
      return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
    };
    const light = (colour) => {
      const [r, g, b] = colour.map((part) => part / 255).map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    for (const node of document.querySelectorAll("main *, header *, footer *")) {
      const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
      if (!own || !node.checkVisibility() || node.closest("svg, :disabled, option")) continue;
      const style = getComputedStyle(node);
      const back = behind(node);
      const colours = parse(style.color);
      colours[3] *= Number(style.opacity);
      const [one, other] = [light(over(colours, back)), light(back)].sort((a, b) => b - a);
      const ratio = (one + 0.05) / (other + 0.05);
      const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.7 && style.fontWeight >= 700);
      if (ratio < (large ? 3 : 4.5)) found.push(`${node.tagName}.${node.className}: ${ratio.toFixed(2)} ${node.textContent.slice(0, 30)}`);
    }
    return [...new Set(found)];
  },

  // What a screen reader needs of the structure.
  structure: () => {
    const faults = [];
    const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
    ids.filter((id, at) => ids.indexOf(id) !== at).forEach((id) => faults.push("id twice: " + id));
    for (const name of ["aria-labelledby", "for"])
      for (const node of document.querySelectorAll(`[${name}]`))
        if (!document.getElementById(node.getAttribute(name))) faults.push(`${name} names nothing: ${node.getAttribute(name)}`);
    for (const table of document.querySelectorAll("table")) {
      if (!table.caption) faults.push("table without caption");
      for (const head of table.querySelectorAll("th")) if (!head.scope) faults.push("th without scope: " + head.textContent);
    }
    for (const field of document.querySelectorAll("input, select, textarea"))
      if (!field.labels.length && !field.getAttribute("aria-label")) faults.push("field without label: " + field.id);
    for (const chart of document.querySelectorAll("svg:not([aria-hidden])"))
      if (chart.getAttribute("role") !== "img" || !chart.querySelector("title")) faults.push("chart without a name");
    for (const part of document.querySelectorAll("nav, form, [role=region], section[id]"))
      if (!part.getAttribute("aria-label") && !part.getAttribute("aria-labelledby")) faults.push("landmark without a name: " + part.tagName);
    if (document.querySelectorAll("main").length !== 1) faults.push("not one main");
    let level = 0;
    for (const head of document.querySelectorAll("h1, h2, h3, h4, h5")) {
      if (!head.checkVisibility()) continue;
      const own = Number(head.tagName[1]);
      if (own > level + 1) faults.push(`heading jumps to ${own}: ${head.textContent}`);
      level = own;
    }
    for (const node of document.querySelectorAll("[tabindex]")) if (node.tabIndex > 0) faults.push("tabindex above 0");
    return [...new Set(faults)];
  },
});
