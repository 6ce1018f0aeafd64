/* units.js - numbers and colours for people. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function size_text(bytes) {
  let n = Math.abs(bytes), u = 0;
  while (n >= 1023.5 && u < UNITS.length - 1) {
    n /= 1024;
    u++;
  }
  const digits = u === 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  return (bytes < 0 ? "−" : "") + n.toFixed(digits) + " " + UNITS[u];
}

function count_text(n) {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

function time_text(ns) {
  if (!ns) return "0";
  if (ns < 1e3) return Math.round(ns) + " ns";
  if (ns < 1e6) return (ns / 1e3).toPrecision(3) + " µs";
  if (ns < 1e9) return (ns / 1e6).toPrecision(3) + " ms";
  if (ns < 120e9) return (ns / 1e9).toPrecision(3) + " s";
  const minutes = Math.floor(ns / 60e9);
  if (minutes < 120) return minutes + " min " + Math.floor((ns / 1e9) % 60) + " s";
  return Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}

function share_text(part, whole) {
  if (!whole) return "–";
  const p = (100 * part) / whole;
  return (p > 0 && p < 0.1 ? "<0.1" : p < 9.95 ? p.toFixed(1) : p.toFixed(0)) + " %";
}

function base_name(path) {
  return path ? path.slice(path.lastIndexOf("/") + 1) : "";
}

/* "name.py:31" of a place or a frame; "" where nothing is known. */
function where_text(p) {
  if (p.file) return base_name(p.file) + (p.line ? ":" + p.line : "");
  return p.module || "";
}

/* A call site's stack as text, a line for each frame, innermost first. */
function stack_text(frames, site) {
  const lines = Array.from(site.stack, (f) => {
    const frame = frames[f];
    return frame.name + (where_text(frame) ? "  " + (frame.file || where_text(frame)) +
      (frame.file && frame.line ? ":" + frame.line : "") : "");
  });
  if (site.cut) lines.push("… " + site.cut + " more frames");
  return lines.join("\n");
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/* Colours of the groups of a curve, from the style sheet: they follow the theme. */
function group_colour(group) {
  return css("--g" + Math.min(group, GROUPS - 1));
}

function class_colour(number) {
  return css("--k" + (number < 0 || number >= CLASSES - 1 ? 8 : number));
}

/* Even steps of an axis, at most `most` up to `to`: powers of two of bytes, else 1, 2 and 5. */
function ticks(to, most, base) {
  const factors = base === 2 ? [1] : [1, 2, 5], out = [];
  let step = 1;
  for (let scale = 1; to / step > most; scale *= base)
    step = factors.map((f) => f * scale).find((s) => to / s <= most) || scale;
  for (let v = 0; v <= to * 1.0001; v += step) out.push(v);
  return out;
}

/* Lines of a curve's scale {left, right, y(bytes)}, with their bytes. */
function byte_grid(g, s, top) {
  g.strokeStyle = css("--line");
  g.fillStyle = css("--dim");
  g.lineWidth = 1;
  g.textAlign = "right";
  g.textBaseline = "middle";
  for (const v of ticks(top, 6, 2)) {
    const y = Math.round(s.y(v)) + 0.5;
    g.beginPath();
    g.moveTo(s.left, y);
    g.lineTo(s.right, y);
    g.stroke();
    g.fillText(size_text(v).replace(/\.0+ /, " "), s.left - 6, y);
  }
}

/* A canvas as large as its box on this screen, its origin in CSS pixels. */
function canvas_context(canvas) {
  const box = canvas.getBoundingClientRect();
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = Math.max(1, Math.round(box.width)), height = Math.max(1, Math.round(box.height));
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "12px " + css("--font");
  return {g, width, height};
}

async function copy_text(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch (e) {
    const area = make("textarea", {class: "away"});
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = done ? "Copied" : "Not copied";
  setTimeout(() => (button.textContent = before), 1200);
}

function save_text(text, name, type) {
  const link = make("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/* Rows of numbers, texts and nulls as CSV. */
function csv_of(rows) {
  const quote = (v) => {
    /* A text that a spreadsheet would run as a formula is none. */
    const text = String(v === null || v === undefined ? "" : v);
    const safe = /^[=+\-@\t\r]/.test(text) && typeof v !== "number" ? "'" + text : text;
    return /[",\n\r]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
  };
  return rows.map((row) => row.map(quote).join(",")).join("\n") + "\n";
}
