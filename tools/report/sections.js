// The sections of the page but the viewer: each returns its elements, or null where the runs have nothing to show.
const data = JSON.parse(document.getElementById("data").textContent);
const colors = data.groups.map((_, i) => `var(--s${i % 8})`);
const runsOf = (group) => group.runs.map((i) => data.runs[i]);
const mean = (values) => { const known = values.filter((v) => v !== null && v !== undefined); return known.length ? known.reduce((a, b) => a + b) / known.length : null; };
const geometric = (values) => { const known = values.filter((v) => v > 0); return known.length ? Math.exp(mean(known.map(Math.log))) : null; };
const seedsOf = (group) => [...new Set(runsOf(group).map((run) => run.seed))].map((seed) => runsOf(group).filter((run) => run.seed === seed));
const groupLabel = (group) => group.label + (group.seeds ? ` (${group.seeds})` : "");
const modelled = data.runs.some((run) => run.figures.problems.some((problem) => problem.modelled));
const curveOf = (run, name) => run.figures.curves[name] || [];

function headline() {
  const nodes = [];
  const first = data.groups[0];
  const sources = [...new Set(data.runs.flatMap((run) => run.figures.problems.map((p) => p.time_source)))].filter(Boolean);
  nodes.push(el("p", { class: "quiet" }, data.runs.map((run) => `${run.folder}: seed ${run.seed}, ${run.steps} steps${run.finished ? "" : ", not finished"}`).join("; ")));
  if (sources.length) nodes.push(el("p", {}, (modelled ? "Times are MODELLED, no device ran: " : "Times are measured: ") + sources.join("; ")));
  if (data.comparison.words.length) nodes.push(el("h3", {}, "Verdict (95% intervals)"), el("ul", {}, data.comparison.words.map((line) => el("li", {}, line))));
  if (data.comparison.notes.length) nodes.push(el("ul", { class: "quiet" }, data.comparison.notes.map((line) => el("li", {}, line))));
  const value = (group, name) => mean(seedsOf(group).map((runs) => mean(runs.map((run) => run.values[name]))));
  const speedup = (group, name) => geometric(seedsOf(group).map((runs) => geometric(runs.map((run) => run.values[name]))));
  const heldoutBest = data.groups.every((group) => speedup(group, "heldout_best") !== null);
  const tile = (text, label) => el("div", { class: "tile" }, el("b", {}, text), el("span", {}, label));
  if (data.groups.length === 1) {
    nodes.push(el("div", { class: "tiles" },
      tile(`${number(value(first, "reward_first"))} \u2192 ${number(value(first, "reward"))}`, "mean reward, first to last tenth of the steps"),
      heldoutBest ? tile(times(speedup(first, "heldout_best")), "best held-out speedup by problem (geometric mean)") : null,
      tile(times(speedup(first, "speedup")), "best speedup of a trajectory, last tenth (geometric mean)"),
      tile(times(speedup(first, "verified_best")), "best verified speedup by problem (geometric mean)"),
      tile(percent(value(first, "correct")), "rounds with a correct kernel, last tenth"),
      value(first, "heldout_reward") === null ? null : tile(number(value(first, "heldout_reward")), "held-out reward, last measurement"),
      tile("$" + number(value(first, "cost") || 0), "cost of the coder"),
      tile(duration(value(first, "seconds")), "wall clock in steps (depends on the cache)" + (first.runs.length > 1 ? ", a run" : ""))));
  } else {
    const own = data.comparison.same_reward ? "" : " (own reward: not comparable)";
    nodes.push(table([["configuration"], ["reward, first tenth" + own, 1], ["last tenth" + own, 1], ["best speedup, last tenth", 1], [heldoutBest ? "held-out, by problem" : "verified, by problem", 1], ["correct, last tenth", 1], ["held-out reward" + own, 1], ["cost", 1], ["wall clock (depends on the cache)", 1]],
      data.groups.map((group, i) => [el("span", { class: "legend" }, el("span", {}, el("i", { style: "background:" + colors[i] }), groupLabel(group))),
        number(value(group, "reward_first")), number(value(group, "reward")), times(speedup(group, "speedup")), times(speedup(group, heldoutBest ? "heldout_best" : "verified_best")), percent(value(group, "correct")),
        number(value(group, "heldout_reward")), "$" + number(value(group, "cost") || 0), duration(value(group, "seconds"))])));
    const keys = Object.entries(data.comparison.differences);
    if (keys.length) {
      nodes.push(el("h3", {}, "What differs"), table([["key"], ...data.groups.map((group) => [group.label])],
        keys.map(([key, values]) => [el("code", {}, key), ...values.map((text) => el("code", {}, text.length > 120 ? text.slice(0, 117) + "..." : text))])));
    }
  }
  return nodes;
}

