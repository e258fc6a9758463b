// The viewer of trajectories: a step's part of the page is unpacked when it is looked at. Arrow keys move (left and
// right: rounds; up and down: trajectories; page up and down: steps), and the place is in the address, to be linked to.
const unpacked = new Map();
function unpack(id) {
  if (!unpacked.has(id)) {
    unpacked.set(id, (async () => {
      const text = atob(document.getElementById(id).textContent);
      const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      return JSON.parse(await new Response(stream).text());
    })());
  }
  return unpacked.get(id);
}
async function sourceText(place) {
  if (place < 0) return "";
  const part = await unpack("sources" + Math.floor(place / data.sources_a_part));
  return part[place % data.sources_a_part];
}

// The lines of b against a: [" ", "-" or "+", line], by Myers' algorithm; kernels are short.
function difference(a, b) {
  let begin = 0, endA = a.length, endB = b.length;
  while (begin < endA && begin < endB && a[begin] === b[begin]) ++begin;
  while (endA > begin && endB > begin && a[endA - 1] === b[endB - 1]) { --endA; --endB; }
  const n = endA - begin, m = endB - begin, furthest = [], at = { 1: 0 };
  let d = 0;
  search: for (; d <= n + m; ++d) {
    furthest.push({ ...at });
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && at[k - 1] < at[k + 1]) ? at[k + 1] : at[k - 1] + 1;
      while (x < n && x - k < m && a[begin + x] === b[begin + x - k]) ++x;
      at[k] = x;
      if (x >= n && x - k >= m) break search;
    }
  }
  const middle = [];
  let x = n, y = m;
  for (; d > 0; --d) {
    const before = furthest[d], k = x - y;
    const from = k === -d || (k !== d && before[k - 1] < before[k + 1]) ? k + 1 : k - 1;
    const x0 = before[from], y0 = x0 - from;
    while (x > x0 && y > y0 && x > 0 && y > 0 && a[begin + x - 1] === b[begin + y - 1]) { middle.push([" ", a[begin + --x]]); --y; }
    if (from === k + 1) middle.push(["+", b[begin + --y]]);
    else middle.push(["-", a[begin + --x]]);
  }
  while (x > 0) { middle.push([" ", a[begin + --x]]); }
  return [...a.slice(0, begin).map((line) => [" ", line]), ...middle.reverse(), ...a.slice(endA).map((line) => [" ", line])];
}
function diffNode(before, after) {
  const lines = difference(before.split("\n"), after.split("\n")), near = lines.map(() => false);
  lines.forEach(([kind], i) => { if (kind !== " ") for (let k = Math.max(0, i - 3); k <= Math.min(lines.length - 1, i + 3); ++k) near[k] = true; });
  if (!near.includes(true)) return el("p", { class: "quiet" }, "The kernel is the current one, unchanged.");
  const node = el("pre", { class: "code diff" });
  let skipped = 0;
  lines.forEach(([kind, line], i) => {
    if (!near[i]) { ++skipped; return; }
    if (skipped) node.append(el("div", { class: "skipped" }, `... ${skipped} lines alike`));
    skipped = 0;
    node.append(el("div", { class: kind === "+" ? "added" : kind === "-" ? "removed" : null }, kind + " " + line));
  });
  if (skipped) node.append(el("div", { class: "skipped" }, `... ${skipped} lines alike`));
  return node;
}

// Each token on a ground that is the stronger, the less likely it was.
function tokenNode(run, round) {
  if (!round.logprobs.length) return null;
  const node = el("pre", { class: "tokens" });
  round.ids.forEach((id, i) => {
    const logprob = round.logprobs[i], text = run.samples.tokens[id];
    const strength = Math.round(Math.min(1, -logprob / 5) * 60);
    node.append(el("span", { style: `background:color-mix(in srgb, var(--s1) ${strength}%, transparent)`, title: `token ${id}, log-probability ${logprob}, probability ${percent(Math.exp(logprob))}` }, text === undefined ? `[${id}]` : text), text === undefined ? " " : "");
  });
  const total = round.logprobs.reduce((a, b) => a + b, 0);
  return [el("h3", {}, "Log-probabilities by token"), node,
    el("p", { class: "quiet" }, `${round.ids.length} tokens, log-probability ${number(total)} in all; the darker, the less likely. Point at one for its number.`),
    el("details", {}, el("summary", {}, "As a table"), table([["token"], ["id", 1], ["log-probability", 1], ["probability", 1]], round.ids.map((id, i) => [el("code", {}, JSON.stringify(run.samples.tokens[id] || "")), String(id), number(round.logprobs[i], 4), percent(Math.exp(round.logprobs[i]))])))];
}

