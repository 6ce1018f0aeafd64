/* frames.js - what a frame is called and whose it is, and the search for frames. */

const ROLES = [
  ["own", "your code"],
  ["framework", "framework"],
  ["library", "library"],
  ["runtime", "runtime, interpreter"],
];
const SHADES = 3;

function role_of(frame) {
  if (frame.flags & FLAG.USER) return 0;
  if (frame.flags & FLAG.FRAMEWORK) return 1;
  return frame.flags & FLAG.LIBRARY ? 2 : 3;
}

/* "numpy/__init__.py:31": many files have that name. */
function place_text(frame) {
  const text = where_text(frame);
  if (!/^__(init|main)__\.py/.test(text) || !frame.file) return text;
  return base_name(frame.file.slice(0, frame.file.lastIndexOf("/"))) + "/" + text;
}

/* A module's own code is known by its file. */
function title_of(frame) {
  return frame.name === "<module>" && frame.file ? place_text(frame) : frame.name;
}

function second_title_of(frame) {
  return frame.name === "<module>" && frame.file ? "<module>" : place_text(frame);
}

/* Which frames can be shown: [value, title]. */
function frame_list(python) {
  return python
    ? [["own", "Your code only"], ["python", "Python"], ["all", "With native frames"]]
    : [["own", "Your code only"], ["all", "All frames"]];
}

function hash_of(text) {
  let h = 7;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) | 0;
  return h >>> 0;
}

/* The search box of a picture of frames: which nodes are found, and their bytes together. */
function Search(frames) {
  const input = make("input", {type: "search", id: "flame-find", placeholder:
    "Search functions and files", "aria-label": "Search functions and files"});
  const back = make("button", {class: "small", title: "N", "aria-label": "Last match"}, "‹");
  const on = make("button", {class: "small", title: "n", "aria-label": "Next match"}, "›");
  const said = make("span", {class: "hint", role: "status", id: "flame-found"});
  const parts = [input, back, on, said];
  let built = null, text = "", hit = new Uint8Array(frames.length), told = "", go = null;
  const words = frames.map((f) =>
    (f.name + " " + (f.file || f.module || "") + (f.line ? ":" + f.line : "")).toLowerCase());

  function look() {
    const now = state.get("find", "").toLowerCase();
    if (now === text) return;
    text = now;
    hit = Uint8Array.from(words, (w) => (text && w.includes(text) ? 1 : 0));
  }

  function frame(part, node) {
    if (node === 0) return built.two ? built.of : MORE;
    return built.parts[part].tree.frame[node];
  }

  function found(part, node) {
    const f = frame(part, node);
    return f >= 0 && hit[f] === 1;
  }

  /* All that is found: {part, node}. */
  function list() {
    const out = [];
    built.parts.forEach((a, part) => {
      for (let p = 1; p < a.count; p++) {
        const f = a.tree.frame[a.order[p]];
        if (f >= 0 && hit[f]) out.push({part, node: a.order[p]});
      }
    });
    return out;
  }

  /* Bytes of what is found; what lies in another match counts once. */
  function sum(a, value) {
    let out = 0;
    for (let p = 1; p < a.count;) {
      const node = a.order[p], f = a.tree.frame[node];
      if (f >= 0 && hit[f]) {
        out += value[node];
        p = a.behind[p];
      } else p++;
    }
    return out;
  }

  input.oninput = () => state.set({find: input.value || null}, true);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") state.set({find: null}, true);
    else return;
    event.preventDefault();
  });
  on.onclick = () => go(1);
  back.onclick = () => go(-1);

  return {
    parts, found, list,
    of(what) {
      built = what;
      look();
    },
    text: () => text,
    of_frame: (f) => hit[f] === 1,
    shows: (part, node) => !text || found(part, node),
    draw() {
      if (document.activeElement !== input || !state.get("find"))
        input.value = state.get("find", "");
      on.hidden = back.hidden = !text;
      const base = built.base, v = sum(base, base.value);
      const count = text ? list().length : 0;
      told = !text ? "" : count || v
        ? (built.says ? built.says((value) => sum(base, value))
          : (built.measure === "count" ? count_text(v) + " blocks" : size_text(v)) + ", " +
            share_text(v, base.value[0])) + ", in " + count_text(count) +
          (count === 1 ? " box" : " boxes")
        : "no match";
      if (said.textContent !== told) said.textContent = told;
      said.title = text && v ? count_text(v) : "";
    },
    focus: () => input.focus(),
    step: (by) => text && go(by),
    on_step: (f) => (go = f),
  };
}