function learning() {
  const series = (name, of = () => true) => data.groups.map((group, i) => ({ label: group.label, color: colors[i], runs: runsOf(group).map((run) => curveOf(run, name)) })).filter((_, i) => of(i));
  // Rewards of different scales have an axis each.
  const scaleOf = (i) => JSON.stringify(Object.entries(data.comparison.differences).filter(([key]) => key.startsWith("reward.")).map(([, values]) => values[i]));
  const scales = [...new Set(data.groups.map((_, i) => scaleOf(i)))];
  const ofRewards = (title, name) => scales.map((scale) => {
    const of = (i) => scaleOf(i) === scale;
    return curves(title + (scales.length > 1 ? ` (${data.groups.filter((_, i) => of(i)).map((group) => group.label).join(", ")})` : ""), series(name, of));
  });
  const problems = [...new Set(data.runs.flatMap((run) => Object.keys(run.figures.curves)))].filter((name) => name.startsWith("reward/problem/")).sort();
  const byProblem = problems.length < 2 || problems.length > 40 ? [] : problems.flatMap((name) => ofRewards(name.slice("reward/problem/".length), name)).filter(Boolean);
  const figures = [...ofRewards("Reward", "reward"), ...ofRewards("Held-out reward", "heldout/reward"), ...[
    ["Correct rate", "kernel/correct_rate", percent],
    ["Speedup of correct kernels (geometric mean)", "kernel/speedup_geomean", times], ["Held-out best speedup", "heldout/best_speedup_geomean", times],
    ["KL from the reference policy", "kl", undefined, true], ["Entropy of the tokens", "entropy"], ["Tokens of a suggestion", "completions/mean_length"],
    ["Share of the favourite suggestion", "policy/favourite_share", percent], ["Loss", "loss", undefined, true], ["Gradient norm", "grad_norm", undefined, true], ["Learning rate", "learning_rate"],
  ].map(([title, name, text, byMedian]) => curves(title, series(name), text, byMedian))].filter(Boolean);
  if (!figures.length) return null;
  const stagesOf = (run) => run.figures.stages.map(([name, step]) => `${name} from step ${step}`).join(", ");
  const stages = [...new Set(data.runs.map(stagesOf))].filter(Boolean);
  const told = stages.length > 1 ? "Stages: " + stages.map((text) => `${text} (${data.runs.filter((run) => stagesOf(run) === text).map((run) => run.folder).join(", ")})`).join("; ") + "."
    : data.runs.some((run) => run.figures.stages.length > 1) ? `Stages: ${stages[0]}.` : "";
  const rewards = data.runs.flatMap((run) => [...new Set((run.resumed || []).filter((change) => /^reward(\.|$)/.test(change.key)).map((change) => change.after_step))]
    .map((step) => ` ${run.folder} has another reward after step ${step}: its rewards before and after it have different scales.`)).join("");
  return [data.groups.length > 1 ? legend(data.groups.map((group, i) => ({ label: groupLabel(group), color: colors[i] }))) : null,
    el("p", { class: "quiet" }, "By step. Lines are moving averages over a twentieth of the steps (of KL, loss and gradient norm, moving medians)" + (data.groups.some((g) => g.runs.length > 1) ? ", the mean over runs; bands reach from the least to the most of the runs" : "; the faint line is each step") + ". " + told + rewards),
    el("div", { class: "charts" }, figures),
    ...(byProblem.length ? [el("h3", {}, "Reward by problem"), el("p", { class: "quiet" }, "A step draws some of the problems: where its reward falls and no curve here does, it drew harder ones."), el("div", { class: "charts" }, byProblem)] : [])];
}

