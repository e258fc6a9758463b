// Puts the sections together.
for (const [id, title, make] of [
  ["headline", "Headline", headline], ["learning", "Learning", learning], ["outcomes", "What came of the rounds", outcomes],
  ["suggestions", "Suggestions", suggestions], ["problems", "Best kernels", problems], ["heldout", "Held-out problems", heldout],
  ["time", "Where the time went", whereTimeWent], ["cost", "Cost", cost], ["trajectories", "Trajectories", viewer], ["configuration", "Configuration", configuration],
]) {
  const nodes = make();
  if (!nodes || !nodes.length) continue;
  document.getElementById("main").append(el("section", { id, "aria-label": title }, el("h2", {}, title), nodes));
  document.getElementById("nav").append(el("a", { href: "#" + id }, title));
}
