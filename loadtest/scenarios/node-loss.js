// The mix, while one node of three is killed and another one is drained: one is
// left. Clients go to another node where one is gone.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('node-loss', 'unanswered');

const promises = always().concat([
  // A killed node takes the answers along that it owed; whoever asks another
  // node gets one, and nothing is done twice.
  scenario.swift('operation', 99, 2000, 'Asking another node helps at once'),
  // One node does the work of three.
  scenario.swift('operation_after', 99, unnoticed, 'One node that is left is enough'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 4, promises);
