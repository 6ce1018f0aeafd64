/* places.js - the table of places (call sites): sorted, filtered, opened to their stacks. */

const SLICE_SITES = 256; /* places that the slices tell apart; the rest is one, of this number */
const PLACES_FIRST = 25;

function Places(root, page) {
  const filter = make("input", {type: "search", placeholder: "Filter by function or file",
    "aria-label": "Filter the call sites", id: "filter"});
  const csv = make("button", {}, "CSV"), count = make("span", {class: "hint"});
  const table = make("table", {class: "places"}), whose = WorkFilter(page);
  const note = make("p", {class: "hint"});
  const more = make("button", {class: "more"});
  let all = false;

  root.append(make("div", {class: "row"}, whose.select, filter, csv, count), note,
    make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Call sites"}, table),
    more);

  const WHOLE = [
    ["moment", () => (page.data.run.at === "failure" ? "Live at the failure" : "Live at the peak"),
      size_text],
    ["peak", () => "At " + page.whose() + "'s peak", size_text],
    ["total", () => "Allocated in all", size_text],
    ["count", () => "Blocks in all", count_text],
    ["temporary", () => "Freed at once", size_text],
  ];
  const RANGE = [
    ["kept", () => "Born in the range, alive at its end", size_text],
    ["kept_count", () => "Such blocks", count_text],
    ["live", () => "Live at its end", size_text],
    ["born", () => "Born in it", size_text],
    ["died", () => "Released in it", size_text],
  ];

  function columns() {
    return page.applied_range() ? RANGE : WHOLE;
  }

  function rows() {
    const space = page.space(), range = page.applied_range(), filter = page.filter();
    const held = filter && sums_by_place(filter.held.places);
    const list = space.places.list.concat(space.places.rest).map((place) => {
      const row = {place};
      if (range)
        Object.assign(row, range_of_place(space, place.rest ? SLICE_SITES : place.index, range));
      else if (held)
        Object.assign(row, held.get(place.rest ? space.places.list.length : place.index) || NOTHING);
      else for (const m of MEASURES) row[m] = place[m];
      return row;
    });
    const find = (state.get("find", "") || "").toLowerCase();
    const key = sorted_by();
    return list.filter((row) => matches(row.place, find) && columns().some((c) => row[c[0]]))
      .sort((a, b) => !!a.place.rest - !!b.place.rest ||
        b[key] - a[key] || a.place.index - b.place.index);
  }

  function matches(place, find) {
    return !find || (place.name + " " + (place.file || "") + ":" + place.line + " " +
      (place.part || "") + " " + (place.class || "")).toLowerCase().includes(find);
  }

  function sorted_by() {
    const wanted = state.get("sort"), known = columns().map((c) => c[0]);
    return known.includes(wanted) ? wanted : known[0];
  }

  function head() {
    const row = make("tr", {}, make("th", {scope: "col"}, "Call site"));
    for (const [key, title] of columns()) {
      const button = make("button", {}, title());
      button.onclick = () => state.set({sort: key}, true);
      row.append(make("th", {scope: "col", class: "n",
        "aria-sort": sorted_by() === key ? "descending" : null}, button));
    }
    return make("thead", {}, row);
  }

  function first_cell(row) {
    const place = row.place;
    const cell = make("th", {scope: "row"});
    if (place.rest) {
      cell.append(make("span", {class: "hint"}, place.name));
      return cell;
    }
    const open = state.get("open") === String(place.index);
    const button = make("button", {class: "open", "aria-expanded": String(open)},
      make("span", {class: "name"}, place.name));
    button.onclick = () => state.set({open: open ? null : place.index}, true);
    cell.append(button, make("span", {class: "where", title: place.file}, where_text(place)));
    if (page.colour(place)) {
      const dot = make("i", {class: "dot"});
      dot.style.background = page.colour(place);
      cell.prepend(dot);
    }
    if (place.part) cell.append(make("span", {class: "part"}, "in " + place.part));
    if (place.class) cell.append(make("em", {class: "kind"}, place.class));
    return cell;
  }

  function opened(row) {
    const copy = make("button", {class: "small"}, "Copy");
    copy.onclick = () => copy_text(row.place.name + " " + where_text(row.place) + "\n" +
      stack_text(page.data.frames, row.place), copy);
    return make("tr", {class: "opened"}, make("td", {colspan: String(columns().length + 1)}, copy,
      make("pre", {tabindex: "0"}, stack_text(page.data.frames, row.place))));
  }

  function body(list) {
    const out = make("tbody", {}), key = sorted_by();
    let most = 1;
    for (const row of list) most = Math.max(most, row[key]);
    for (const row of list) {
      const tr = make("tr", {}, first_cell(row));
      for (const [column, , text] of columns()) {
        const cell = make("td", {class: "n", title: count_text(row[column])}, text(row[column]));
        if (column === key) cell.style.setProperty("--share", (100 * row[column]) / most + "%");
        tr.append(cell);
      }
      out.append(tr);
      if (state.get("open") === String(row.place.index)) out.append(opened(row));
    }
    return out;
  }

  function csv_text(list) {
    const lines = [["function", "file", "line", "part", "class", ...columns().map((c) => c[0])]];
    for (const row of list)
      lines.push([row.place.name, row.place.file, row.place.line, row.place.part, row.place.class,
        ...columns().map((c) => row[c[0]])]);
    return csv_of(lines);
  }

  function draw() {
    const list = rows();
    const shown = all ? list : list.slice(0, PLACES_FIRST);
    whose.draw();
    note.textContent = whose.says();
    note.hidden = !note.textContent;
    if (document.activeElement !== filter) filter.value = state.get("find", "");
    table.textContent = "";
    table.append(head(), body(shown));
    more.hidden = shown.length === list.length;
    more.textContent = "Show all " + list.length + " call sites";
    const cut = page.space().places.more;
    count.textContent = list.length + (list.length === 1 ? " call site" : " call sites") + (cut ? "; " + cut + " smaller ones are one row" : "");
  }

  filter.oninput = () => state.set({find: filter.value || null}, true);
  csv.onclick = () => save_text(csv_text(rows()), "places.csv", "text/csv");
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

views.push({id: "places", title: "Call sites", shows: () => true, make: Places});
