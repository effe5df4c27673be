// Keeps the red frame of a field in step with the note beneath it, which live checks replace.
document.addEventListener("htmx:after:swap", () => {
  for (const field of document.querySelectorAll(".field")) {
    const control = field.querySelector("input, select, textarea");
    if (!control) continue;
    if (field.querySelector(".problem")) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  }
});
