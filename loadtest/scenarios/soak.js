// The mix at a modest rate for a long time: a leak shows in the end. The default
// duration is short; use an hour, or a night, before a release.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('soak');

const promises = always().concat([
  // Background work (storing when devices were seen, sweeps) never delays
  // requests.
  scenario.swift('operation', 99, unnoticed, 'Operations take no time that people notice'),
  // A node does not become slower over time: the last tenth has the same bound
  // as the whole run.
  scenario.swift('operation_after', 99, unnoticed, 'The end is as fast as the beginning'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 2, promises);
