/* open.js - begins the page's script; the build joins the files in the order of meson.build. They
 * share this one scope. Texts come from a trace, so they are set as text and never as markup. */
(function () {
"use strict";

/* make("td", {class: "n"}, "text", node...): an element. */
function make(tag, attributes) {
  const e = document.createElement(tag);
  for (const key in attributes || {})
    if (attributes[key] !== null && attributes[key] !== false)
      e.setAttribute(key, attributes[key] === true ? "" : attributes[key]);
  for (let i = 2; i < arguments.length; i++)
    if (arguments[i] !== null && arguments[i] !== undefined) e.append(arguments[i]);
  return e;
}

/* The views below the timeline, each {id, title, shows(space), make(root, page), own}. Files add
 * theirs in the order of the tabs. `own`: keys of the state that change nothing outside the view.
 * make() is called once and returns draw(), which main.js calls when the view is shown and the
 * state, the space, the range, the theme or the width has changed. `page` is main.js's: data
 * (decode.js), space(), range(). Space, range and search belong to state.js's keys `space`, `from`,
 * `to` and `find`, so that all views follow them. */
const views = [];
