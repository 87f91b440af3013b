// The mix, while all nodes are restarted one after the other, as an update does
// it. These clients repeat nothing but what got no connection.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('rolling-restart', 'refused');

// SIGTERM: a node answers all that it has accepted, has every answer close its
// connection, and is gone only then. So whoever tries another node where
// nobody listens sees no failure at all, and that is what this one is for.
const promises = always('No request fails where only refused connections are repeated').concat([
  // An update costs a new connection, and nothing more.
  scenario.swift('operation', 99, unnoticed, 'Nobody notices an update'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 1, promises);
