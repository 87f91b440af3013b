// The common parts of all scenarios.
import { Client } from './client.js';
import { swift, thresholds } from './promises.js';
import { begin, report, statistics } from './report.js';
import { settings } from './settings.js';

// Scenario is made once, in the init context. repeat says which requests its
// clients send again, see Client.
export class Scenario {
  constructor(name, repeat) {
    this.own = settings(name);
    this.client = new Client(this.own, repeat);
  }

  // swift is a promise of how long operations take at most, in milliseconds.
  swift(metric, percentile, milliseconds, text) {
    return swift(this.own, metric, percentile, milliseconds, text);
  }

  // exports returns the exports that k6 needs from a script, besides the
  // functions that the arrivals run.
  exports(arrivals, promises) {
    const { own } = this;
    return {
      options: { scenarios: arrivals, thresholds: thresholds(promises), summaryTrendStats: statistics },
      setup: () => begin(own),
      handleSummary: (data) => report(own, promises, data),
    };
  }
}
