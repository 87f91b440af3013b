// The mix at a modest rate for a long time: what grows shows in the end. The
// default is short; give it an hour, or a night, before a release.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('soak');

const promises = always().concat([
  // What is done in the background (when devices were seen, what is swept) holds
  // nobody up, all the time long.
  scenario.swift('operation', 99, unnoticed, 'Everything is answered before anybody notices'),
  // Nothing that a node keeps makes it slower as time goes by: the last tenth
  // has the same bound as the whole.
  scenario.swift('operation_after', 99, unnoticed, 'The end is as swift as the beginning'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 2, promises);
