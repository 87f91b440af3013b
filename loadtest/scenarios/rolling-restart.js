// The mix, while all nodes are restarted one after the other, as in an update.
// These clients repeat only requests without a connection.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('rolling-restart', 'refused');

// On SIGTERM a node answers all accepted requests, closes each connection with
// its response, and then exits. So a client that tries another node after a
// refused connection sees no failure: this scenario checks that.
const promises = always('No request fails if clients repeat only refused connections').concat([
  // An update costs a new connection, and nothing more.
  scenario.swift('operation', 99, unnoticed, 'An update takes no time that people notice'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 1, promises);
