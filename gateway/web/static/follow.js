// Follows a job's output: asks for what lies after `offset`, adds it as text, keeps the scroll.
(() => {
  const QUICK_MS = 400; // until the first line, so that a start is seen at once
  const STEADY_MS = 1500;
  const SLOWEST_MS = 6000;
  const PATIENT_ROUNDS = 25; // quiet ones at full pace; after that ever slower
  const KEEP_CHARACTERS = 2000000; // a browser slows down long before a disk does

  const follow = (box) => {
    const pane = box.querySelector("[data-pane]");
    const toggle = box.querySelector("[data-toggle]");
    const note = box.querySelector("[data-note]");
    const skipped = box.querySelector("[data-skipped]");
    let offset = Number(box.dataset.offset);
    let ended = box.dataset.ended === "true";
    let following = true;
    let quiet = 0;
    let state = "";

    const atEnd = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight < 40;
    const toEnd = () => {
      pane.scrollTop = pane.scrollHeight;
    };
    const paint = () => {
      toggle.textContent = following ? toggle.dataset.pause : toggle.dataset.again;
      toggle.setAttribute("aria-pressed", String(following));
    };

    const add = (text) => {
      const stick = atEnd();
      pane.append(text);
      if (pane.textContent.length > KEEP_CHARACTERS) {
        pane.textContent = pane.textContent.slice(-KEEP_CHARACTERS / 2);
        skipped.hidden = false;
      }
      if (stick) toEnd();
    };

    const pace = () => {
      const base = pane.textContent ? STEADY_MS : QUICK_MS;
      return Math.min(SLOWEST_MS, base * 1.15 ** Math.max(0, quiet - PATIENT_ROUNDS));
    };

    // Milliseconds until the next question; null when there is nothing more to ask.
    const ask = async () => {
      const answer = await fetch(`${box.dataset.url}?offset=${offset}`, {
        headers: { Accept: "application/json" },
        credentials: "same-origin",
      });
      const chunk = await answer.json();
      note.textContent = chunk.note ?? chunk.message ?? "";
      if (!answer.ok) return answer.status === 401 || answer.status === 404 ? null : SLOWEST_MS;
      if (chunk.restarted) pane.textContent = "";
      if (chunk.skipped) skipped.hidden = false;
      if (chunk.text) add(chunk.text);
      quiet = chunk.text ? 0 : quiet + 1;
      offset = chunk.next_offset;
      const done = ended && !chunk.text;
      ended = chunk.ended;
      if (done) return null;
      return chunk.more ? 0 : pace();
    };

    const round = async () => {
      let pause = SLOWEST_MS;
      if (!following || document.hidden) pause = STEADY_MS;
      else {
        try {
          pause = await ask();
        } catch {
          note.textContent = box.dataset.lost;
        }
      }
      if (pause === null) toggle.hidden = true; // nothing more comes: nothing to pause
      else setTimeout(round, pause);
    };

    // A job that has just started will write soon: look at full pace again.
    document.addEventListener("htmx:after:swap", () => {
      const now = document.querySelector("#state .state")?.textContent ?? "";
      if (now !== state) quiet = 0;
      state = now;
    });
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