function viewer() {
  if (!data.runs.some((run) => run.samples && run.samples.steps.length)) return null;
  const state = { run: 0, of: "train", step: null, trajectory: 0, round: 0 };
  const grid = el("div", { class: "grid" }), shown = el("div", { "aria-live": "polite" });
  const stepsOf = () => data.runs[state.run].samples.steps.filter(([purpose]) => purpose === state.of);
  const runChoice = el("select", { "aria-label": "run", onchange: () => { state.run = Number(runChoice.value); state.step = null; go(true); } }, data.runs.map((run, i) => el("option", { value: i }, run.folder)));
  const ofChoice = el("select", { "aria-label": "rounds of", onchange: () => { state.of = ofChoice.value; state.step = null; go(true); } });
  const stepChoice = el("select", { "aria-label": "step", onchange: () => { state.step = Number(stepChoice.value); state.trajectory = 0; state.round = 0; go(true); } });
  const problemChoice = el("select", { "aria-label": "problem", onchange: () => go(false) });
  const move = (by) => { const steps = stepsOf(), at = steps.findIndex(([, step]) => step === state.step) + by; if (steps[at]) { state.step = steps[at][1]; state.trajectory = 0; state.round = 0; go(true); } };
  const button = (text, label, by) => el("button", { "aria-label": label, onclick: () => move(by) }, text);
  let turn = 0;

  async function go(write) {
    const mine = ++turn, run = data.runs[state.run];
    const purposes = [...new Set(run.samples.steps.map(([purpose]) => purpose))];
    if (!purposes.includes(state.of)) state.of = purposes.includes("train") ? "train" : purposes[0];
    ofChoice.replaceChildren(...purposes.map((name) => el("option", { value: name }, { train: "training", heldout: "held-out", demonstration: "demonstrations" }[name] || name)));
    const steps = stepsOf();
    if (!steps.some(([, step]) => step === state.step)) state.step = steps[steps.length - 1][1];
    stepChoice.replaceChildren(...steps.map(([, step]) => el("option", { value: step }, "step " + step)));
    runChoice.value = state.run; ofChoice.value = state.of; stepChoice.value = state.step;
    const { trajectories } = await unpack("step" + steps.find(([, step]) => step === state.step)[2]);
    if (mine !== turn) return;
    const wanted = problemChoice.value, names = [...new Set(trajectories.map((t) => t.problem))].sort();
    problemChoice.replaceChildren(el("option", { value: "" }, "all problems"), ...names.map((name) => el("option", { value: name }, name)));
    problemChoice.value = names.includes(wanted) ? wanted : "";
    const listed = trajectories.filter((t) => !problemChoice.value || t.problem === problemChoice.value);
    let trajectory = listed.find((t) => t.trajectory === state.trajectory) || listed[0];
    state.trajectory = trajectory.trajectory;
    const round = trajectory.rounds.find((r) => r.round === state.round) || trajectory.rounds[0];
    state.round = round.round;
    grid.replaceChildren(table([["trajectory", 1], ["problem"], ["rounds: reward"]], listed.map((t) => [String(t.trajectory), t.problem + (t.prompted_as ? ` (prompted as ${t.prompted_as})` : ""),
      el("span", {}, t.rounds.map((r) => el("button", { "aria-pressed": t === trajectory && r === round ? "true" : "false", title: r.suggestion, "aria-label": `trajectory ${t.trajectory}, round ${r.round}, reward ${number(r.reward)}`, onclick: () => { state.trajectory = t.trajectory; state.round = r.round; go(true); } }, number(r.reward, 2))), t.dropped ? el("span", { class: "quiet" }, " dropped: " + t.dropped) : null)])));
    const pressed = grid.querySelector("[aria-pressed=true]");
    if (pressed && write) { const inner = pressed.offsetTop - grid.offsetTop; if (inner < grid.scrollTop || inner > grid.scrollTop + grid.clientHeight - 30) grid.scrollTop = inner - 60; }
    await show(run, trajectory, round, mine);
    if (write) history.replaceState(null, "", `#run=${state.run}&of=${state.of}&step=${state.step}&trajectory=${state.trajectory}&round=${state.round}`);
  }

  async function show(run, trajectory, round, mine) {
    const [a, b, c] = await Promise.all(round.code.map(sourceText));
    if (mine !== turn) return;
    const fill = (text) => text.replaceAll("\u0001A\u0001", () => a).replaceAll("\u0001B\u0001", () => b);
    const good = round.verdict === "correct";
    const chip = el("span", { class: "chip " + (good ? "good" : "bad") }, round.verdict || round.outcome.replaceAll("_", " "));
    const facts = [["reward", number(round.reward, 4)], ...Object.entries(round.parts).map(([name, value]) => ["\u00a0\u00a0" + name, number(value, 4)]),
      ["leaving it as it was", number(round.idle_reward, 4)], ["return", number(round.return, 4)], ["advantage", number(round.advantage, 4)],
      ["speedup", round.speedup ? times(round.speedup) : "-"], ["time", round.seconds ? seconds(round.seconds[0]) + (round.seconds[2] > round.seconds[1] ? ` [${seconds(round.seconds[1])}, ${seconds(round.seconds[2])}]` : "") : "-"],
      ["reference", seconds(trajectory.baseline)], ["cost", round.cost ? "$" + number(round.cost) : "-"]];
    shown.replaceChildren(
      el("p", {}, chip, ` ${trajectory.problem}, round ${round.round} of trajectory ${trajectory.trajectory}` + (round.truncated ? "; the suggestion was cut off for its length" : "")),
      el("div", { class: "columns" },
        el("div", {}, el("h3", {}, "Suggestion"), el("pre", {}, round.suggestion), ...(tokenNode(run, round) || []).filter(Boolean),
          round.summary || round.message ? el("p", {}, el("b", {}, "Coder: "), round.summary, round.summary && round.message ? "; " : "", round.message) : null,
          el("h3", {}, "The coder's kernel against the current one"), c ? diffNode(b, c) : el("p", { class: "quiet" }, "No kernel."),
          round.diagnosis ? [el("h3", {}, "What the evaluator said"), el("pre", {}, round.diagnosis)] : null,
          el("details", {}, el("summary", {}, "Prompt"), round.prompt.map(([role, content]) => [el("h3", {}, role), el("pre", {}, fill(content))]).flat()),
          ...[["Previous kernel (A)", a], ["Current kernel (B)", b], ["The coder's kernel (C)", c]].filter(([, text]) => text).map(([title, text]) => el("details", {}, el("summary", {}, title), el("pre", { class: "code" }, text)))),
        el("div", {}, table([["", 0], ["", 1]], facts))));
  }

  function readAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (!wanted.has("step")) return false;
    for (const key of ["run", "step", "trajectory", "round"]) if (wanted.has(key)) state[key] = Number(wanted.get(key)) || 0;
    state.of = wanted.get("of") || "train";
    if (!data.runs[state.run] || !data.runs[state.run].samples) state.run = 0;
    problemChoice.value = "";
    return true;
  }
  const section = el("div", { class: "interactive", tabindex: "-1" },
    el("div", { class: "controls" }, data.runs.length > 1 ? runChoice : null, ofChoice, button("\u2039", "step before", -1), stepChoice, button("\u203a", "next step", 1), problemChoice,
      el("span", { class: "quiet" }, "Keys: \u2190 \u2192 rounds, \u2191 \u2193 trajectories, Page up/down steps")),
    grid, shown);
  section.addEventListener("keydown", (event) => {
    if (["SELECT", "INPUT"].includes(event.target.tagName) || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "PageUp" || event.key === "PageDown") { move(event.key === "PageUp" ? -1 : 1); event.preventDefault(); return; }
    const buttons = [...grid.querySelectorAll("button")], at = buttons.findIndex((one) => one.getAttribute("aria-pressed") === "true");
    const row = (i) => buttons[i].closest("tr");
    let next = at;
    if (event.key === "ArrowRight") next = at + 1;
    else if (event.key === "ArrowLeft") next = at - 1;
    else if (event.key === "ArrowDown") { while (buttons[next] && row(next) === row(at)) ++next; }
    else if (event.key === "ArrowUp") { while (buttons[next] && row(next) === row(at)) --next; }
    else return;
    event.preventDefault();
    if (buttons[next]) { buttons[next].click(); section.focus({ preventScroll: true }); }
  });
  window.addEventListener("hashchange", () => { if (readAddress()) { go(false); section.scrollIntoView(); section.focus({ preventScroll: true }); } });
  if (readAddress()) setTimeout(() => section.scrollIntoView());
  state.run = Math.max(0, data.runs[state.run].samples ? state.run : data.runs.findIndex((run) => run.samples));
  go(false);
  return [section];
}
