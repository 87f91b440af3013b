// The mix, while one node of three is killed and another is drained: one node is
// left. Clients go to another node if a node is gone.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('node-loss', 'unanswered');

const promises = always().concat([
  // A killed node never answers its open requests. Repeating a request at
  // another node gets a response, and no request has an effect twice.
  scenario.swift('operation', 99, 2000, 'Retries at another node succeed at once'),
  // One node does the work of three.
  scenario.swift('operation_after', 99, unnoticed, 'The remaining node is enough'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 4, promises);