function outcomes() {
  const figures = [];
  let kinds = [];
  data.groups.forEach((group) => {
    const sums = new Map();
    for (const run of runsOf(group)) {
      kinds = run.figures.outcomes.kinds;
      for (const [step, ...counts] of run.figures.outcomes.steps) sums.set(step, counts.map((count, i) => count + (sums.get(step) || [])[i] || count));
    }
    const steps = [...sums.keys()].sort((a, b) => a - b), size = Math.max(1, Math.ceil(steps.length / 60)), xs = [], rows = [];
    for (let i = 0; i < steps.length; i += size) {
      const part = steps.slice(i, i + size);
      xs.push(part[0]);
      rows.push(kinds.map((_, k) => part.reduce((sum, step) => sum + sums.get(step)[k], 0)));
    }
    figures.push(shares(groupLabel(group), xs, kinds.map((label, k) => ({ label, color: `var(--k${k})`, values: rows.map((row) => row[k]) }))));
  });
  const drawn = figures.filter(Boolean);
  if (!drawn.length) return null;
  return [legend(kinds.map((label, k) => ({ label, color: `var(--k${k})` }))), el("p", { class: "quiet" }, "Shares of the training rounds, by step."), el("div", { class: "charts" }, drawn)];
}

const short = (text) => (text.length > 100 ? text.slice(0, 97) + "..." : text);
const named = (row) => el("span", { title: row.label }, short(row.label) || "(empty)");
function suggestions() {
  return data.groups.map((group, g) => {
    const runs = runsOf(group), labels = new Map();
    for (const run of runs) {
      for (const row of run.figures.suggestions) {
        const sum = labels.get(row.label) || { ...row, count: 0, windows: row.windows.map(() => 0), rewards: 0, applieds: 0, corrects: 0, logs: 0, advantages: 0, known: 0 };
        sum.count += row.count; sum.rewards += row.reward * row.count; sum.applieds += row.applied * row.count; sum.summary = sum.summary || row.summary; sum.corrects += row.correct * row.count;
        if (row.speedup) sum.logs += Math.log(row.speedup) * row.correct * row.count;
        if (row.advantage !== null) { sum.advantages += row.advantage * row.count; sum.known += row.count; }
        row.windows.forEach((count, i) => { sum.windows[i] += count; });
        labels.set(row.label, sum);
      }
    }
    const rows = [...labels.values()].sort((a, b) => b.count - a.count);
    if (!rows.length) return [];
    const totals = runs[0].figures.windows.map((_, i) => runs.reduce((sum, run) => sum + run.figures.windows[i], 0));
    const used = totals.map((total, i) => [total, i]).filter(([total]) => total > 0).map(([, i]) => i);
    const [from, to] = runs[0].figures.rollout_steps, xs = used.map((i) => Math.round(from + (i * (to - from)) / Math.max(1, totals.length - 1)));
    const top = rows.slice(0, 8), total = totals.reduce((a, b) => a + b, 0);
    const layers = top.map((row, k) => ({ label: short(row.label) || "(empty)", color: `var(--s${k})`, values: used.map((i) => row.windows[i]) }));
    layers.push({ label: "others", color: "var(--line)", values: used.map((i) => totals[i] - top.reduce((sum, row) => sum + row.windows[i], 0)) });
    const share = (row, places) => places.reduce((sum, i) => sum + row.windows[i], 0) / (places.reduce((sum, i) => sum + totals[i], 0) || 1);
    const firsts = used.slice(0, 2), lasts = used.slice(-2);
    return [data.groups.length > 1 ? el("h3", {}, groupLabel(group)) : null, legend(layers),
      el("div", { class: "charts" }, shares("What is suggested, by step", xs, layers)),
      table([["suggestion"], ["applied, for example, as"], ["rounds", 1], ["first tenth", 1], ["last tenth", 1], ["applied", 1], ["mean reward", 1], ["correct", 1], ["speedup", 1], ["mean advantage", 1]],
        rows.slice(0, 20).map((row) => [named(row), el("span", { class: "quiet" }, short(row.summary) || "-"), `${row.count} (${percent(row.count / total)})`, percent(share(row, firsts)), percent(share(row, lasts)), percent(row.applieds / row.count),
          number(row.rewards / row.count), percent(row.corrects / row.count), row.corrects ? times(Math.exp(row.logs / row.corrects)) : "-", row.known ? number(row.advantages / row.known, 2) : "-"])),
      el("p", { class: "quiet" }, `${runs.reduce((sum, run) => sum + run.figures.distinct_suggestions, 0)} different suggestions in ${total} rounds, by the policy's words. Applied: the coder wrote a kernel. Correct: of all its rounds. Speedup: of correct kernels over the reference, geometric mean.`)];
  }).flat();
}

