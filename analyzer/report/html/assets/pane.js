/* pane.js - what the pictures of data of any size share: a canvas as large as its window over
 * content as tall as it likes, marks on it, and a text that fits. */

/* paint(g, width, height, top) draws the part of the content that begins `top` pixels down;
 * resized() is called when the content was made for another width. id: of the canvas. */
function Pane(id, paint, resized) {
  const canvas = make("canvas", {id, tabindex: "0", role: "img"});
  const pointed = make("div", {class: "outline pointed", hidden: true});
  const selected = make("div", {class: "outline selected", hidden: true});
  const content = make("div", {class: "content"}, canvas, pointed, selected);
  const box = make("div", {class: "pane"}, content);
  let wanted = false, tall = 0, wide = 0, settling = false;

  function draw() {
    wanted = false;
    if (!box.offsetParent) return;
    const {g, width, height} = canvas_context(canvas);
    /* Not in two frames in a row: with a scrollbar, the content may be so low that it needs none. */
    const again = width !== wide && !settling;
    settling = width !== wide;
    wide = width;
    if (again) resized();
    paint(g, width, height, box.scrollTop);
  }

  function redraw() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(draw);
  }

  function put(mark, rect) {
    mark.hidden = !rect;
    if (!rect) return;
    mark.style.left = Math.min(rect.x, wide - 3) + "px";
    mark.style.top = rect.y + "px";
    mark.style.width = Math.max(3, rect.width) + "px";
    mark.style.height = rect.height + "px";
  }

  box.addEventListener("scroll", redraw, {passive: true});
  return {
    box, canvas, draw, redraw,
    /* How tall the content is; the window is at most `most` of it. */
    size(height, most) {
      tall = Math.ceil(height);
      content.style.height = tall + "px";
      canvas.style.height = Math.min(tall, most) + "px";
      box.style.maxHeight = most + "px";
      box.classList.toggle("cut", tall > most);
    },
    /* As it was drawn last: to ask the page would have it laid out once more. */
    width: () => wide || (wide = canvas.clientWidth),
    /* {x, y, width, height} in the content, or null. */
    point: (rect) => put(pointed, rect),
    select: (rect) => put(selected, rect),
    scroll_to(rect) {
      if (rect.y < box.scrollTop) box.scrollTop = rect.y;
      else if (rect.y + rect.height > box.scrollTop + box.clientHeight)
        box.scrollTop = rect.y + rect.height - box.clientHeight;
    },
    to_top: () => (box.scrollTop = 0),
    /* Where an event is in the content. */
    at(event) {
      const r = canvas.getBoundingClientRect();
      return {x: event.clientX - r.left, y: event.clientY - r.top + box.scrollTop};
    },
    /* Where a rectangle of the content is on the screen. */
    on_screen(rect) {
      const r = canvas.getBoundingClientRect();
      return {x: r.left + rect.x + Math.min(rect.width, 60), y: r.top + rect.y - box.scrollTop +
        rect.height};
    },
  };
}

/* A text's begin that fits; "" if nothing of use does. face: a word for the font that is set. */
const fitted = (function () {
  const widths = new Map();
  function width_of(g, text, face) {
    const key = face + text;
    let width = widths.get(key);
    if (width === undefined) {
      if (widths.size > 20000) widths.clear();
      widths.set(key, (width = g.measureText(text).width));
    }
    return width;
  }
  return function (g, text, room, face) {
    const width = width_of(g, text, face);
    if (width <= room) return text;
    let letters = Math.floor((text.length * room) / width);
    for (; letters >= 2; letters--) {
      const some = text.slice(0, letters) + "…";
      if (width_of(g, some, face) <= room) return some;
    }
    return "";
  };
})();

/* The text colour that is read on a colour "#rrggbb". */
function text_on(colour) {
  const part = (at) => {
    const v = parseInt(colour.slice(at, at + 2), 16) / 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  };
  const light = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return light > 0.19 ? "#16191d" : "#ffffff";
}

/* A tile of slanting lines or of dots, to be laid over a colour. */
function tile(g, kind, colour) {
  const c = document.createElement("canvas"), t = c.getContext("2d");
  c.width = c.height = kind === "dots" ? 4 : 8;
  t.fillStyle = t.strokeStyle = colour;
  if (kind === "dots") t.fillRect(0, 0, 2, 4);
  else
    for (let at = -8; at <= 8; at += 8) {
      t.lineWidth = 1.4;
      t.beginPath();
      t.moveTo(at, 8);
      t.lineTo(at + 8, 0);
      t.stroke();
    }
  return g.createPattern(c, "repeat");
}

/* Buttons of which one is chosen, as tabs: arrow keys move between them. */
function Tabs(label, key, list, chosen) {
  const box = make("div", {class: "tabs", role: "tablist", "aria-label": label});
  for (const [id, title] of list()) {
    const button = make("button", {role: "tab", "data-id": id, id: key + "-" + id}, title);
    button.onclick = () => state.set({[key]: id});
    box.append(button);
  }
  box.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step) return;
    const buttons = [...box.querySelectorAll("button:not([hidden])")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (next) {
      next.focus();
      next.click();
    }
    event.preventDefault();
  });
  function draw() {
    for (const button of box.children) {
      const on = button.dataset.id === chosen();
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    }
  }
  return {box, draw};
}

/* <select> of [value, title] whose choice is a key of the state. */
function Choice(label, key, reset) {
  const select = make("select", {"aria-label": label, id: "choose-" + key});
  select.onchange = () => state.set({[key]: select.value, ...reset});
  return {
    select,
    draw(list, chosen) {
      select.textContent = "";
      for (const [value, title] of list)
        select.append(make("option", {value, selected: value === chosen}, title));
      select.hidden = list.length < 2;
    },
  };
}

/* The way to what is shown, each step a button but the last. steps: [text, function]. */
function draw_crumbs(box, steps) {
  const cut = steps.length > 7, list = cut ? [steps[0], null, ...steps.slice(-5)] : steps;
  box.textContent = "";
  list.forEach((step, i) => {
    if (i) box.append(make("span", {"aria-hidden": "true"}, "›"));
    if (!step) box.append(make("span", {title: (steps.length - 6) + " more"}, "…"));
    else if (i === list.length - 1) box.append(make("b", {"aria-current": "location"}, step[0]));
    else {
      const button = make("button", {class: "crumb"}, step[0]);
      button.onclick = step[1];
      box.append(button);
    }
  });
}
