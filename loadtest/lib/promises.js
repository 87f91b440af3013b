// Promises, each with the threshold that checks it. The report shows each
// promise beside the measured value.

export function promise(metric, limit, text) {
  return { metric, limit, text };
}

// always returns the promises of every scenario. lasting is the promise about
// operations_failed, which depends on the requests that a scenario's clients
// repeat.
export function always(lasting = 'Repeating retryable requests gets everything done') {
  return [
    // k6 sent every request when it was due. Otherwise the load was not an open
    // model, and the other numbers are too good.
    promise('dropped_iterations', 'count==0', 'All requests were sent when they were due'),
    // Responses have the right body, not only the right status.
    promise('checks', 'rate==1', 'Every response has the right body'),
    // If a node can't execute a request now, the response allows a retry, and
    // the retry succeeds.
    promise('operations_failed', 'count==0', lasting),
  ];
}

// unnoticed is a delay, in milliseconds, that people do not notice. On a quiet
// machine a tenth of it suffices; a machine with two cores that also compiles
// needs all of it.
export const unnoticed = 500;

// swift promises how long operations take at most, from the first try to the
// final response. The percentile is a number, or 'max'.
export function swift(own, metric, percentile, milliseconds, text) {
  const what = percentile === 'max' ? 'max' : `p(${percentile})`;
  return promise(metric, `${what}<${Math.round(milliseconds * own.slack)}`, text);
}

// thresholds returns promises in the form of k6's option thresholds.
export function thresholds(promises) {
  const all = {};
  for (const { metric, limit } of promises) {
    all[metric] = (all[metric] || []).concat(limit);
  }
  return all;
}