function problems() {
  const names = [...new Set(data.runs.flatMap((run) => run.figures.problems.map((p) => p.problem)))].sort();
  if (!names.length) return null;
  const found = (run, name) => run.figures.problems.find((p) => p.problem === name);
  const bestOf = (group, name) => runsOf(group).map((run) => ({ run, problem: found(run, name) })).filter(({ problem }) => problem && problem.best)
    .sort((a, b) => b.problem.best.speedup - a.problem.best.speedup)[0];
  const most = Math.max(1, ...data.groups.flatMap((group) => names.map((name) => { const best = bestOf(group, name); return best ? best.problem.best.speedup : 1; })));
  const header = [["problem"], ["reference", 1], ...data.groups.flatMap((group) => [[data.groups.length > 1 ? group.label : "best verified speedup"], ["time", 1], ["found"]])];
  const rows = names.map((name) => {
    const any = data.runs.map((run) => found(run, name)).find(Boolean);
    return [el("span", { title: any.title }, name), seconds(any.baseline), ...data.groups.flatMap((group, g) => {
      const best = bestOf(group, name);
      if (!best) return ["-", "-", "-"];
      const kernel = best.problem.best;
      const open = best.run.samples ? el("a", { href: `#run=${data.runs.indexOf(best.run)}&of=train&step=${kernel.step}&trajectory=${kernel.trajectory}&round=${kernel.round}`, title: kernel.suggestions && kernel.suggestions.join("; ") }, times(kernel.speedup)) : times(kernel.speedup);
      return [el("span", {}, bar(kernel.speedup / most, colors[g]), open), seconds(kernel.seconds), el("span", { class: "quiet" }, kernel.diagnosis || "-")];
    })];
  });
  return [el("p", { class: "quiet" }, "The best kernel of each problem that a thorough evaluation confirmed" + (data.groups.some((g) => g.runs.length > 1) ? ", over all runs" : "") + ". Found: the evaluator's words on what bounds the time."), table(header, rows)];
}

function whereTimeWent() {
  const onTheClock = ["time/begin_stage", "time/rollout", "time/train", "time/judge_best", "time/heldout", "time/checkpoint"];
  const within = ["time/generate", "time/implement", "time/evaluate", "time/device_wait"];
  const sum = (group, name) => mean(runsOf(group).map((run) => run.figures.times[name] || 0)), steps = (group) => mean(runsOf(group).map((run) => run.steps)) || 1;
  const row = (name, note) => {
    const values = data.groups.map((group) => sum(group, name));
    return values.some((v) => v > 0) ? [name.slice(5).replace("_", " ") + note, ...data.groups.flatMap((group, g) => [
      el("span", {}, note ? null : bar(values[g] / (onTheClock.reduce((all, one) => all + sum(group, one), 0) || 1), colors[g]), duration(values[g])), seconds(values[g] / steps(group))])] : null;
  };
  const rows = [...onTheClock.map((name) => row(name, "")), ...within.map((name) => row(name, " (summed over threads, within rollout)"))].filter(Boolean);
  if (!rows.length) return null;
  return [table([["part"], ...data.groups.flatMap((group) => [[data.groups.length > 1 ? group.label : "all steps"], ["a step", 1]])], rows)];
}

