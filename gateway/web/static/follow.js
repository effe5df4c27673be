// Follows a job's output: asks for what lies after `offset`, adds it as text, keeps the scroll.
(() => {
  const QUICK_MS = 400; // until the first line, so that a start is seen at once
  const STEADY_MS = 1500;
  const AFTER_ERROR_MS = 5000;
  const KEEP_CHARACTERS = 2000000; // a browser slows down long before a disk does

  const follow = (box) => {
    const pane = box.querySelector("[data-pane]");
    const toggle = box.querySelector("[data-toggle]");
    const note = box.querySelector("[data-note]");
    let offset = Number(box.dataset.offset);
    let ended = box.dataset.ended === "true";
    let following = true;

    const atEnd = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight < 40;
    const toEnd = () => { pane.scrollTop = pane.scrollHeight; };
    const paint = () => {
      toggle.textContent = following ? toggle.dataset.pause : toggle.dataset.again;
      toggle.setAttribute("aria-pressed", String(following));
    };

    const add = (text) => {
      const stick = following && atEnd();
      pane.append(text);
      if (pane.textContent.length > KEEP_CHARACTERS) {
        pane.textContent = pane.textContent.slice(-KEEP_CHARACTERS / 2);
      }
      if (stick) toEnd();
    };

    const ask = async () => {
      const answer = await fetch(`${box.dataset.url}?offset=${offset}`, {
        headers: { Accept: "application/json" },
        credentials: "same-origin",
      });
      const chunk = await answer.json();
      note.textContent = chunk.note ?? "";
      if (!answer.ok) return answer.status === 401 || answer.status === 404 ? null : AFTER_ERROR_MS;
      if (chunk.restarted) pane.textContent = "";
      if (chunk.text) add(chunk.text);
      offset = chunk.next_offset;
      const done = ended && !chunk.text;
      ended = chunk.ended;
      if (done) return null;
      if (chunk.more) return 0;
      return pane.textContent ? STEADY_MS : QUICK_MS;
    };

    const round = async () => {
      let pause = AFTER_ERROR_MS;
      if (!following || document.hidden) pause = STEADY_MS;
      else {
        try {
          pause = await ask();
        } catch {
          note.textContent = box.dataset.lost;
        }
      }
      if (pause !== null) setTimeout(round, pause);
    };

    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      following = !following;
      paint();
      if (following) toEnd();
    });
    paint();
    toEnd();
    round();
  };

  for (const box of document.querySelectorAll("[data-follow]")) follow(box);
})();
