// Keeps the red frame of a field in step with the note beneath it, which live checks replace.
document.addEventListener("htmx:after:swap", () => {
  for (const field of document.querySelectorAll(".field")) {
    const control = field.querySelector("input, select, textarea");
    if (!control) continue;
    if (field.querySelector(".problem")) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  }
});

// A choice brings the fields anew. What was typed since it was asked for stays as it was typed.
(() => {
  const typed = () => {
    const found = new Map();
    for (const one of document.querySelectorAll("#form-fields input, #form-fields textarea")) {
      if (one.name && !["hidden", "radio", "checkbox"].includes(one.type)) found.set(one.name, one);
    }
    return found;
  };
  let asked = new Map();
  let kept = new Map();
  let focused = null;
  let unfolded = false;
  const isFields = (event) => event.detail.ctx?.target?.id === "form-fields";
  document.addEventListener("htmx:before:request", (event) => {
    if (isFields(event)) asked = new Map([...typed()].map(([name, one]) => [name, one.value]));
  });
  document.addEventListener("htmx:before:swap", (event) => {
    if (!isFields(event)) return;
    const now = typed();
    kept = new Map([...now].filter(([name, one]) => asked.has(name) && asked.get(name) !== one.value)
      .map(([name, one]) => [name, one.value]));
    unfolded = document.getElementById("more-fields")?.open ?? false;
    const active = document.activeElement;
    focused = now.get(active?.name) === active ? [active.name, active.selectionStart] : null;
  });
  document.addEventListener("htmx:after:swap", (event) => {
    if (!isFields(event)) return;
    const more = document.getElementById("more-fields");
    if (more && unfolded) more.open = true;
    const now = typed();
    for (const [name, value] of kept) if (now.has(name)) now.get(name).value = value;
    if (focused && now.has(focused[0])) {
      const one = now.get(focused[0]);
      if (document.activeElement !== one) one.focus();
      if (focused[1] !== null) one.setSelectionRange(focused[1], focused[1]);
    }
    // Script and quote are for what stands there now.
    if (kept.size) document.getElementById("submit-form").dispatchEvent(new Event("input"));
    kept = new Map();
    focused = null;
  });
})();

// A dataset that is chosen goes among the words of its field when its button is pressed (arrow keys
// pass over many); one that is left chosen is added by the server. The list can be searched.
(() => {
  const prepare = () => {
    for (const box of document.querySelectorAll("[data-filters][hidden], [data-adds][hidden]")) {
      box.hidden = false;
    }
  };
  document.addEventListener("click", (event) => {
    const list = document.getElementById(event.target.dataset?.adds ?? "");
    const field = document.getElementById(event.target.dataset?.to ?? "");
    if (!field || !list?.value) return;
    const words = field.value.split(/\s+/).filter(Boolean);
    if (!words.includes(list.value)) field.value = [...words, list.value].join(" ");
    list.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  document.addEventListener("input", (event) => {
    const list = document.getElementById(event.target.dataset?.filters ?? "");
    if (!list) return;
    event.stopPropagation();
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const one of list.options) {
      const found = words.every((word) => one.textContent.toLowerCase().includes(word));
      one.hidden = one.disabled = Boolean(one.value) && !found;
    }
  });
  document.addEventListener("htmx:after:swap", prepare);
  prepare();
})();