function cost() {
  const series = (name) => data.groups.map((group, i) => ({ label: group.label, color: colors[i], runs: runsOf(group).map((run) => curveOf(run, name)) }));
  const paid = data.runs.some((run) => run.values.cost > 0);
  const figures = [paid ? curves("Cost of the coder so far", series("coder/cost_total"), (v) => "$" + number(v)) : null,
    data.runs.some((run) => curveOf(run, "coder/tokens").some(([, v]) => v > 0)) ? curves("Tokens of the coder, a step", series("coder/tokens")) : null, curves("Seconds of a step", series("step_time"))].filter(Boolean);
  return [paid ? null : el("p", {}, "The coder told no cost."), el("div", { class: "charts" }, figures)];
}

function heldout() {
  const nodes = data.groups.map((group, g) => {
    const runs = runsOf(group).filter((run) => run.figures.heldout);
    if (!runs.length) return null;
    const names = [...new Set(runs.flatMap((run) => run.figures.heldout.problems.map((p) => p.problem)))].sort();
    const at = (name, when, key) => runs.map((run) => run.figures.heldout.problems.find((p) => p.problem === name)).filter((p) => p && p[when]).map((p) => p[when][key]);
    return [data.groups.length > 1 ? el("h3", {}, groupLabel(group)) : null, el("p", { class: "quiet" }, `First measurement after step ${runs[0].figures.heldout.first}, last after step ${runs[0].figures.heldout.last}; ${(runs[0].figures.heldout.problems[0].last || {}).episodes} episodes of each problem.`),
      table([["problem"], ["reward, first", 1], ["last", 1], ["correct, first", 1], ["last", 1], ["best speedup, first", 1], ["last", 1]],
        [...names, null].map((name) => { const all = name === null ? names : [name];
          const of = (when, key, how) => how(all.flatMap((one) => at(one, when, key)));
          return [name === null ? el("b", {}, "all") : name, number(of("first", "reward", mean)), number(of("last", "reward", mean)), percent(of("first", "correct", mean)), percent(of("last", "correct", mean)), times(of("first", "speedup", geometric)), times(of("last", "speedup", geometric))]; }))];
  }).filter(Boolean).flat();
  return nodes.length ? nodes : [el("p", {}, "Nothing was measured on held-out problems (evaluation.every sets how often). Measure the trained policy: ", el("code", {}, `kgrpo-host eval ${data.runs[0].folder}/resolved.yaml --policy ${data.runs[0].folder}/final`))];
}

function configuration() {
  return data.runs.map((run) => el("details", { class: "interactive" }, el("summary", {}, run.folder),
    run.overrides && run.overrides.length ? el("p", {}, "Set on the command line: ", el("code", {}, run.overrides.join(" "))) : null,
    run.resumed && run.resumed.length ? el("p", {}, "Changed on the way: ", run.resumed.map((change) => el("code", {}, `${change.key} ${JSON.stringify(change.before)} \u2192 ${JSON.stringify(change.after)} after step ${change.after_step}; `))) : null,
    run.evaluator ? el("pre", {}, run.evaluator) : null,
    Array.isArray(run.plugins) && run.plugins.length ? table([["part"], ["plugin"], ["version"], ["SHA-256"]], run.plugins.map((p) => [p.role, p.name, p.version, el("code", {}, (p.sha256 || "").slice(0, 16))])) : null,
    el("pre", { class: "code" }, run.resolved)));
}
