// The report for a terminal.

export function text(summary) {
  const lines = [
    '',
    `${summary.scenario}: ${summary.about}`,
    `${summary.rate} arrivals a second for ${summary.duration} s, nodes: ${summary.nodes}, ${summary.at}`,
    '',
    ...table(['operation', 'count', 'p50', 'p90', 'p99', 'max ms'],
      summary.operations.map((o) => [o.op, o.count, milliseconds(o.p50), milliseconds(o.p90), milliseconds(o.p99), milliseconds(o.max)])),
    '',
    ...summary.promises.map((p) => `${p.kept ? 'kept  ' : 'BROKEN'}  ${p.promised}: ${p.metric} ${p.limit}, measured ${figure(p.measured)}`),
  ];
  for (const check of summary.checks.filter(({ fails }) => fails > 0)) {
    lines.push(`BROKEN  check: ${check.name}: ${check.fails} of ${check.fails + check.passes}`);
  }
  if (summary.repeated.length > 0) {
    lines.push('', `repeated: ${summary.repeated.map(({ why, count }) => `${count} after ${why}`).join(', ')}`);
  }
  for (const event of summary.events) {
    lines.push(`${seconds(event.begun)} to ${seconds(event.ended)}: ${event.what}`);
  }
  return `${lines.join('\n')}\n`;
}

function milliseconds(value) {
  if (value === null || value === undefined) {
    return '–';
  }
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}

function seconds(value) {
  return `${value.toFixed(1)} s`;
}

function figure(value) {
  if (value === null) {
    return 'nothing';
  }
  if (value > 0 && value < 1) { // a share: 0.99999 is not 1
    return (Math.floor(value * 1e4) / 1e4).toFixed(4);
  }
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 0);
}

// table lines its columns up; all but the first are numbers.
function table(head, rows) {
  const cells = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, i) => Math.max(...cells.map((row) => row[i].length)));
  return cells.map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  '));
}
