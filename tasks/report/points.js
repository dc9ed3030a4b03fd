// Shows the numbers of a point under the pointer and in the focus; Escape puts them away.
"use strict";
(() => {
  const numbers = JSON.parse(document.getElementById("points").textContent);
  const detail = document.getElementById("detail");
  let shown = null;

  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };

  const hide = () => {
    detail.hidden = true;
    if (!shown) return;
    shown.classList.remove("on");
    document.getElementById(numbers[shown.id].row)?.classList.remove("shown");
    shown = null;
  };

  const place = (point) => {
    const at = point.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = at.right + 8 + detail.offsetWidth > width ? at.left - detail.offsetWidth - 8 : at.right + 8;
    const top = Math.min(at.top, window.innerHeight - detail.offsetHeight - 8);
    detail.style.left = `${Math.max(4, left) + window.scrollX}px`;
    detail.style.top = `${Math.max(4, top) + window.scrollY}px`;
  };

  const show = (point) => {
    hide();
    const { title, facts, row } = numbers[point.id];
    const list = document.createElement("dl");
    for (const [name, text] of facts) list.append(element("dt", name), element("dd", text));
    detail.replaceChildren(element("strong", title), list);
    detail.hidden = false;
    place(point);
    point.classList.add("on");
    document.getElementById(row)?.classList.add("shown");
    shown = point;
  };

  for (const point of document.querySelectorAll(".point")) {
    point.addEventListener("pointerenter", () => show(point));
    point.addEventListener("pointerleave", hide);
    point.addEventListener("focus", () => show(point));
    point.addEventListener("blur", hide);
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
})();
