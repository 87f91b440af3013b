// Draws panels of a Grafana dashboard from the series of a Prometheus, as SVG for light and dark pages.
import { readFileSync } from "node:fs";

const colors = ["#2f6fdb", "#d9730d", "#1a8a5a", "#b8428c", "#8a63d2", "#b08800", "#0e8a9c", "#c0392b"];
const width = 1080, gap = 16, statHeight = 92, plotHeight = 250;
const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const number = (v, digits = 3) => Number(v.toPrecision(digits)).toString();
function format(v, unit) {
  if (!Number.isFinite(v)) return "–";
  switch (unit) {
    case "s": return v < 1 ? `${number(v * 1000)} ms` : `${number(v)} s`;
    case "percentunit": return `${number(v * 100)} %`;
    case "reqps": return `${number(v)} req/s`;
    default: return number(v);
  }
}

// ceiling returns the next number of the form 1, 2 or 5 times a power of ten.
function ceiling(v) {
  const power = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= v);
}

export async function drawDashboard(prometheus, file, seconds) {
  const end = Math.floor(Date.now() / 1000) - 2, start = end - seconds, step = 2;
  const variables = [
    [/\$__rate_interval/g, "20s"], [/\$__range/g, `${seconds}s`], [/\$(namespace|pod|etcd_namespace)\b/g, ".*"], [/\$\w+/g, ".+"],
  ];
  // series queries the targets of a panel.
  async function series(panel) {
    const all = [];
    for (const target of panel.targets) {
      const query = variables.reduce((expr, [name, value]) => expr.replace(name, value), target.expr);
      const response = await fetch(`${prometheus}/api/v1/query_range`, {
        method: "POST", body: new URLSearchParams({ query, start, end, step }),
      });
      const { status, error, data } = await response.json();
      if (status !== "success") throw new Error(`${panel.title}: ${error}`);
      for (const { metric, values } of data.result) {
        const name = (target.legendFormat ?? "").replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => metric[label] ?? "");
        all.push({ name, points: values.map(([at, v]) => [Number(at), Number(v)]).filter(([, v]) => Number.isFinite(v)) });
      }
    }
    const drawn = all.filter((s) => s.points.length > 0);
    if (drawn.length === 0) throw new Error(`${panel.title}: Prometheus has no series`);
    return drawn;
  }
  const dashboard = JSON.parse(readFileSync(file, "utf8"));
  const panels = dashboard.panels.filter((p) => p.targets);
  const stats = panels.filter((p) => p.type === "stat").slice(0, 6);
  const plots = ["Requests by route", "Duration", "Requests by status", "Errors by code"].map((title) => {
    const panel = panels.find((p) => p.type === "timeseries" && p.title === title);
    if (!panel) throw new Error(`the dashboard has no panel ${title}`);
    return panel;
  });

  const parts = [];
  const box = (x, y, w, h, title) => parts.push(
    `<rect class="panel" x="${x + .5}" y="${y + .5}" width="${w - 1}" height="${h - 1}" rx="6"/>`,
    `<text class="title" x="${x + 14}" y="${y + 25}">${escape(title)}</text>`);
  let y = 56;
  const statWidth = (width - gap * (stats.length + 1)) / stats.length;
  for (const [i, panel] of stats.entries()) {
    const x = gap + i * (statWidth + gap);
    box(x, y, statWidth, statHeight, panel.title);
    const [first] = await series(panel);
    const value = first.points.at(-1)[1];
    parts.push(`<text class="value" x="${x + 14}" y="${y + 66}">${escape(format(value, panel.fieldConfig.defaults.unit))}</text>`);
  }
  y += statHeight + gap;
  const plotWidth = (width - 3 * gap) / 2;
  for (const [i, panel] of plots.entries()) {
    const x = gap + (i % 2) * (plotWidth + gap), top = y + Math.floor(i / 2) * (plotHeight + gap);
    const unit = panel.fieldConfig.defaults.unit;
    const most = 6;
    const all = (await series(panel)).sort((a, b) => sum(b) - sum(a));
    const shown = all.slice(0, most);
    box(x, top, plotWidth, plotHeight, all.length > most ? `${panel.title} (the ${most} largest)` : panel.title);
    const max = ceiling(Math.max(...shown.flatMap((s) => s.points.map(([, v]) => v)), 1e-9));
    const left = x + 84, right = x + plotWidth - 16, high = top + 42, low = top + 160;
    for (const part of [0, .5, 1]) {
      const at = low - part * (low - high);
      parts.push(`<path class="grid" d="M${left} ${at}H${right}"/>`,
        `<text class="axis" text-anchor="end" x="${left - 8}" y="${at + 4}">${escape(format(max * part, unit))}</text>`);
    }
    for (const [n, { name, points }] of shown.entries()) {
      const path = points.map(([at, v]) => `${(left + (at - start) / (end - start) * (right - left)).toFixed(1)} ` +
        (low - v / max * (low - high)).toFixed(1));
      const label = [x + 14 + (n % 2) * (plotWidth / 2 - 8), top + 190 + Math.floor(n / 2) * 20];
      parts.push(`<path class="line" stroke="${colors[n]}" d="M${path.join("L")}"/>`,
        `<rect x="${label[0]}" y="${label[1] - 8}" width="10" height="10" rx="2" fill="${colors[n]}"/>`,
        `<text class="axis" x="${label[0] + 16}" y="${label[1] + 1}">${escape(name)}</text>`);
    }
  }
  const height = y + 2 * (plotHeight + gap) + 30;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="t" font-family="system-ui, sans-serif">
<title id="t">The dashboard ${escape(dashboard.title)}, drawn from series of a test</title>
<style>
.page { fill: #f4f5f7; } .panel { fill: #ffffff; stroke: #d1d9e0; } .grid { stroke: #d8dde3; }
.line { fill: none; stroke-width: 1.75; stroke-linejoin: round; }
text { fill: #1f2328; } .name { font-size: 18px; font-weight: 600; } .title { font-size: 12px; font-weight: 600; }
.value { font-size: 24px; font-weight: 600; } .axis { font-size: 12px; fill: #57606a; }
@media (prefers-color-scheme: dark) {
.page { fill: #0f1216; } .panel { fill: #181c22; stroke: #2b313a; } .grid { stroke: #2b313a; }
text { fill: #e6edf3; } .axis { fill: #a5aebb; }
}
</style>
<rect class="page" width="${width}" height="${height}" rx="8"/>
<text class="name" x="${gap}" y="35">${escape(dashboard.title)}</text>
<text class="axis" text-anchor="end" x="${width - gap}" y="35">two nodes and three members of etcd on one machine, ${seconds / 60} minutes</text>
${parts.join("\n")}
<text class="axis" x="${gap}" y="${height - 16}">Drawn from the series of a test run, with the panels of deploy/grafana; not a screenshot of Grafana.</text>
</svg>
`;
}

const sum = ({ points }) => points.reduce((total, [, v]) => total + v, 0);
