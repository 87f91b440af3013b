// The report as one HTML file: without scripts and external resources, in the
// reader's light or dark color scheme, for small and large screens.
import { escape, plot } from './plot.js';
import { figure, milliseconds, seconds } from './text.js';

const style = `
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --soft: #5b6470; --rule: #d9dee4; --card: #f5f7f9;
  --first: #0b62c4; --second: #b3420c; --third: #7d5a00; --good: #1a7037; --bad: #b3141f; --band: #7a838f3d; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171b; --ink: #e6e9ed; --soft: #9aa4b0; --rule: #333a42; --card: #1c2127;
    --first: #6cb0ff; --second: #ff9966; --third: #e0b84c; --good: #6fd08c; --bad: #ff8a8a; --band: #aab4c04d; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 16px; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; }
p { margin: 0.5rem 0; }
.soft { color: var(--soft); }
.verdict { font-weight: 600; font-size: 1.1rem; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 16px; }
figure { margin: 0; padding: 12px; background: var(--card); border: 1px solid var(--rule); border-radius: 8px; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 4px; }
.key { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 0.85rem; color: var(--soft); }
.key svg { width: 24px; height: 8px; margin-right: 6px; vertical-align: middle; }
.plot { display: block; width: 100%; height: auto; }
.plot text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.plot .event { fill: var(--ink); font-weight: 600; }
.grid { stroke: var(--rule); stroke-width: 1; }
.band { fill: var(--band); }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.first { stroke: var(--first); }
.second { stroke: var(--second); stroke-dasharray: 6 3; }
.third { stroke: var(--third); stroke-dasharray: 2 4; }
.narrow { display: none; }
@media (max-width: 560px) { .narrow { display: block; } .wide.plot { display: none; } }
.wide:not(.plot) { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 8px; border-bottom: 1px solid var(--rule); text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); font-weight: 600; }
code { font-size: 0.85em; color: var(--soft); overflow-wrap: anywhere; }
td span { white-space: nowrap; }
@media (max-width: 560px) { table { font-size: 0.8rem; } th, td { padding: 6px 4px; } }
ol { padding-left: 1.5rem; }
li { overflow-wrap: anywhere; }
`;

export function page(summary) {
  const broken = summary.promises.filter(({ kept }) => !kept).length;
  const began = summary.at.replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(summary.scenario)}: load test of Licet</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escape(summary.scenario)}</h1>
<p>${escape(summary.about)}.</p>
<p class="soft">${summary.rate} arrivals a second for ${summary.duration} s, nodes: ${summary.nodes}. Begun ${began}.</p>
<p class="verdict ${broken ? 'bad' : 'good'}">${broken ? `✗ ${broken} of ${summary.promises.length} promises broken` : `✓ All ${summary.promises.length} promises kept`}</p>
<!--proof-->
<section>
<h2>Over time</h2>
<div class="columns">
${figures(summary)}
</div>
${happened(summary)}
</section>
<section>
<h2>Promises</h2>
${table(['What is promised', 'Measured', ''], summary.promises.map((p) => [
    `${escape(p.promised)}<br><code>${escape(p.metric)} ${escape(p.limit)}</code>`, figure(p.measured),
    p.kept ? '<span class="good">✓ kept</span>' : '<span class="bad">✗ broken</span>']))}
</section>
<section>
<h2>Operations</h2>
<p class="soft">Milliseconds from the first try to the final response, with retries and waits.</p>
${table(['Operation', 'Count', 'p50', 'p90', 'p99', 'Max'], summary.operations.map((o) => [
    escape(o.op), o.count, milliseconds(o.p50), milliseconds(o.p90), milliseconds(o.p99), milliseconds(o.max)]))}
${repeated(summary)}
</section>
<section>
<h2>Checks</h2>
${table(['Check', 'Passed', 'Failed'], summary.checks.map((c) => [
    escape(c.name), c.passes, c.fails ? `<span class="bad">${c.fails}</span>` : '0']))}
</section>
</main>
</body>
</html>
`;
}

function figures(summary) {
  const perSecond = (of) => summary.slices.map((slice) => of(slice) / summary.width);
  return [
    figureOf('Latency', 'ms, logarithmic', summary, [
      { name: 'p50', mark: 'first', values: summary.slices.map((slice) => slice.p50) },
      { name: 'p99', mark: 'second', values: summary.slices.map((slice) => slice.p99) },
    ], true),
    figureOf('Answers and what was repeated', 'in a second', summary, [
      { name: 'answered', mark: 'first', values: perSecond((slice) => slice.ok) },
      { name: 'failed for good', mark: 'second', values: perSecond((slice) => slice.failed) },
      { name: 'tries repeated', mark: 'third', values: perSecond((slice) => slice.repeated) },
    ], false),
  ].join('\n');
}

function figureOf(title, unit, summary, lines, logarithmic) {
  const key = lines.map(({ name, mark }) => `<span><svg viewBox="0 0 24 8" aria-hidden="true"><path class="line ${mark}" d="M1 4L23 4"/></svg>${escape(name)}</span>`);
  return `<figure>
<figcaption>${escape(title)}</figcaption>
<div class="key">${key.join('')}</div>
${plot(`${title} over time, ${unit}`, unit, summary, lines, logarithmic)}
</figure>`;
}

function happened(summary) {
  if (summary.events.length === 0) {
    return '';
  }
  const items = summary.events.map((event) => `<li>${escape(event.what)}, from ${seconds(event.begun)} to ${seconds(event.ended)}</li>`);
  return `<p>What happened to the service, as numbered in the plots:</p>
<ol>${items.join('')}</ol>`;
}

function repeated(summary) {
  const what = summary.repeated.map(({ why, count }) => `${count} after <code>${escape(why)}</code>`);
  return what.length === 0 ? '<p>No try was repeated.</p>' : `<p>Tries repeated: ${what.join(', ')}.</p>`;
}

// table has its first column to the left and numbers to the right.
function table(head, rows) {
  return `<div class="wide"><table>
<thead><tr>${head.map((cell) => `<th>${cell}</th>`).join('')}</tr></thead>
<tbody>
${rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('\n')}
</tbody></table></div>`;
}
