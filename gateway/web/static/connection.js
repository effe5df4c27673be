// Says so when live updates stop coming, and takes it back when they come again.
(() => {
  document.documentElement.classList.add("scripted");
  const notice = () => document.getElementById("offline");
  const show = (lost) => {
    const box = notice();
    if (box) box.hidden = !lost;
  };
  document.addEventListener("htmx:error", () => show(true));
  document.addEventListener("htmx:after:request", (event) => {
    show(event.detail.ctx.response.status >= 500);
  });
  // A closed menu is what one expects after a click elsewhere.
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.person[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
})();
