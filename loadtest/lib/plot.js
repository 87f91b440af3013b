// Plots over time, as SVG inside the page. Each plot is drawn twice, for narrow
// and for wide screens: a plot that is scaled down is unreadable.

const margin = { left: 44, right: 12, top: 12, bottom: 30 };

// plot draws lines over time. lines are {name, mark, values}: a value for each
// slice, null without a value; mark is the line's class in the page's style.
export function plot(title, unit, summary, lines, logarithmic) {
  return [[340, 210, 'narrow', 4], [620, 260, 'wide', 8]].map(([width, height, shown, ticks]) => {
    const frame = { width, height, ticks, duration: summary.duration };
    const scale = logarithmic ? logScale(frame, lines) : linearScale(frame, lines);
    return `<svg class="plot ${shown}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(title)}">
${grid(frame, scale, unit)}
${events(frame, summary.events)}
${lines.map((line) => path(frame, scale, summary, line)).join('\n')}
</svg>`;
  }).join('\n');
}

export function escape(text) {
  return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function x(frame, second) {
  const inner = frame.width - margin.left - margin.right;
  return margin.left + (inner * Math.min(Math.max(second, 0), frame.duration)) / frame.duration;
}

function y(frame, part) {
  const inner = frame.height - margin.top - margin.bottom;
  return margin.top + inner * (1 - Math.min(Math.max(part, 0), 1));
}

// linearScale has round steps from 0 on.
function linearScale(frame, lines) {
  const most = Math.max(...highest(lines), 1);
  const step = round(most / 4);
  const top = Math.ceil(most / step) * step;
  return { part: (value) => value / top, ticks: range(0, top, step) };
}

// logScale is for times, which lie between a millisecond and many seconds.
function logScale(frame, lines) {
  const top = Math.max(2, Math.ceil(Math.log10(Math.max(...highest(lines), 10))));
  return { part: (value) => Math.log10(Math.max(value, 1)) / top, ticks: range(0, top, 1).map((power) => 10 ** power) };
}

function highest(lines) {
  return lines.map(({ values }) => Math.max(0, ...values.filter((value) => value !== null)));
}

// round is the next of 1, 2 and 5 times a power of ten, from 1 on.
function round(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].find((factor) => factor * power >= value) * power;
}

function range(from, to, step) {
  const all = [];
  for (let value = from; value <= to + step / 1000; value += step) {
    all.push(value);
  }
  return all;
}

function grid(frame, scale, unit) {
  const right = frame.width - margin.right;
  const rows = scale.ticks.map((value) => {
    const at = y(frame, scale.part(value)).toFixed(1);
    return `<line class="grid" x1="${margin.left}" x2="${right}" y1="${at}" y2="${at}"/>`
      + `<text x="${margin.left - 6}" y="${at}" dy="0.35em" text-anchor="end">${short(value)}</text>`;
  });
  const step = round(frame.duration / frame.ticks);
  const columns = range(0, frame.duration, step).map((second) => `<text x="${x(frame, second).toFixed(1)}" y="${frame.height - margin.bottom + 14}" text-anchor="middle">${second}</text>`);
  return `${rows.join('')}${columns.join('')}
<text x="${right}" y="${frame.height - 3}" text-anchor="end">seconds; upward ${escape(unit)}</text>`;
}

function short(value) {
  return value >= 1000 ? `${value / 1000}k` : String(value);
}

// events are numbered as in the list below the plots. An event that took a
// while is a band.
function events(frame, list) {
  return list.map(({ begun, ended }, i) => {
    const from = x(frame, begun);
    const to = x(frame, ended);
    const bottom = frame.height - margin.bottom;
    return `<rect class="band" x="${from.toFixed(1)}" y="${margin.top}" width="${Math.max(to - from, 2).toFixed(1)}" height="${bottom - margin.top}"/>`
      + `<text class="event" x="${(from + 3).toFixed(1)}" y="${margin.top + 9}">${i + 1}</text>`;
  }).join('');
}

// path returns one line, with gaps where nothing was measured. h0 draws a value
// without neighbors as a point.
function path(frame, scale, summary, { mark, values }) {
  let pen = 'M';
  const steps = values.map((value, i) => {
    if (value === null) {
      pen = 'M';
      return '';
    }
    const at = `${pen}${x(frame, (i + 0.5) * summary.width).toFixed(1)} ${y(frame, scale.part(value)).toFixed(1)}${pen === 'M' ? 'h0' : ''}`;
    pen = 'L';
    return at;
  });
  return `<path class="line ${mark}" d="${steps.join('')}"/>`;
}
