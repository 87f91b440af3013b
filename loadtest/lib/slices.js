// Metrics over time. k6 aggregates a metric over the whole run, so each slice
// of time has its own metrics, declared before the run as k6 demands.
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';

const most = 60; // slices; a plot on a telephone can't show more

// Slices is made once, in the init context.
export class Slices {
  constructor(duration) {
    this.width = Math.max(1, Math.ceil(duration / most)); // seconds
    // A request that begins within the run may be answered after it.
    const count = Math.ceil(duration / this.width) + 1;
    this.list = Array.from({ length: count }, (_, i) => ({
      took: new Trend(`slice_${i}_took`, true),
      failed: new Counter(`slice_${i}_failed`),
      repeated: new Counter(`slice_${i}_repeated`),
    }));
  }

  // now returns the slice of this moment.
  now() {
    const at = Math.floor((Date.now() - exec.scenario.startTime) / 1000 / this.width);
    return this.list[Math.min(Math.max(at, 0), this.list.length - 1)];
  }

  // of reads the slices from the metrics that k6 passes to handleSummary. The
  // last slice is the rest after the run.
  of(metrics) {
    const value = (name, what) => (metrics[name] ? metrics[name].values[what] : null);
    return this.list.slice(0, -1).map((_, i) => ({
      from: i * this.width,
      ok: value(`slice_${i}_took`, 'count') || 0,
      failed: value(`slice_${i}_failed`, 'count') || 0,
      repeated: value(`slice_${i}_repeated`, 'count') || 0,
      p50: value(`slice_${i}_took`, 'med'),
      p99: value(`slice_${i}_took`, 'p(99)'),
    }));
  }
}
