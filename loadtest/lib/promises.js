// What is promised, and the threshold that defends it. The promise stands in
// the report beside what was measured.

export function promise(metric, limit, text) {
  return { metric, limit, text };
}

// always holds in every scenario. lasting says what operations_failed defends,
// which depends on what a scenario's clients repeat.
export function always(lasting = 'Whoever repeats what is retryable gets everything done') {
  return [
    // k6 could send everything when it was due. Otherwise it was no open model,
    // and the other numbers are too good.
    promise('dropped_iterations', 'count==0', 'The load was sent as it was due'),
    // Answers are right in what they say, not only in their status.
    promise('checks', 'rate==1', 'Every answer is right in its body too'),
    // What a node can't do now it says may be repeated, and then it is done.
    promise('operations_failed', 'count==0', lasting),
  ];
}

// unnoticed is how many milliseconds nobody notices. A quiet machine needs a
// tenth of it; one with two cores that compiles meanwhile does not.
export const unnoticed = 500;

// swift is how long operations may take from the first try to the answer that
// counts: the percentile is a number, or 'max'.
export function swift(own, metric, percentile, milliseconds, text) {
  const what = percentile === 'max' ? 'max' : `p(${percentile})`;
  return promise(metric, `${what}<${Math.round(milliseconds * own.slack)}`, text);
}

// thresholds are promises as k6 wants them.
export function thresholds(promises) {
  const all = {};
  for (const { metric, limit } of promises) {
    all[metric] = (all[metric] || []).concat(limit);
  }
  return all;
}
