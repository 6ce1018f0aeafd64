/* processes.js - the table of processes, which C wrote, as a switch: the views show one of them. */

/* The numbers of the processes with data; the report's is 0. */
function process_numbers() {
  return [...document.querySelectorAll("#processes [data-process]")]
    .map((row) => Number(row.dataset.process));
}

/* The chosen one, from the address. */
function process_number() {
  const wanted = state.number("process", 0);
  return process_numbers().includes(wanted) ? wanted : 0;
}

/* What belongs to one process's data is dropped with it. */
function process_choose(number) {
  const change = {process: number || null};
  for (const key of state.keys())
    if (!["view", "theme", "process", "by"].includes(key)) change[key] = null;
  state.set(change);
}

/* Makes the rows buttons. */
function Processes() {
  const rows = document.querySelectorAll("#processes [data-process]");
  for (const row of rows) {
    const name = row.querySelector(".process"), number = Number(row.dataset.process);
    const button = make("button", {class: "small process", "data-id": number}, name.textContent);
    button.onclick = () => {
      process_choose(number);
      document.getElementById("views").scrollIntoView({block: "start"});
    };
    name.replaceWith(button);
  }
  return {
    draw() {
      for (const row of rows) {
        const on = Number(row.dataset.process) === process_number();
        row.classList.toggle("chosen", on);
        row.querySelector("button").setAttribute("aria-pressed", String(on));
      }
    },
  };
}

/* Above the views: which process they show, and its verdict. null: there is one process. */
function process_head(number) {
  const numbers = process_numbers();
  if (numbers.length < 2) return null;
  const title = (n) => {
    const row = document.querySelector(`#processes [data-process="${n}"]`);
    return row.querySelector(".process").textContent + " " + row.querySelector("code").textContent;
  };
  const select = make("select", {"aria-label": "Process", id: "choose-process"});
  for (const n of numbers)
    select.append(make("option", {value: n, selected: n === number}, title(n)));
  select.onchange = () => process_choose(Number(select.value));
  const says = document.querySelector(`#processes [data-process="${number}"] .says`);
  return make("section", {class: "process-head"}, make("div", {class: "row"},
    make("label", {for: "choose-process"}, "Process"), select),
  make("p", {class: "hint"}, says.textContent));
}
