// "/" goes to the search box, as on most sites where people search often.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const box = document.getElementById("find");
  if (!box) return;
  event.preventDefault();
  box.focus();
  box.select();
});
