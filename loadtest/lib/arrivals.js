// The open model: arrivals come when they are due, whatever the outcome of
// earlier arrivals, like customers. So a slow service does not get less load.

// Longer than a request with all its tries can take: k6 must not cut off an
// iteration in the middle of a request, or the journal would lack its outcome.
const gracefulStop = '45s';

// steady is a part of the arrivals, at one rate. stall is for how many seconds
// all requests may hang without k6 running out of virtual users.
export function steady(own, exec, part, stall) {
  const rate = own.rate * part;
  return {
    executor: 'constant-arrival-rate',
    exec,
    rate: Math.max(1, Math.round(rate * 10)), // whole numbers only
    timeUnit: '10s',
    duration: `${own.duration}s`,
    preAllocatedVUs: users(rate, stall),
    gracefulStop,
  };
}

// spiked is a steady rate with a spike in the middle.
export function spiked(own, exec, times, stall) {
  const usual = Math.max(1, Math.round(own.rate * 10));
  const stage = (part, factor) => ({ duration: `${Math.max(1, Math.round(own.duration * part))}s`, target: usual * factor });
  return {
    executor: 'ramping-arrival-rate',
    exec,
    startRate: usual,
    timeUnit: '10s',
    stages: [
      stage(0.35, 1), { duration: '1s', target: usual * times }, stage(0.2, times),
      { duration: '1s', target: usual }, stage(0.45 - 2 / own.duration, 1),
    ],
    preAllocatedVUs: users(own.rate * times, stall),
    gracefulStop,
  };
}

function users(rate, stall) {
  return Math.ceil(rate * stall) + 10;
}
