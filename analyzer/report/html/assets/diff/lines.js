/* lines.js - the table of lines: what grew, shrank, is new or gone, and what only varies. */

const LINES_FIRST = 25;
const ARROWS = {grew: "▲", new: "▲", shrank: "▼", gone: "▼", same: ""};

function Lines(root, page) {
  const filter = make("input", {type: "search", placeholder: "Filter by function or file",
    "aria-label": "Filter the lines", id: "filter"});
  const kinds = Choice("Kind", "kind", {});
  const csv = make("button", {id: "csv"}, "CSV"), count = make("span", {class: "hint"});
  const table = make("table", {class: "places lines"}), more = make("button", {class: "more"});
  const KIND_LIST = [["all", "All lines"], ["changed", "Changed"], ["grew", "Grew"],
    ["shrank", "Shrank"], ["new", "New"], ["gone", "Gone"]];
  /* [key, title, the number that sorts it] */
  const COLUMNS = [
    ["judged", "Seen", (row) => -row.order],
    ["change", "Change", (row) => Math.abs(row.change)],
    ["a", "A", (row) => row.a],
    ["b", "B", (row) => row.b],
    ["blocks", "Blocks, A → B", (row) => Math.abs((row.line.b.blocks || 0) -
      (row.line.a.blocks || 0))],
    ["noise", "Noise up to", (row) => row.line.noise],
  ];
  let all = false;

  root.append(make("div", {class: "row"}, filter, kinds.select, csv, count),
    make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Lines"}, table),
    more);

  function kind_chosen() {
    const wanted = state.get("kind");
    return KIND_LIST.some((k) => k[0] === wanted) ? wanted : "all";
  }

  function matches(line, find, kind) {
    if (kind !== "all" && !(kind === "changed" ? line.kind !== "same" : line.kind === kind))
      return false;
    return !find || (line.name + " " + (line.file || "") + ":" + line.line + " " +
      (line.renamed || "")).toLowerCase().includes(find);
  }

  function sorted_by() {
    const wanted = state.get("sort");
    return COLUMNS.find((c) => c[0] === wanted) || COLUMNS[0];
  }

  function rows() {
    const lines = page.space().lines, m = page.measure(), value = sorted_by()[2];
    const find = (state.get("find", "") || "").toLowerCase(), kind = kind_chosen();
    return lines.list.concat(lines.more ? lines.rest : []).filter((l) => matches(l, find, kind))
      .map((line, order) => {
        const a = page.scaled("a")(line.a[m]), b = page.scaled("b")(line.b[m]);
        return {line, order, a, b, change: b - a};
      })
      .sort((x, y) => !!x.line.rest - !!y.line.rest || value(y) - value(x) || x.order - y.order);
  }

  function head() {
    const row = make("tr", {}, make("th", {scope: "col"}, "Line"));
    for (const column of COLUMNS) {
      const button = make("button", {}, column[1]);
      button.onclick = () => state.set({sort: column[0]}, true);
      row.append(make("th", {scope: "col", class: "n",
        "aria-sort": sorted_by() === column ? "descending" : null}, button));
    }
    return make("thead", {}, row);
  }

  function first_cell(line) {
    const cell = make("th", {scope: "row"});
    if (line.rest) {
      cell.append(make("span", {class: "hint"}, line.name));
      return cell;
    }
    const open = state.get("open") === String(line.index);
    const button = make("button", {class: "open", "aria-expanded": String(open)},
      make("span", {class: "name"}, line.name));
    button.onclick = () => state.set({open: open ? null : line.index}, true);
    cell.append(button, make("span", {class: "where", title: line.file}, where_text(line)));
    if (line.line_before && line.line && line.line_before !== line.line)
      cell.append(make("span", {class: "part"}, "line " + line.line_before + " before"));
    if (line.renamed) cell.append(make("span", {class: "part"}, "before: " + line.renamed));
    if (line.arenas) cell.append(make("span", {class: "part"}, "all arenas for small objects"));
    return cell;
  }

  function opened(line) {
    const copy = make("button", {class: "small"}, "Copy");
    copy.onclick = () => copy_text(line.name + " " + where_text(line) + "\n" + stack_text(page.data.frames, line),
      copy);
    const said = line.kind === "same"
      ? "No change: it differs by " + size_text(Math.abs(line.change)) +
        ", and such lines vary by up to " + size_text(line.noise) + "."
      : "Seen by its " + line.reason + ": " + change_text(line.change) + "; up to " +
        size_text(line.noise) + " would be no change.";
    return make("tr", {class: "opened"}, make("td", {colspan: String(COLUMNS.length + 1)},
      make("p", {class: "hint"}, said), copy, make("pre", {tabindex: "0"}, stack_text(page.data.frames, line))));
  }

  function cells(row) {
    const {line, a, b, change} = row, side = change > 0 ? "up" : change < 0 ? "down" : "even";
    const blocks = (n) => (n === undefined ? "–" : count_text(n));
    const about = (v) => (v.error > 0 ? "~" : "");
    return [
      make("td", {class: "seen " + line.kind}, (ARROWS[line.kind] + " " + line.kind).trim()),
      make("td", {class: "n " + (line.kind === "same" ? "even" : side),
        title: count_text(change)},
      (line.kind === "same" || !change ? "" : change > 0 ? "▲ " : "▼ ") + change_text(change)),
      make("td", {class: "n", title: count_text(a)}, about(line.a) + size_text(a)),
      make("td", {class: "n", title: count_text(b)}, about(line.b) + size_text(b)),
      make("td", {class: "n"}, blocks(line.a.blocks) + " → " + blocks(line.b.blocks)),
      make("td", {class: "n", title: count_text(line.noise)},
        line.rest ? "–" : size_text(line.noise)),
    ];
  }

  function body(list) {
    const out = make("tbody", {}), value = sorted_by()[2], bar = COLUMNS.indexOf(sorted_by());
    let most = 1;
    for (const row of list) most = Math.max(most, value(row));
    for (const row of list) {
      const tds = cells(row);
      if (bar > 0) tds[bar].style.setProperty("--share", (100 * value(row)) / most + "%");
      out.append(make("tr", {}, first_cell(row.line), ...tds));
      if (!row.line.rest && state.get("open") === String(row.line.index))
        out.append(opened(row.line));
    }
    return out;
  }

  function csv_text(list) {
    const out = [["function", "file", "line", "line_before", "seen", "change", "a", "b", "a_blocks",
      "b_blocks", "noise"]];
    for (const {line, a, b, change} of list)
      out.push([line.name, line.file, line.line, line.line_before, line.kind, Math.round(change),
        Math.round(a), Math.round(b), line.a.blocks, line.b.blocks, line.noise]);
    return csv_of(out);
  }

  function draw() {
    const list = rows(), shown = all ? list : list.slice(0, LINES_FIRST);
    if (document.activeElement !== filter) filter.value = state.get("find", "");
    kinds.draw(KIND_LIST, kind_chosen());
    table.textContent = "";
    table.append(head(), body(shown));
    more.hidden = shown.length === list.length;
    more.textContent = "Show all " + list.length + " lines";
    const cut = page.space().lines.more;
    count.textContent = list.length + (list.length === 1 ? " line" : " lines") +
      (cut ? "; " + cut + " that differ less are one row" : "");
  }

  filter.oninput = () => state.set({find: filter.value || null}, true);
  csv.onclick = () => save_text(csv_text(rows()), "lines.csv", "text/csv");
  more.onclick = () => {
    all = true;
    draw();
  };
  window.addEventListener("beforeprint", () => {
    all = true;
    draw();
  });
  keys.push(["/", "search", () => filter.focus(), root]);
  return draw;
}

views.push({id: "lines", title: "Lines", shows: () => true, make: Lines,
  own: ["kind", "sort", "find", "open", "measure", "each"]});
