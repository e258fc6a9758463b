// The mustache template of a kernel's report. Filled by kernel_report.cc.
namespace kgrpo::evaluator {

// The policy forbids scripts and everything from elsewhere, should text of others ever get by the escaping.
extern const char* const kKernelReportTemplate;
const char* const kKernelReportTemplate = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{file}} for {{problem}}: {{verdict}}</title>
<style>
:root { --ink: #1f2933; --soft: #616e7c; --rule: #e4e7eb; --bar: #7b9cc4; --hot: #c2410c; --good: #15803d; --bad: #b91c1c; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px; max-width: 1240px; color: var(--ink); background: #fff;
       font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 28px 0 8px; }
h3 { font-size: 14px; margin: 0 0 6px; }
.soft { color: var(--soft); }
.verdict { font-weight: 600; padding: 1px 8px; border-radius: 4px; color: #fff; background: var(--bad); }
.verdict.correct { background: var(--good); }
.found { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 4px solid var(--bad); padding: 6px 12px; margin: 12px 0;
         background: #fafafa; }
.found.correct { border-color: var(--good); }
.figures { display: flex; flex-wrap: wrap; gap: 12px 40px; margin: 16px 0; }
.figures b { display: block; font-size: 20px; }
svg { max-width: 860px; width: 100%; height: auto; display: block; }
.groups { columns: 2 460px; column-gap: 32px; }
.group { break-inside: avoid; margin: 0 0 20px; }
.group table { width: 100%; border-collapse: collapse; table-layout: fixed; }
.group td { padding: 2px 6px 2px 0; border-top: 1px solid var(--rule); overflow-wrap: anywhere; vertical-align: top; }
.group td.value { font-variant-numeric: tabular-nums; width: 40%; }
.track { display: block; height: 6px; background: var(--rule); border-radius: 3px; margin: 3px 0 4px; overflow: hidden; }
.track i { display: block; height: 6px; background: var(--bar); }
.source { border-collapse: collapse; width: 100%; font: 12px/1.5 ui-monospace, monospace; }
.source td { padding: 0 8px; vertical-align: top; }
.source .number { color: var(--soft); text-align: right; user-select: none; }
.source .share { width: 110px; white-space: nowrap; }
.source .share .track { display: inline-block; width: 48px; margin: 0 6px 0 0; vertical-align: middle; }
.source .share .track i { background: var(--hot); }
.source pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; }
.source .note { color: #8a3208; font: 12px/1.4 system-ui, sans-serif; overflow-wrap: anywhere; }
.source .finding { color: var(--bad); font: 12px/1.4 system-ui, sans-serif; overflow-wrap: anywhere; }
.source tr.told { background: #fff7ed; }
.source tr.wrong { background: #fef2f2; }
@media print { body { max-width: none; padding: 0; } }
</style>
</head>
<body>
<h1>{{file}}</h1>
<p class="soft">judged for the problem {{problem}} <span class="verdict{{#correct}} correct{{/correct}}">{{verdict}}</span></p>
{{#diagnosis}}<div class="found{{#correct}} correct{{/correct}}">{{diagnosis}}</div>
{{/diagnosis}}<div class="figures">
{{#figures}}<div><span class="soft">{{label}}</span><b>{{value}}</b><span class="soft">{{beside}}</span></div>
{{/figures}}</div>
{{#roofline}}<h2>Roofline</h2>
{{{picture}}}
<p class="soft">{{words}}</p>
{{/roofline}}{{#has_groups}}<h2>{{#correct}}Where the time goes (the terms overlap){{/correct}}{{^correct}}What was measured{{/correct}}</h2>
<div class="groups">
{{#groups}}<div class="group"><h3>{{title}}</h3>
<table>
{{#facts}}<tr><td>{{label}}{{#has_bar}}<span class="track"><i style="width:{{percent}}%"></i></span>{{/has_bar}}</td><td class="value">{{value}}</td></tr>
{{/facts}}</table></div>
{{/groups}}</div>
{{/has_groups}}<h2>Source{{#has_shares}}, with its time{{/has_shares}}</h2>
{{#has_shares}}<p class="soft">The rest of the time is the launch and lines below 1%.</p>
{{/has_shares}}<table class="source">
{{#lines}}<tr id="line{{number}}"{{#class}} class="{{class}}"{{/class}}><td class="number">{{number}}</td><td class="share">{{#share}}<span class="track"><i style="width:{{percent}}%"></i></span>{{share}}{{/share}}</td><td><pre>{{code}}</pre>{{#note}}<div class="note">{{note}}</div>{{/note}}{{#findings}}<div class="finding">{{.}}</div>{{/findings}}</td></tr>
{{/lines}}</table>
{{#has_evaluator}}<h2>Evaluator</h2>
<p class="soft">{{#evaluator}}{{.}}<br>
{{/evaluator}}</p>
{{/has_evaluator}}</body>
</html>
)html";

}  // namespace kgrpo::evaluator
