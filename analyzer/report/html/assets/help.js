/* help.js - what is shown under the cursor, the theme, and the list of keys. */

/* A box beside the cursor; a screen reader hears it, too. */
const tip = (function () {
  const box = make("div", {id: "tip", role: "status", "aria-live": "polite", hidden: true});
  document.body.append(box);
  return {
    /* lines: [text, text...]; the first is the title. Each may be [swatch colour, text, value]. */
    show(lines, x, y) {
      box.textContent = "";
      for (const line of lines) {
        if (!Array.isArray(line)) {
          box.append(make("div", {}, line));
          continue;
        }
        const swatch = make("i", {class: "dot"});
        swatch.style.background = line[0];
        box.append(make("div", {class: "entry"}, swatch, make("span", {}, line[1]),
          make("b", {}, line[2] || "")));
      }
      box.hidden = false;
      const room = box.getBoundingClientRect();
      const left = x + 16 + room.width > innerWidth ? x - 16 - room.width : x + 16;
      box.style.left = Math.max(4, left) + "px";
      box.style.top = Math.max(4, Math.min(y + 12, innerHeight - room.height - 4)) + "px";
    },
    hide: () => (box.hidden = true),
  };
})();

const THEMES = ["auto", "light", "dark"];

function theme_now() {
  let kept = "auto";
  try {
    kept = localStorage.getItem("whyoom-theme") || "auto";
  } catch (e) { /* not allowed from a file in some browsers */ }
  const chosen = state.get("theme", kept);
  return THEMES.includes(chosen) ? chosen : "auto";
}

function theme_apply() {
  const theme = theme_now();
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (button) button.textContent = "Theme: " + theme;
}

function theme_next() {
  const theme = THEMES[(THEMES.indexOf(theme_now()) + 1) % THEMES.length];
  try {
    localStorage.setItem("whyoom-theme", theme);
  } catch (e) { /* the fragment has it */ }
  state.set({theme: theme === "auto" ? null : theme}, true);
  theme_apply();
}

/* Keys that work anywhere: [key, what it does, function, root]. Views add theirs with a null
 * function where they listen themselves, and with their root where a key works only while it is
 * shown. */
const keys = [
  ["?", "this help", () => help_toggle()],
  ["t", "light, dark or as the system", () => theme_next()],
];

function help_toggle() {
  const open = document.getElementById("help");
  if (open) {
    open.remove();
    return;
  }
  const table = make("table", {});
  for (const [key, what] of keys)
    if (what && !table.textContent.includes(what))
      table.append(make("tr", {}, make("th", {scope: "row"}, make("kbd", {}, key)),
        make("td", {}, what)));
  const close = make("button", {}, "Close");
  const box = make("dialog", {id: "help", "aria-label": "Keys"}, make("h2", {}, "Keys"), table,
    close);
  close.onclick = () => box.remove();
  box.onclose = () => box.remove();
  document.body.append(box);
  box.showModal();
}

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const found = keys.find((k) => k[0] === event.key && k[2] && (!k[3] || k[3].offsetParent));
  if (!found) return;
  event.preventDefault();
  found[2](event);
});

function tools() {
  const theme = make("button", {id: "theme", title: "t"}, "Theme: auto");
  const help = make("button", {title: "?"}, "Keys");
  theme.onclick = theme_next;
  help.onclick = help_toggle;
  document.getElementById("tools").append(theme, help);
  theme_apply();
}

/* Says why there are no pictures, and what stands without them. */
function cannot(why, rest) {
  document.getElementById("views").append(make("p", {class: "alert"},
    "The pictures cannot be shown: " + why + " " + rest));
}

/* Shows the tools. False: this browser cannot read the pictures' data, which is said. */
function open_tools(rest) {
  tools();
  if (typeof DecompressionStream === "function") return true;
  cannot("this browser is too old to unpack their data (it lacks DecompressionStream).", rest);
  return false;
}

/* Reads the page's data and starts it; where that fails, the page says so, and what is left. */
function open_page(decode, start, rest) {
  if (open_tools(rest))
    read_block(document.getElementById("d"), decode).then(start,
      (e) => cannot("their data is damaged: " + e.message + ".", rest));
}
