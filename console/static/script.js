// Fetches the page again every two seconds and patches its main part, so that focus,
// selection and what is being typed stay. Pages that wait for a decision are not
// refreshed. Everything works without this script.
"use strict";
(() => {
  const every = 2000;
  const main = document.getElementById("main");
  const status = document.getElementById("status");
  const live = document.body.hasAttribute("data-live");
  let paused = false;
  let failedSince = null;

  // What the reader has changed: a box that was opened, a value that was typed.
  const readers = { DETAILS: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"] };

  function sameKind(a, b) {
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
  }

  function patchAttributes(now, next) {
    const kept = readers[now.nodeName] || [];
    for (const a of [...now.attributes]) {
      if (!next.hasAttribute(a.name) && !kept.includes(a.name)) now.removeAttribute(a.name);
    }
    for (const a of next.attributes) {
      if (now.getAttribute(a.name) !== a.value && !kept.includes(a.name)) now.setAttribute(a.name, a.value);
    }
  }

  function patch(now, next) {
    if (now.nodeType !== Node.ELEMENT_NODE) {
      if (now.data !== next.data) now.data = next.data;
      return;
    }
    if (now.hasAttribute("data-added")) return;
    patchAttributes(now, next);
    const old = [...now.childNodes].filter((n) => !(n.dataset && "added" in n.dataset));
    const fresh = [...next.childNodes];
    fresh.forEach((node, i) => {
      if (i >= old.length) now.append(node);
      else if (sameKind(old[i], node)) patch(old[i], node);
      else old[i].replaceWith(node);
    });
    old.slice(fresh.length).forEach((node) => node.remove());
  }

  function say(text) {
    if (status.textContent !== text) status.textContent = text;
  }

  async function refresh() {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = page.getElementById("main");
      if (!next) throw new Error("no page");
      if (paused) return;
      patch(main, next);
      const footer = page.querySelector("footer");
      if (footer) patch(document.querySelector("footer"), footer);
      failedSince = null;
      say("Refreshes every 2 seconds");
    } catch {
      failedSince = failedSince || new Date().toISOString().slice(11, 19);
      say("The console does not answer since " + failedSince + " UTC");
      status.classList.add("failed");
    }
    status.classList.toggle("failed", failedSince !== null);
  }

  async function loop() {
    if (!paused && !document.hidden) await refresh();
    setTimeout(loop, every);
  }

  function button(text, act) {
    const b = document.createElement("button");
    b.type = "button";
    b.className = "small";
    b.dataset.added = "";
    b.textContent = text;
    b.addEventListener("click", () => act(b));
    return b;
  }

  if (live) {
    status.after(button("Pause", (b) => {
      paused = !paused;
      b.textContent = paused ? "Go on" : "Pause";
      say(paused ? "Paused" : "Refreshes every 2 seconds");
    }));
    say("Refreshes every 2 seconds");
    setTimeout(loop, every);
  }

  for (const sql of document.querySelectorAll("pre.sql")) {
    if (!navigator.clipboard) break;
    sql.after(button("Copy", async (b) => {
      await navigator.clipboard.writeText(sql.textContent);
      b.textContent = "Copied";
    }));
  }
})();
