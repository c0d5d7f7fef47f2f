// Keeps a page fresh, and gives it keys. Every page works without this.
"use strict";
(() => {
  const body = document.body;
  const page = body.dataset.page;
  const $ = (what, from = document) => from.querySelector(what);
  const $$ = (what, from = document) => [...from.querySelectorAll(what)];
  const byId = (id) => document.getElementById(id);

  // --- how long ago ---------------------------------------------------------------------------
  const ago = (then) => {
    const s = Math.max(0, Date.now() / 1000 - then);
    if (s < 60) return Math.floor(s) + "s";
    if (s < 3600) return Math.floor(s / 60) + "m";
    if (s < 172800) return Math.floor(s / 3600) + "h";
    return Math.floor(s / 86400) + "d";
  };
  const age = () => {
    for (const it of $$("[data-ago]")) {
      const word = it.lastChild;
      if (word && word.nodeType === 3) word.data = ago(Number(it.dataset.ago));
    }
  };
  setInterval(age, 15000);

  // --- parts of other pages -------------------------------------------------------------------
  const load = async (url, how) => {
    const answer = await fetch(url, { credentials: "same-origin", ...how });
    const text = await answer.text();
    return { answer, page: new DOMParser().parseFromString(text, "text/html") };
  };
  const made = (html) => {
    const box = document.createElement("template");
    box.innerHTML = html;
    return box.content.firstElementChild;
  };
  const busy = () => {
    const at = document.activeElement;
    if (at && at.matches("textarea, select, input:not([type=search])")) return true;
    return $$("main textarea").some((it) => it.value !== it.defaultValue);
  };

  // Takes over what changed; what is open stays open, what has the focus keeps it.
  const take = (fresh) => {
    const main = byId("main");
    const next = fresh.getElementById("main");
    if (!next) return;
    const open = new Set($$("details[open][id]", main).map((it) => it.id));
    const focus = document.activeElement && document.activeElement.id;
    for (const it of $$("details[id]", next)) if (open.has(it.id)) it.open = true;
    main.replaceChildren(...next.childNodes);
    const calls = fresh.getElementById("calls");
    if (calls) byId("calls").replaceWith(calls);
    if (focus && byId(focus)) byId(focus).focus({ preventScroll: true });
    prepare();
  };
  let due = 0;
  const refresh = (wait = 250) => {
    clearTimeout(due);
    due = setTimeout(async () => {
      if (busy()) return refresh(2000);
      const { answer, page: fresh } = await load(location.href);
      if (answer.ok) take(fresh);
    }, wait);
  };

  // --- the feed -------------------------------------------------------------------------------
  const lost = (words) => {
    const bar = byId("lost");
    bar.hidden = !words;
    bar.textContent = words || "";
  };
  const showCalls = (count) => {
    const it = byId("calls");
    it.classList.toggle("some", count > 0);
    const number = document.createElement("b");
    number.textContent = count;
    it.replaceChildren(...(count ? [number, count === 1 ? " needs you" : " need you"] : ["all clear"]));
    document.title = document.title.replace(/^\(\d+\) /, "");
    if (count) document.title = `(${count}) ${document.title}`;
  };
  const showRow = (it) => {
    const here = byId("row-" + it.task);
    const rows = byId("rows");
    const mine = !body.dataset.project || body.dataset.project === it.project;
    if (!it.row) return here ? here.remove() : undefined;
    const fresh = made(it.row);
    fresh.classList.add("fresh");
    if (here) {
      const focused = here.contains(document.activeElement);
      here.replaceWith(fresh);
      if (focused) $("a", fresh).focus({ preventScroll: true });
    } else if (rows && mine && !location.search.match(/[?&](q|status|after)=/)) {
      rows.prepend(fresh);
    } else if (!rows && mine) refresh();
  };
  const showNeed = (it) => {
    const list = byId("needs");
    if (!list) return;
    for (const old of $$(".need", list)) {
      if (old.dataset.key.startsWith(it.task + ":") && old.dataset.key !== it.need_key) old.remove();
    }
    if (it.need) {
      const fresh = made(it.need);
      const old = byId(fresh.id);
      if (old && old.contains(document.activeElement)) return;
      $(".empty", list)?.remove();
      old ? old.replaceWith(fresh) : list.append(fresh);
    } else if (!$(".need", list) && !$(".empty", list)) refresh();
  };
  const happened = (it) => {
    if (typeof it.calls === "number") showCalls(it.calls);
    if (page === "board") {
      showRow(it);
      showNeed(it);
    } else if (page === "review") {
      if (it.task === body.dataset.task && it.patch && it.patch !== $("main").firstElementChild.dataset.patch) {
        lost("This change has moved on. Load the page again to see what it is now.");
      }
    } else if (page === "events" || (it.task === body.dataset.task && page !== "new")) refresh();
    else if (page === "train" && it.project === body.dataset.project) refresh();
  };
  let source;
  const listen = () => {
    source = new EventSource("/feed?since=" + (body.dataset.seq || ""));
    source.addEventListener("event", (e) => {
      body.dataset.seq = e.lastEventId;
      happened(JSON.parse(e.data));
    });
    source.addEventListener("live", (e) => {
      const it = JSON.parse(e.data);
      if (it.train && page === "train") refresh();
      if (it.output && page === "output") refresh(0);
    });
    source.addEventListener("resync", () => refresh());
    source.addEventListener("lost", (e) => lost(JSON.parse(e.data).why));
    source.addEventListener("back", () => { lost(""); refresh(); });
    source.onopen = () => lost("");
    source.onerror = () => lost("The board is not reached; trying again. What you see may be old.");
  };
  if (body.dataset.seq !== undefined) {
    listen();
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (e) => e.persisted && (listen(), refresh()));
  }

  if (page === "output" && $(".badge.good")) setInterval(() => $(".badge.good") && refresh(0), 3000);

  // --- the review -----------------------------------------------------------------------------
  const fileOf = (it) => it.closest("details.file");
  const swapFile = (file, fresh) => {
    const next = fresh.getElementById(file.id);
    if (!next) return;
    next.open = true;
    file.replaceWith(next);
    const bar = fresh.getElementById("act");
    if (bar && byId("act")) byId("act").replaceWith(bar);
    prepare();
    return next;
  };
  const part = (url, file) => url.replace("?", "?part=1&file=" + file.id.slice(2) + "&");
  const openForm = async (link) => {
    const file = fileOf(link);
    const next = swapFile(file, (await load(part(link.href, file))).page);
    if (next) $("textarea", next)?.focus();
  };
  document.addEventListener("click", (e) => {
    const link = e.target.closest(".l > a");
    if (!link || e.metaKey || e.ctrlKey) return;
    e.preventDefault();
    openForm(link);
  });
  document.addEventListener("submit", async (e) => {
    const form = e.target;
    const file = form.matches("form[data-draft]") && fileOf(form);
    if (!file) return;
    e.preventDefault();
    const data = new URLSearchParams(new FormData(form, e.submitter));
    data.set("part", "1");
    const { answer, page: fresh } = await load(form.action, { method: "POST", body: data });
    if (answer.ok) swapFile(file, fresh);
    else take(fresh);
  });
  // A file that is opened is loaded. When that fails, its link is still there, and so is its next opening.
  const LAZY = "details.file[data-src]";
  const fill = async (file) => {
    const url = file.dataset.src;
    delete file.dataset.src;
    const got = await load(part(url, file)).catch(() => null);
    if (!got || !swapFile(file, got.page)) file.dataset.src = url;
  };
  document.addEventListener("toggle", (e) => {
    if (e.target.matches?.(LAZY) && e.target.open) fill(e.target);
  }, true);
  const viewed = (name) => `viewed ${body.dataset.task} ${$("[data-patch]")?.dataset.patch} ${name}`;
  document.addEventListener("change", (e) => {
    if (!e.target.matches("[data-viewed]")) return;
    const name = viewed(e.target.dataset.viewed);
    e.target.checked ? localStorage.setItem(name, "1") : localStorage.removeItem(name);
    fileOf(e.target).open = !e.target.checked;
  });
  document.addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && (e.key === "s" || e.key === "Enter") && e.target.matches("textarea")) {
      e.preventDefault();
      e.target.form.requestSubmit();
    }
  });

  // --- keys -----------------------------------------------------------------------------------
  const places = () => $$(".need h3 a, .task .what a, .list a[data-key], .l > a")
    .filter((it) => it.offsetParent !== null);
  const step = (by, among = places()) => {
    const at = among.indexOf(document.activeElement);
    const next = among[at < 0 ? (by > 0 ? 0 : among.length - 1) : at + by];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  };
  const go = (where) => { if (where) location.href = where; };
  const taskHere = () => {
    const row = document.activeElement?.closest("[data-id], .need");
    return row ? row.dataset.id || row.dataset.key.split(":")[0] : body.dataset.task;
  };
  const toTask = (rest) => { const id = taskHere(); if (id) go("/t/" + encodeURIComponent(id) + rest); };
  let armed = 0;
  const approve = () => {
    if (page !== "review") return toTask("/review");
    const button = byId("approve");
    if (!button) return;
    if (Date.now() - armed < 5000) return button.click();
    armed = Date.now();
    button.focus();
    lost("Press a once more to approve this change.");
    setTimeout(() => lost(""), 5000);
  };
  const reject = () => {
    const sheet = byId("send-back");
    if (!sheet) return toTask("/review#send-back");
    sheet.open = true;
    $("textarea", sheet).focus();
  };
  const comment = () => {
    if (page !== "review") return go("/new");
    const at = document.activeElement;
    if (at?.matches(".l > a")) openForm(at);
  };
  const views = () => $$(".top nav a");
  const KEYS = {
    j: () => step(1), k: () => step(-1), n: () => step(1, $$(".need h3 a")),
    N: () => step(-1, $$(".need h3 a")), a: approve, m: approve, r: reject, c: comment,
    "]": () => step(1, $$(".file > summary")), "[": () => step(-1, $$(".file > summary")),
    w: () => page === "task" ? byId("why")?.scrollIntoView() : toTask("#why"),
    v: () => page === "task" ? byId("taskmd")?.scrollIntoView() : toTask("#taskmd"),
    t: () => page === "task" ? go($("a[data-output]")?.href) : toTask("/output"),
    D: () => toTask("/review"), "?": () => byId("keys").showModal(),
    "/": () => (byId("q").offsetParent ? byId("q") : $("input[type=search]")).focus(),
    Escape: () => page !== "board" && history.back(),
    1: () => go("/"), 2: () => go("/#needs"), 3: () => go(views()[1]?.href),
    4: () => go(views()[2]?.href), 5: () => go(views()[3]?.href),
  };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || $("dialog[open]")) return;
    if (e.target.matches("input, textarea, select")) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    const does = KEYS[e.key];
    if (!does) return;
    e.preventDefault();
    does();
  });
  $(".keys-hint").hidden = !matchMedia("(hover: hover)").matches;

  // --- what a page needs once it is there -----------------------------------------------------
  const prepare = () => {
    for (const box of $$("[data-viewed]")) {
      box.closest("label").hidden = false;
      if (localStorage.getItem(viewed(box.dataset.viewed)) && !box.checked) {
        box.checked = true;
        fileOf(box).open = false;
      }
    }
    if (location.hash === "#send-back") reject();
    age();
  };
  prepare();
  $$(LAZY + "[open]").forEach(fill); // opened before this program was there
})();
