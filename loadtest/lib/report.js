// The report of a run: a text for people, and a JSON file for programs.
import http from 'k6/http';
import { operations } from './client.js';
import { text } from './text.js';

// statistics are the values that k6 computes for each trend.
export const statistics = ['min', 'med', 'p(90)', 'p(99)', 'max', 'count'];

// begin notifies the program that kills and restarts processes during the load
// that the load begins now.
export function begin(own) {
  if (own.control) {
    http.post(`${own.control}/begin`);
  }
  return { began: Date.now() };
}

// report returns the result of handleSummary: the text of each output.
export function report(own, promises, data) {
  const summary = summarize(own, promises, data);
  return {
    stdout: text(summary),
    [`${own.out}/summary.txt`]: text(summary),
    [`${own.out}/summary.json`]: `${JSON.stringify(summary, null, 2)}\n`,
  };
}

function summarize(own, promises, data) {
  const { metrics } = data;
  const { began } = data.setup_data;
  return {
    scenario: own.name,
    about: own.about,
    at: new Date(began).toISOString(),
    rate: own.rate,
    duration: own.duration,
    nodes: own.targets.length,
    promises: promises.map(({ metric, limit, text: promised }) => ({
      promised, metric, limit, measured: measured(metrics[metric], limit), kept: metrics[metric].thresholds[limit].ok,
    })),
    operations: operations.map((op) => times(op, metrics[`operation_${op.replace(/ /g, '_')}`]))
      .concat(times('all', metrics.operation)).filter((op) => op.count > 0),
    repeated: Object.keys(metrics).filter((name) => name.startsWith('repeated_') && metrics[name].values.count > 0)
      .map((name) => ({ why: name.slice('repeated_'.length), count: metrics[name].values.count })),
    checks: data.root_group.checks.map(({ name, passes, fails }) => ({ name, passes, fails })),
    events: events(own, began),
  };
}

function times(op, metric) {
  const values = metric ? metric.values : { count: 0 };
  return { op, count: values.count, p50: values.med, p90: values['p(90)'], p99: values['p(99)'], max: values.max };
}

// measured returns the value that a threshold checks.
function measured(metric, limit) {
  const what = /^[a-z]+(\(\d+\))?/.exec(limit)[0];
  const value = metric.values[what === 'p(50)' ? 'med' : what];
  return value === undefined ? null : value;
}

// events returns the faults and restarts, in seconds since the load began.
function events(own, began) {
  if (!own.control) {
    return [];
  }
  const response = http.get(`${own.control}/events`);
  return (response.status === 200 ? response.json() : [])
    .map(({ what, begun, ended }) => ({ what, begun: (begun - began) / 1000, ended: (ended - began) / 1000 }));
}
