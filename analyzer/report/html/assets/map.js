/* map.js - a space's segments to one scale: blocks by place, holes, the refused request, and what
 * would have to go to make room for it. */

const MAP_ROWS = 12; /* about as many rows, however many segments */
const MAP_SCALES = [1, 1.25, 1.5, 2, 3, 4]; /* bytes of a row, until all rows are seen at once */
const LABEL = 15, MAP_GAP = 9; /* pixels: a row's text, and below its segments */
const BAND_LOW = 24, BAND_HIGH = 60, BAND_NAMES = 44; /* a row's segments; with room for names */
const STRIP = 14, ZOOMED = 84; /* one segment alone: all of it, and the part that is looked at */
const LETTER_WIDE = 11, NAME_WIDE = 46;
const ONE_ROW = 1.2; /* so much smaller may the largest be drawn, if all are in one row then */
const FILL_PART = 0.6; /* few rows are as high as fills this part of the window */
const SEGMENTS_FIRST = 12;

function MapView(root, page) {
  const says = make("ul", {class: "says"});
  const find = make("input", {type: "search", id: "map-find", "aria-label": "Search call sites",
    placeholder: "Search call sites"});
  const out = make("button", {title: "−", "aria-label": "Zoom out"}, "−");
  const into = make("button", {title: "+", "aria-label": "Zoom in"}, "+");
  const found = make("span", {class: "hint", role: "status"});
  const crumbs = make("nav", {class: "crumbs", "aria-label": "Zoomed to"});
  const pane = Pane("map", paint, () => draw());
  const legend = make("ul", {class: "legend"});
  const sites = make("table", {class: "sites"}), segments = make("table", {class: "segments"});
  const more = make("button", {class: "more"});
  let layout = null, space = null, band = BAND_LOW, items = [], ghosts = [], moment = null, cursor = -1, all = false, colours = [], hits = [];
  let text = "";

  const moments = Moments(root, page);
  root.append(says, make("div", {class: "row"}, find, out, into, found), crumbs, pane.box, legend,
    make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Call sites"}, sites),
    make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Segments"}, segments),
    more);
  const [, mixed, refused, partly, ghost] = [["hole", "hole"], ["mixed", "several call sites"],
    ["request", "refused request"], ["partly", "free in part"],
    ["ghost", "not there at this moment"]].map(([kind, title]) => {
    const item = make("li", {}, make("i", {class: "dot " + kind}), title);
    legend.append(item);
    return item;
  });

  /* The segment that the view is zoomed to, and the range of its bytes; null: all segments. */
  function zoomed() {
    const s = layout.find(parseInt(state.get("segment", ""), 16));
    if (!s) return null;
    const bytes = /^([0-9a-f]+)-([0-9a-f]+)$/.exec(state.get("bytes", ""));
    const from = bytes ? parseInt(bytes[1], 16) : 0, to = bytes ? parseInt(bytes[2], 16) : s.size;
    return from < to && to <= s.size ? {s, from, to} : {s, from: 0, to: s.size};
  }

  function zoom(s, from, to, quietly) {
    tip.hide();
    pane.to_top();
    if (!s) return state.set({segment: null, bytes: null}, quietly);
    const least = Math.min(s.size, 16);
    from = Math.max(0, Math.min(Math.floor(from), s.size - least));
    to = Math.min(s.size, Math.max(Math.ceil(to), from + least));
    state.set({segment: s.start.toString(16),
      bytes: from || to < s.size ? from.toString(16) + "-" + to.toString(16) : null}, quietly);
  }

  function zoom_to_piece(i) {
    const s = layout.map.segments[layout.segment[i]], size = layout.pieces.size[i];
    zoom(s, layout.offset[i] - size, layout.offset[i] + 2 * size);
  }

  function shows(site) {
    const chosen = state.number("site", -1);
    if (text) return site >= 0 && hits[site];
    return chosen < 0 || chosen >= layout.map.sites.length || chosen === site;
  }

  function prepare() {
    if (moment !== moments.now()) {
      const before = cursor >= 0 && space === page.space() ? layout.address(cursor) : -1;
      space = page.space();
      moment = moments.now();
      layout = moment.layout = moment.layout || Layout(moment.map);
      cursor = layout.at_address(before);
      const {kind, free} = layout.pieces;
      layout.map.mixed = kind.some((k) => k === KIND.MIXED || k === KIND.OTHER);
      layout.map.partly = kind.some((k, i) => k !== KIND.HOLE && free[i] > 0);
      /* A call site has the colour that it has in the curve when that tells call sites. */
      const places = new Map();
      for (const p of space.places.list) {
        const key = p.name + "\n" + p.file + "\n" + p.line;
        if (!places.has(key)) places.set(key, p.index);
      }
      colours = layout.map.sites.map((s) => {
        const place = places.get(s.name + "\n" + s.file + "\n" + s.line);
        return place === undefined ? GROUPS - 1 : Math.min(place, GROUPS - 1);
      });
    }
    text = state.get("find", "").toLowerCase();
    hits = layout.map.sites.map((s) => !!text &&
      (s.name + " " + (s.file || "") + ":" + s.line).toLowerCase().includes(text));
  }

  /* Rows of segments, as words in a text: {s: segment or null for the request, x, y, width}. The
   * height of all. */
  function arrange_rows(width, most) {
    const list = moments.list(), {slots} = list;
    const layouts = slots ? [slots] : list.map((m) => m.map.segments);
    let widest = layout.map.request, bytes = 0, count = 0;
    for (const places of layouts) {
      let sum = 0;
      for (const s of places) {
        widest = Math.max(widest, s.size);
        sum += s.size;
      }
      bytes = Math.max(bytes, sum);
      count = Math.max(count, places.length);
    }
    /* One scale and one height for all moments, so that the eye sees what changes. */
    const one = (bytes * width) / Math.max(1, width - 5 * count); /* 5: the gap and a hair's width */
    const row = (one <= widest * ONE_ROW ? one : Math.max(widest, bytes / MAP_ROWS)) || 1;
    const top = layout.map.request ? LABEL + BAND_LOW + MAP_GAP : 0;
    band = BAND_LOW;
    for (const times of MAP_SCALES) {
      const scale = width / (row * times);
      const height = Math.max(...layouts.map((places) => place_all(places, width, scale).height));
      const rows = Math.round((height - top) / (LABEL + BAND_LOW + MAP_GAP));
      if (height > most && times !== MAP_SCALES[MAP_SCALES.length - 1]) continue;
      const places = slots || layout.map.segments;
      band = Math.floor(Math.min(BAND_HIGH, BAND_LOW + (most * FILL_PART - height) / rows));
      band = Math.max(BAND_LOW, band);
      put_segments(place_all(places, width, scale).places, scale);
      return height + rows * (band - BAND_LOW);
    }
  }

  /* Where each of some ranges of addresses goes, in rows. */
  function place_all(ranges, width, scale) {
    const places = [];
    let x = 0, y = layout.map.request ? LABEL + BAND_LOW + MAP_GAP : 0;
    for (const {start, size} of ranges) {
      const wide = Math.max(1.5, size * scale);
      if (x > 0 && x + wide > width + 0.5) {
        x = 0;
        y += LABEL + band + MAP_GAP;
      }
      places.push({start, size, x, y: y + LABEL, width: wide});
      x += wide + (wide < 4 ? 0.5 : 3);
    }
    return {places, height: y + LABEL + band + MAP_GAP};
  }

  /* The moment's segments in their places; a place that it leaves empty is a ghost. */
  function put_segments(places, scale) {
    const {map} = layout, list = map.segments;
    let next = 0;
    items = [];
    ghosts = [];
    if (map.request)
      items.push({s: null, x: 0, y: LABEL, width: Math.max(2, map.request * scale)});
    for (const place of places) {
      let held = 0;
      for (; next < list.length && list[next].start < place.start + place.size; next++) {
        const s = list[next], x = place.x + (s.start - place.start) * scale;
        held += s.size;
        items.push({s, x, y: place.y, width: Math.max(1.5, s.size * scale)});
      }
      if (held < place.size) ghosts.push(place);
    }
  }

  /* Rectangles by colour, so that each is set once. */
  function Rectangles() {
    const by_colour = new Map();
    return {
      add(colour, alpha, x, y, width, height) {
        const key = alpha + " " + colour;
        if (!by_colour.has(key)) by_colour.set(key, []);
        by_colour.get(key).push(x, y, width, height);
      },
      draw(g) {
        for (const [key, list] of by_colour) {
          const at = key.indexOf(" ");
          g.globalAlpha = Number(key.slice(0, at));
          g.fillStyle = key.slice(at + 1);
          for (let i = 0; i < list.length; i += 4)
            g.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
        }
        g.globalAlpha = 1;
      },
    };
  }

  function colour_of(kind, theme) {
    if (kind === KIND.HOLE) return theme.hole;
    return kind < KIND.SITE ? theme.mixed : theme.groups[colours[kind - KIND.SITE]];
  }

  /* Bytes from..to of a segment. Pieces thinner than half a pixel are drawn together, as the
   * largest of them. */
  function draw_pieces(r, theme, s, from, to, x, y, width, height) {
    const {pieces, offset} = layout, scale = width / (to - from), wide_enough = [];
    let heap = null, run = null;
    /* Narrow blocks of one call site in a row have one letter together. */
    const end_run = () => {
      if (run && run.right - run.x >= 2 * LETTER_WIDE)
        wide_enough.push({i: run.i, x: run.x, width: run.right - run.x, together: run});
      run = null;
    };
    const add_to_run = (i, kind, left, right) => {
      if (kind === KIND.HOLE) return;
      if (run && (run.kind !== kind || left - run.right > 3)) end_run();
      run = run || {i, kind, x: left, live: 0, blocks: 0};
      run.right = right;
      run.live += pieces.size[i] - pieces.free[i];
      run.blocks += pieces.blocks[i];
    };
    const flush = () => {
      if (heap)
        block(heap.x, Math.max(heap.width, 0.5), heap.kind, heap.free / heap.size, heap.alpha);
      heap = null;
    };
    const block = (left, wide, kind, free, alpha) => {
      if (kind === KIND.HOLE) return;
      const filled = Math.max(1, height * (1 - free)), gap = wide > 3 ? 1 : 0;
      r.add(colour_of(kind, theme), alpha, left, y + height - filled, wide - gap, filled);
    };
    r.add(theme.hole, 1, x, y, width, height);
    for (let i = layout.piece_at(s, from); i < s.first + s.count && offset[i] < to; i++) {
      const left = Math.max(x, x + (offset[i] - from) * scale);
      const right = Math.min(x + width, x + (offset[i] + pieces.size[i] - from) * scale);
      const kind = pieces.kind[i], free = pieces.free[i], wide = right - left;
      const alpha = kind === KIND.HOLE || shows(layout.site_of(i)) ? 1 : 0.22;
      if (wide >= LETTER_WIDE) end_run();
      else add_to_run(i, kind, left, right);
      if (wide >= 0.5) {
        flush();
        block(left, wide, kind, free / (pieces.size[i] || 1), alpha);
        if (wide >= LETTER_WIDE) wide_enough.push({i, x: left, width: wide});
        continue;
      }
      if (heap && left - heap.x >= 1) flush();
      if (!heap) heap = {x: left, width: 0, size: 0, free: 0, most: -1, kind, alpha};
      heap.width += wide;
      heap.size += pieces.size[i];
      heap.free += free;
      if (kind !== KIND.HOLE && pieces.size[i] > heap.most)
        Object.assign(heap, {most: pieces.size[i], kind, alpha});
    }
    flush();
    end_run();
    return wide_enough;
  }

  function frame(g, theme, x, y, width, height) {
    if (width < 3) return;
    g.strokeStyle = theme.line;
    g.lineWidth = 1;
    g.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  }

  function letters(g, theme, list, y, height, names) {
    g.textBaseline = "middle";
    for (const {i, x, width, together} of list) {
      const site = layout.site_of(i), kind = layout.pieces.kind[i];
      const hole = kind === KIND.HOLE, full = names && width >= NAME_WIDE;
      g.globalAlpha = hole || shows(site) ? 1 : 0.5;
      g.fillStyle = hole ? theme.dim : text_on(colour_of(kind, theme));
      if (!full) {
        if (hole) continue;
        g.textAlign = "center";
        g.font = "600 11px " + theme.font;
        g.fillText(fitted(g, site >= 0 ? letter_of(site) : "+", width, "letter"), x + width / 2,
          y + height - Math.min(height, 24) / 2);
        continue;
      }
      g.textAlign = "left";
      const name = (site >= 0 ? letter_of(site) + "  " : "") + layout.name_of(i);
      g.font = (hole ? "" : "600 ") + "12px " + theme.font;
      if (together) { /* what is written over the edges of many blocks */
        g.fillStyle = colour_of(kind, theme);
        const wide = Math.max(g.measureText(fitted(g, name, width - 8, "bold")).width,
          g.measureText(amount_of(together.live, together.blocks)).width * 0.96);
        g.fillRect(x + 1, y + height - 37, Math.min(width - 2, wide + 8), 34);
        g.fillStyle = text_on(colour_of(kind, theme));
      }
      g.fillText(fitted(g, name, width - 8, hole ? "" : "bold"), x + 4, y + height - 26);
      g.font = "12px " + theme.font;
      const amount = together ? amount_of(together.live, together.blocks) : amount_text(i);
      g.fillText(fitted(g, amount, width - 8, ""), x + 4, y + height - 11);
    }
    g.globalAlpha = 1;
  }

  function amount_text(i) {
    const {pieces} = layout;
    if (pieces.kind[i] === KIND.HOLE) return size_text(pieces.size[i]);
    return amount_of(pieces.size[i] - pieces.free[i], pieces.blocks[i]);
  }

  function amount_of(live, blocks) {
    return size_text(live) + (blocks > 1 ? " in " + count_text(blocks) + " blocks" : "");
  }

  function theme_of() {
    return {hole: css("--hole"), mixed: css("--mixed"), line: css("--hole-line"), dim: css("--dim"),
      fg: css("--fg"), bad: css("--bad"), accent: css("--accent"),
      font: css("--font"), groups: Array.from({length: GROUPS}, (_, i) => group_colour(i))};
  }

  function draw_request(g, theme, item) {
    g.fillStyle = g.strokeStyle = theme.bad;
    g.globalAlpha = 0.35;
    g.fillStyle = tile(g, "lines", theme.bad);
    g.fillRect(item.x, item.y, item.width, BAND_LOW);
    g.globalAlpha = 1;
    g.lineWidth = 2;
    g.setLineDash([6, 4]);
    g.strokeRect(item.x + 1, item.y + 1, Math.max(1, item.width - 2), BAND_LOW - 2);
    g.setLineDash([]);
    g.fillStyle = theme.bad;
    g.font = "600 12px " + theme.font;
    g.textAlign = "left";
    g.textBaseline = "bottom";
    g.fillText("refused, " + size_text(layout.map.request), item.x, item.y - 2);
  }

  function segment_text(s, briefly) {
    if (briefly) return size_text(s.size);
    return size_text(s.size) + ", " + share_text(s.size - s.free, s.size) + " live" +
      (s.largest ? ", largest hole " + size_text(s.largest) : "") +
      (s.captured ? ", for a CUDA graph" : "");
  }

  /* Where the request would fit, and where the largest hole is. */
  function draw_room(g, theme, s, from, to, x, y, width) {
    const room = layout.map.room, scale = width / (to - from);
    const mark = (start, size, colour, letter) => {
      const left = Math.max(x, x + (start - s.start - from) * scale);
      const right = Math.min(x + width, x + (start + size - s.start - from) * scale);
      if (right <= x || left >= x + width) return;
      g.fillStyle = colour;
      g.fillRect(left, y + 2, Math.max(2, right - left), 2.5);
      if (right - left < 8) return;
      g.beginPath();
      g.moveTo((left + right) / 2 - 4, y + 7.5);
      g.lineTo((left + right) / 2 + 4, y + 7.5);
      g.lineTo((left + right) / 2, y + 2);
      g.fill();
    };
    if (room && room.start >= s.start && room.start < s.start + s.size)
      mark(room.start, room.size, theme.bad);
    else if (layout.hole >= 0 && layout.segment[layout.hole] === s.number)
      mark(layout.address(layout.hole), layout.pieces.size[layout.hole], theme.fg);
  }

  function draw_ghost(g, theme, place) {
    if (place.width < 3) return;
    g.strokeStyle = theme.line;
    g.lineWidth = 1;
    g.setLineDash([2, 3]);
    g.strokeRect(place.x + 0.5, place.y + 0.5, place.width - 1, band - 1);
    g.setLineDash([]);
  }

  function paint(g, width, height, top) {
    const theme = theme_of(), z = zoomed();
    g.translate(0, -top);
    if (z) return paint_zoomed(g, theme, z, width);
    const r = Rectangles(), shown = items.filter((item) => item.y + band + MAP_GAP >= top &&
      item.y - LABEL <= top + height);
    for (const one of ghosts) draw_ghost(g, theme, one);
    const marks = shown.map((item) => (item.s
      ? draw_pieces(r, theme, item.s, 0, item.s.size, item.x, item.y, item.width, band) : []));
    r.draw(g);
    shown.forEach((item, n) => {
      if (!item.s) return draw_request(g, theme, item);
      frame(g, theme, item.x, item.y, item.width, band);
      letters(g, theme, marks[n], item.y, band, band >= BAND_NAMES);
      draw_room(g, theme, item.s, 0, item.s.size, item.x, item.y + band, item.width);
      const label = segment_text(item.s, item.width < 230);
      if (item.width < 48) return;
      g.font = "11px " + theme.font;
      g.fillStyle = theme.dim;
      g.textAlign = "left";
      g.textBaseline = "bottom";
      g.fillText(fitted(g, label, item.width, "small"), item.x, item.y - 2);
    });
  }

  function paint_zoomed(g, theme, z, width) {
    const {s, from, to} = z, r = Rectangles(), y = STRIP + 26;
    const x = (at) => (width * at) / s.size;
    draw_pieces(r, theme, s, 0, s.size, 0, 0, width, STRIP);
    const list = draw_pieces(r, theme, s, from, to, 0, y, width, ZOOMED);
    r.draw(g);
    frame(g, theme, 0, 0, width, STRIP);
    frame(g, theme, 0, y, width, ZOOMED);
    letters(g, theme, list, y, ZOOMED, true);
    draw_room(g, theme, s, from, to, 0, y + ZOOMED, width);
    g.strokeStyle = theme.accent;
    g.lineWidth = 2;
    g.strokeRect(x(from) + 1, 1, Math.max(2, x(to) - x(from) - 2), STRIP - 2);
    g.beginPath();
    g.moveTo(x(from), STRIP);
    g.lineTo(0, y);
    g.moveTo(x(to), STRIP);
    g.lineTo(width, y);
    g.globalAlpha = 0.5;
    g.stroke();
    g.globalAlpha = 1;
    g.font = "11px " + theme.font;
    g.fillStyle = theme.dim;
    g.textBaseline = "top";
    g.textAlign = "left";
    g.fillText(address_text(s.start + from), 0, y + ZOOMED + 11);
    g.textAlign = "right";
    g.fillText(size_text(to - from) + " · " + address_text(s.start + to), width, y + ZOOMED + 11);
  }

  /* Where a piece is drawn; null: not at all. */
  function rect_of(i) {
    const s = layout.map.segments[layout.segment[i]], z = zoomed(), width = pane.width();
    const start = layout.offset[i], end = start + layout.pieces.size[i];
    if (z) {
      if (z.s !== s || end <= z.from || start >= z.to) return null;
      const scale = width / (z.to - z.from), x = Math.max(0, (start - z.from) * scale);
      return {x, y: STRIP + 26, height: ZOOMED, width: Math.min(width, (end - z.from) * scale) - x};
    }
    const item = items.find((one) => one.s === s);
    if (!item) return null;
    const scale = item.width / s.size;
    return {x: item.x + start * scale, y: item.y, width: (end - start) * scale, height: band};
  }

  /* {s, i, strip} under an event: segment, piece, and whether it is a whole segment's strip. */
  function at(event) {
    const p = pane.at(event), z = zoomed(), width = pane.width();
    if (z) {
      if (p.y < STRIP)
        return {s: z.s, strip: true, i: layout.piece_at(z.s, (z.s.size * p.x) / width)};
      if (p.y < STRIP + 26 || p.y > STRIP + 26 + ZOOMED) return null;
      return {s: z.s, i: layout.piece_at(z.s, z.from + ((z.to - z.from) * p.x) / width)};
    }
    const item = items.find((one) => p.x >= one.x && p.x <= one.x + Math.max(2, one.width) &&
      p.y >= one.y - 2 && p.y <= one.y + band + 4);
    if (!item || !item.s) return null;
    return {s: item.s, i: layout.piece_at(item.s, (item.s.size * (p.x - item.x)) / item.width)};
  }

  function side_text(i) {
    if (i < 0) return "the segment's border";
    const site = layout.site_of(i);
    return layout.name_of(i) + (site >= 0 ? " (" + letter_of(site) + ")" : "");
  }

  function lines_of(i) {
    const {pieces, map} = layout, site = layout.site_of(i), s = map.segments[layout.segment[i]];
    const lines = [(site >= 0 ? letter_of(site) + "  " : "") + layout.name_of(i)];
    if (site >= 0 && map.sites[site].file)
      lines.push(map.sites[site].file + (map.sites[site].line ? ":" + map.sites[site].line : ""));
    lines.push(amount_text(i) + (pieces.kind[i] !== KIND.HOLE && pieces.free[i]
      ? "; " + size_text(pieces.free[i]) + " free in " + count_text(pieces.holes[i]) +
        (pieces.holes[i] === 1 ? " hole" : " holes") : ""));
    if (pieces.kind[i] === KIND.HOLE) {
      const [left, right] = layout.beside(i);
      lines.push("between " + side_text(left) + " and " + side_text(right));
    } else if (pieces.blocks[i])
      lines.push((pieces.blocks[i] > 1 ? "the eldest " : "") + "acquired after " +
        time_text(pieces.born[i]));
    if (site >= 0)
      lines.push("all of it: " + size_text(map.sites[site].bytes) + " in " +
        count_text(map.sites[site].blocks) + " blocks");
    lines.push(address_text(layout.address(i)));
    lines.push("in a segment of " + segment_text(s));
    return lines;
  }

  function select(i) {
    cursor = i;
    const z = zoomed();
    let rect = rect_of(i);
    if (z && !rect) {
      /* It lies beside what is looked at: move there. */
      const s = layout.map.segments[layout.segment[i]];
      const half = z.s === s ? (z.to - z.from) / 2 : s.size / 2;
      const middle = z.s === s ? layout.offset[i] + layout.pieces.size[i] / 2 : half;
      zoom(s, middle - half, middle + half, true);
      rect = rect_of(i);
    }
    pane.select(rect);
    if (!rect) return;
    pane.scroll_to({x: 0, width: 0, y: Math.max(0, rect.y - LABEL), height: rect.height + LABEL +
      MAP_GAP});
    const p = pane.on_screen(rect);
    tip.show(lines_of(i), p.x, p.y);
  }

  function step(key) {
    const n = layout.pieces.count, {segments: list} = layout.map;
    if (!n) return;
    if (cursor < 0) return select(zoomed() ? layout.piece_at(zoomed().s, zoomed().from) : 0);
    const s = list[layout.segment[cursor]];
    if (key === "ArrowLeft") select(Math.max(0, cursor - 1));
    else if (key === "ArrowRight") select(Math.min(n - 1, cursor + 1));
    else if (key === "Home") select(s.first);
    else if (key === "End") select(s.first + s.count - 1);
    else {
      const next = list[s.number + (key === "ArrowDown" ? 1 : -1)];
      if (next) select(next.first);
    }
  }

  function zoom_by(factor) {
    const z = zoomed();
    if (!z) {
      if (factor < 1 && layout.map.segments.length)
        zoom(layout.map.segments[cursor < 0 ? 0 : layout.segment[cursor]], 0, Infinity);
      return;
    }
    const half = ((z.to - z.from) * factor) / 2;
    const rect = cursor >= 0 && rect_of(cursor);
    const middle = rect ? layout.offset[cursor] + layout.pieces.size[cursor] / 2
      : (z.from + z.to) / 2;
    if (half * 2 > z.s.size * 1.01 && z.from === 0 && z.to === z.s.size) zoom(null);
    else zoom(z.s, middle - half, middle + half);
  }

  function step_found(by) {
    const {pieces} = layout;
    for (let k = 1, i = cursor; k <= pieces.count; k++) {
      i = (i + by + pieces.count) % pieces.count;
      const site = layout.site_of(i);
      if (site >= 0 && hits[site]) return select(i);
    }
  }

  pane.canvas.addEventListener("pointermove", (event) => {
    const hit = at(event);
    pane.canvas.style.cursor = hit ? "pointer" : "";
    if (!hit) {
      pane.point(null);
      return tip.hide();
    }
    pane.point(hit.strip ? null : rect_of(hit.i));
    tip.show(lines_of(hit.i), event.clientX, event.clientY);
  });
  pane.canvas.addEventListener("pointerleave", () => {
    pane.point(null);
    tip.hide();
  });
  pane.canvas.addEventListener("click", (event) => {
    const hit = at(event), z = zoomed();
    if (!hit) return;
    cursor = hit.i;
    if (!z) zoom(hit.s, 0, hit.s.size);
    else if (hit.strip) zoom(z.s, 0, z.s.size);
    else zoom_to_piece(hit.i);
  });
  pane.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const z = zoomed();
    if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End")
      step(event.key);
    else if (event.key === "+" || event.key === "=") zoom_by(0.5);
    else if (event.key === "-") zoom_by(2);
    else if (event.key === "Enter" && cursor >= 0) {
      if (z) zoom_to_piece(cursor);
      else zoom(layout.map.segments[layout.segment[cursor]], 0, Infinity);
    } else if (event.key === "Escape" && z) {
      if (z.from > 0 || z.to < z.s.size) zoom(z.s, 0, z.s.size);
      else zoom(null);
    } else if (event.key === "Escape" && (text || state.get("site"))) {
      state.set({find: null, site: null}, true);
    } else if (event.key === "Escape") tip.hide();
    else return;
    event.preventDefault();
  });
  pane.canvas.addEventListener("blur", () => tip.hide());
  out.onclick = () => zoom_by(2);
  into.onclick = () => zoom_by(0.5);
  find.oninput = () => state.set({find: find.value || null}, true);
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") step_found(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") state.set({find: null}, true);
    else return;
    event.preventDefault();
  });

  /* The sentences above the picture. */
  function show_button(i) {
    const button = make("button", {class: "small"}, "Show");
    button.onclick = () => {
      cursor = i;
      zoom_to_piece(i);
    };
    return button;
  }

  function draw_says() {
    const m = layout.map;
    const say = (...parts) => says.append(make("li", {}, ...parts));
    says.textContent = "";
    const n = m.segments.length + m.more_segments;
    say(make("b", {}, size_text(m.bytes) + " in " + count_text(n) +
      (n === 1 ? " segment" : " segments")),
      ": " + size_text(m.live) + " live in " + count_text(m.blocks) +
      (m.blocks === 1 ? " block, " : " blocks, ") + (!m.holes ? "no hole." :
      size_text(m.hole_bytes) + " (" + share_text(m.hole_bytes, m.bytes) + ") in " +
      count_text(m.holes) + (m.holes === 1 ? " hole." : " holes, the largest with " +
      size_text(m.largest_hole) + ".")));
    if (m.request)
      say(make("b", {}, (moment.own ? "Refused" : moment.ns < page.data.run.moment ? "Refused later"
        : "Refused before") + ": one block of " + size_text(m.request) + ". "),
        m.request > m.largest_hole ? "No hole is that large." : "A hole is large enough.");
    if (m.room) say_room(m, say);
    if (layout.hole >= 0) {
      const [left, right] = layout.beside(layout.hole);
      const pinned = left >= 0 && right >= 0 && layout.name_of(left) === layout.name_of(right)
        ? "two blocks of " + side_text(left) : side_text(left) + " and " + side_text(right);
      say("The largest hole, " + size_text(layout.pieces.size[layout.hole]) + ", is pinned between ",
        make("b", {}, pinned), ". ", show_button(layout.hole));
    }
    if (m.more_segments)
      say("Not drawn: " + count_text(m.more_segments) + " smaller segments, " +
        size_text(m.more_bytes) + ".");
    if (m.hidden) say(size_text(m.hidden) + " more have no address.");
  }

  function say_room(m, say) {
    const s = layout.find(m.room.start);
    if (!s) return;
    const names = layout.sites_between(m.room.start, m.room.start + m.room.size).slice(0, 3)
      .map(([site, bytes, blocks]) => (site >= 0
        ? letter_of(site) + " " + m.sites[site].name + " " + where_text(m.sites[site])
        : "other call sites") + " (" + count_text(blocks) + (blocks === 1 ? " block, " : " blocks, ") +
        size_text(bytes) + ")");
    const button = make("button", {class: "small"}, "Show");
    button.onclick = () => zoom(s, m.room.start - s.start - m.room.size * 0.02,
      m.room.start - s.start + m.room.size * 1.02);
    if (m.room.blocks)
      say("It would fit (▲) with " + count_text(m.room.blocks) +
        (m.room.blocks === 1 ? " block" : " blocks") + ", " + size_text(m.room.bytes) +
        ", out of the way: ", make("b", {}, names.join(", ")), ". ", button);
    else say("It would fit (▲) where nothing is in the way. ", button);
  }

  function draw_sites() {
    const m = layout.map, body = make("tbody", {}), chosen = state.number("site", -1);
    for (const i of m.order) {
      const site = m.sites[i];
      if (text && !hits[i]) continue;
      if (!all && body.children.length >= SEGMENTS_FIRST) break;
      const letter = make("span", {class: "letter"}, letter_of(i));
      letter.style.background = group_colour(colours[i]);
      letter.style.color = text_on(group_colour(colours[i]));
      const button = make("button", {class: "open plain", "aria-pressed": String(chosen === i),
        title: "Show only its blocks"}, letter, make("span", {class: "name"}, site.name));
      button.onclick = () => state.set({site: chosen === i ? null : i}, true);
      const share = make("td", {class: "n", title: count_text(site.bytes)}, size_text(site.bytes),
        " ", make("small", {}, share_text(site.bytes, m.live)));
      share.style.setProperty("--share", (100 * site.bytes) / (m.live || 1) + "%");
      body.append(make("tr", {class: chosen === i ? "chosen" : null},
        make("th", {scope: "row"}, button,
          make("span", {class: "where", title: site.file}, where_text(site))),
        share, make("td", {}, count_text(site.blocks))));
    }
    sites.textContent = "";
    sites.append(make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "Call site"),
      make("th", {scope: "col"}, "Live"), make("th", {scope: "col"}, "Blocks"))), body);
  }

  function draw_segments() {
    const m = layout.map, body = make("tbody", {}), z = zoomed();
    const list = all ? m.segments : m.segments.slice(0, SEGMENTS_FIRST);
    for (const s of list) {
      const button = make("button", {class: "open plain"},
        make("span", {class: "name"}, address_text(s.start)));
      button.onclick = () => zoom(s, 0, s.size);
      const what = [s.captured ? "CUDA graph" : "", s.mapped ? "grows in place" : "",
        s.acquired ? "" : "range of blocks"].filter(Boolean).join(", ");
      body.append(make("tr", {class: z && z.s === s ? "chosen" : null},
        make("th", {scope: "row"}, button, make("span", {class: "where"}, what)),
        make("td", {}, size_text(s.size)), make("td", {}, share_text(s.size - s.free, s.size)),
        make("td", {}, count_text(s.blocks)), make("td", {}, count_text(s.holes)),
        make("td", {}, s.largest ? size_text(s.largest) : "–")));
    }
    segments.textContent = "";
    segments.append(make("thead", {}, make("tr", {}, ...["Segment", "Size", "Live", "Blocks", "Holes",
      "Largest hole"].map((t) => make("th", {scope: "col"}, t)))), body);
    more.hidden = all || (m.segments.length <= SEGMENTS_FIRST && m.order.length <= SEGMENTS_FIRST);
    more.textContent = "Show all " + m.order.length + " call sites and " + m.segments.length +
      " segments";
  }

  function draw_crumbs_of(z) {
    const steps = [["all segments of " + space.name, () => zoom(null)]];
    if (z) steps.push(["segment " + address_text(z.s.start) + ", " + size_text(z.s.size),
      () => zoom(z.s, 0, z.s.size)]);
    if (z && (z.from > 0 || z.to < z.s.size)) steps.push([size_text(z.to - z.from), null]);
    draw_crumbs(crumbs, steps);
    crumbs.hidden = !z;
  }

  function draw() {
    prepare();
    const z = zoomed(), m = layout.map, most = Math.max(260,
      Math.min(640, Math.round(innerHeight * 0.62)));
    if (document.activeElement !== find || !text) find.value = state.get("find", "");
    const sum = m.sites.reduce((all_of, s, i) => all_of + (hits[i] ? s.bytes : 0), 0);
    found.textContent = !text ? "" : sum ? size_text(sum) + ", " + share_text(sum, m.live) +
      " of what is live" : "no match";
    pane.size(z ? STRIP + 26 + ZOOMED + 28
      : arrange_rows(pane.width() || root.clientWidth, most), most);
    partly.hidden = !m.partly;
    mixed.hidden = !m.mixed;
    refused.hidden = !m.request;
    ghost.hidden = !!z || !ghosts.length;
    moments.draw();
    pane.select(cursor >= 0 ? rect_of(cursor) : null);
    pane.point(null);
    draw_says();
    draw_crumbs_of(z);
    draw_sites();
    draw_segments();
    pane.canvas.setAttribute("aria-label", "Map of " + space.name + ", " +
      moments.long_text(moment).toLowerCase() + ": " + size_text(m.bytes) + " in " +
      m.segments.length + " segments, " + size_text(m.hole_bytes) + " in holes, the largest with " +
      size_text(m.largest_hole) + (m.request ? "; refused: " + size_text(m.request) : "") +
      ". Arrow keys step from block to block, Enter zooms, Escape zooms out; the tables below " +
      "have the call sites and the segments.");
    pane.redraw();
  }

  more.onclick = () => {
    all = true;
    draw_sites();
    draw_segments();
  };
  window.addEventListener("beforeprint", pane.draw);
  keys.push(["/", "search", () => find.focus(), root]);
  keys.push(["n", "", () => step_found(1), root]);
  keys.push(["N", "", () => step_found(-1), root]);
  keys.push(["← → ↑ ↓", "in the map: block to block, segment to segment; Enter and + zoom in, − and " +
    "Esc out", null]);
  return draw;
}

views.push({id: "map", title: "Map", make: MapView,
  shows: (space) => [space.map, ...space.moments.map((m) => m.map)].some((m) => m && m.segments.length),
  own: ["segment", "bytes", "site", "find"]});
