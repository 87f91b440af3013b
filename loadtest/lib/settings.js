// The settings of a run: from the environment, otherwise the defaults. The
// defaults of all scenarios are in ../scenarios.json, which loadtest/run reads
// too.
import { SharedArray } from 'k6/data';

const defaults = JSON.parse(open(import.meta.resolve('../scenarios.json')));

// settings returns the settings of a scenario.
export function settings(name) {
  const usual = defaults[name];
  const targets = (__ENV.TARGETS || '').split(',').filter((target) => target);
  if (targets.length === 0) {
    throw new Error(`TARGETS is empty. Start it with: make load SCENARIO=${name}`);
  }
  const duration = seconds(__ENV.DURATION || usual.duration);
  return {
    name,
    about: usual.about,
    rate: number('RATE', usual.rate), // arrivals a second
    duration,
    recovered: duration * (usual.recovered || 0), // seconds after which faults must have no effect any more
    slack: number('SLACK', 1), // factor for the allowed durations
    targets, // addresses of the nodes
    apiKeys: (__ENV.API_KEY || '').split(','), // of each account; license i of a group is of account i modulo these
    run: __ENV.RUN || 'run', // in the names that this run makes
    control: __ENV.CONTROL || '', // URL to notify when the load begins
    out: __ENV.OUT || '.',
  };
}

// licenses returns the license keys of a group that was granted for this run.
// All virtual users share one copy.
export function licenses(group) {
  return new SharedArray(group, () => JSON.parse(open(__ENV.LICENSES))[group]);
}

function number(name, usual) {
  const value = __ENV[name] ? Number(__ENV[name]) : usual;
  if (!(value > 0)) {
    throw new Error(`${name} is ${__ENV[name]}: it must be a number above 0`);
  }
  return value;
}

// seconds reads 90, 90s, 5m, 1m30s or 1h.
function seconds(text) {
  const parts = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?$/.exec(String(text));
  const value = parts ? Number(parts[1] || 0) * 3600 + Number(parts[2] || 0) * 60 + Number(parts[3] || 0) : 0;
  if (!(value > 0)) {
    throw new Error(`${text} is no duration such as 30s, 5m or 1h`);
  }
  return value;
}
