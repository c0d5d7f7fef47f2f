// Runs the test command with faults planted in the code, one after another, and notes which tests
// notice them. It is a program of its own: it is copied into a judged tree and run there by node.
// A fault with `known` was tried in an earlier run of the same tests on the same code.
// What to do stands in the JSON file of its own name; what it saw it leaves as JUnit where the file
// `at` beside it says.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const began = Date.now();
const self = fileURLToPath(import.meta.url);
const here = dirname(self);
const root = dirname(here);
const plan = JSON.parse(readFileSync(self.replace(/mjs$/, "json"), "utf8"));
const deadline = began + plan.seconds * 1000;
const TEXT = 240;
const lines = [];
let limit = Math.max(2000, plan.seconds * 500);

function quoted(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f]/g, " ").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");
}

function plain(text) {
  const marks = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => marks[name]).replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(code));
}

function note(name, outcome, message) {
  const inner = outcome === "passed" ? "" : `<${outcome} message="${quoted(message)}"/>`;
  lines.push(`<testcase classname="${plan.nonce}" name="${quoted(name)}">${inner}</testcase>`);
}

function files(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((it) =>
    it.isDirectory() ? files(join(folder, it.name)) : [join(folder, it.name)],
  );
}

// By the name of each test: what it says where it failed, null where it passed.
function results(folder) {
  const found = new Map();
  for (const file of files(folder).filter((it) => it.endsWith(".xml"))) {
    const text = readFileSync(file, "utf8");
    for (const it of text.matchAll(/<testcase\b([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g)) {
      const name = plain((/\bname="([^"]*)"/.exec(it[1]) ?? ["", ""])[1]);
      const failure = /<(?:failure|error)\b([^>]*)>([\s\S]{0,2000})/.exec(it[3] ?? "");
      if (/<skipped\b/.test(it[3] ?? "") && !failure) continue;
      const said = failure && (/\bmessage="([^"]*)"/.exec(failure[1]) ?? ["", failure[2]])[1];
      found.set(name, failure ? plain(said).split("\n").find((line) => line.trim()) || "it fails" : (found.get(name) ?? null));
    }
  }
  return found;
}

// What the tests came to; null where they did not end in time.
function tried() {
  const out = mkdtempSync(join(tmpdir(), "r"));
  try {
    const ran = spawnSync("sh", ["-c", plan.command], {
      cwd: root,
      env: { ...process.env, OUT: out },
      stdio: "ignore",
      timeout: Math.max(1, Math.min(limit, deadline + 2000 - Date.now())),
      killSignal: "SIGKILL",
    });
    return ran.error ? null : results(out);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

function edited(text, fault) {
  const [line, column, endLine, endColumn] = fault.span;
  const rows = text.split("\n");
  const changed = rows[line - 1].slice(0, column) + Buffer.from(fault.new, "utf8").toString("latin1") + rows[endLine - 1].slice(endColumn);
  rows.splice(line - 1, endLine - line + 1, changed);
  return rows.join("\n");
}

function runs(path) {
  if (!/\.[cm]?js$/.test(path)) return true;
  return spawnSync(process.execPath, ["--check", path], { stdio: "ignore", timeout: 10000 }).status === 0;
}

// What a chosen test says of the fault: empty where none notices it, null where there was no time
// to know, undefined where the faulty text is no program.
function once(fault, chosen) {
  const path = join(root, fault.path);
  const before = readFileSync(path, "latin1");
  writeFileSync(path, edited(before, fault), "latin1");
  try {
    if (!runs(path)) return undefined;
    const seen = tried();
    if (seen === null) return null;
    const name = chosen.find((it) => seen.get(it) !== null);
    if (name === undefined) return "";
    return `${name} | ${seen.get(name) ?? "it is not run any more"}`.slice(0, TEXT);
  } finally {
    writeFileSync(path, before, "latin1");
  }
}

function measure() {
  const started = Date.now();
  const plainly = tried();
  limit = Math.max(2000, 3 * (Date.now() - started) + 1000);
  if (plainly === null) return note("trouble", "error", "the tests do not end in time");
  const titles = plan.tests.map((it) => it.split("::").at(-1));
  const green = [...plainly].filter(([, said]) => said === null).map(([name]) => name);
  const chosen = plan.support.length ? green : green.filter((name) => titles.some((it) => name.includes(it)));
  for (const name of chosen) note(`test ${name}`, "passed", "");
  const onBase = plan.side === "base";
  let counted = 0;
  for (const [number, fault] of plan.faults.entries()) {
    if (Date.now() > deadline || counted >= plan.enough) return;
    const seen = fault.known ? fault.known[1] : once(fault, chosen);
    if (seen === undefined) continue;
    const again = seen === "" && !onBase ? once(fault, chosen) : seen;
    if (seen === null || again === null || Boolean(again) !== Boolean(seen)) {
      note(String(number), "skipped", "it did not end in time, or two runs differ");
      continue;
    }
    counted += Boolean(seen) === onBase ? 1 : 0;
    note(String(number), seen ? "failure" : "passed", seen);
  }
  note("all", "passed", "");
}

try {
  measure();
} catch (error) {
  note("trouble", "error", String(error));
}
const at = readFileSync(join(here, "at"), "utf8");
writeFileSync(join(at, `${plan.nonce}.xml`), `<testsuite name="${plan.nonce}">${lines.join("")}</testsuite>`);
