// Orders, activations and removals, each of which has an event, while nodes are killed and started again. Webhook
// endpoints receive the events. loadtest/webhooks compares the events with the journal.
import exec from 'k6/execution';
import {
  activated, activatedAgain, canceled, issued, ordered, paid, removed,
} from '../lib/checks.js';
import { steady } from '../lib/arrivals.js';
import { journal } from '../lib/journal.js';
import { always } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';
import { licenses } from '../lib/settings.js';

const scenario = new Scenario('webhooks', 'unanswered');
const { own, client } = scenario;
const shared = licenses('shared'); // without a limit

const slots = 3; // of the license of an order
const amount = 4900;

// Half of the arrivals order. The others use a license that all of them share, so a node folds many changes into one.
export const { options, setup, handleSummary } = scenario.exports({
  buy: steady(own, 'buy', 0.5, 10),
  share: steady(own, 'share', 0.5, 10),
}, always('Repeating requests at another node gets everything done'));

// buy is a customer with an order: one of eight leaves the order unpaid, one cancels, and six pay, activate the license
// on a few devices, and remove some of them.
export function buy() {
  const i = exec.scenario.iterationInTest;
  const name = `buyer-${own.run}-${i}`;
  const order = client.order(name, {
    product_id: 'editor', amount, currency: 'USD', description: 'Load test', buyer_email: `buyer-${i}@example.com`,
  }, 0);
  const number = order.data.order_no;
  if (!client.expect(order, ordered(amount)) || i % 8 === 0) {
    return;
  }
  if (i % 8 === 1) {
    client.expect(client.cancel(number, 0), canceled(number));
    return;
  }
  if (!client.expect(client.pay(number, 0), paid(number))) {
    return;
  }
  const bought = client.orderOf(number, 0);
  if (!client.expect(bought, issued(number))) {
    return;
  }
  const license = bought.data.license_key;
  journal('paid', number, license);
  const devices = 1 + (Math.floor(i / 8) % slots);
  for (let d = 0; d < devices; d++) {
    client.expect(client.activate(license, `${name}-${d}`), activatedAgain(license, `${name}-${d}`, d + 1));
  }
  for (let d = 0; d < Math.floor(i / 24) % (devices + 1); d++) {
    client.expect(client.remove(license, `${name}-${d}`, 0), removed(license, `${name}-${d}`));
  }
}

// share is a device of a shared license. Every other such device goes away again.
export function share() {
  const i = exec.scenario.iterationInTest;
  const license = shared[i % shared.length];
  const device = `share-${own.run}-${i}`;
  if (client.expect(client.activate(license, device), activated(license, device)) && Math.floor(i / shared.length) % 2 === 1) {
    client.expect(client.remove(license, device, 0), removed(license, device));
  }
}
