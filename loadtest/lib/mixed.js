// The mix: the requests of a shop and its buyers at the same time. Each kind of
// work has its own arrivals, so no kind waits for another.
import exec from 'k6/execution';
import { activated, activatedAgain, found, issued, ordered, paid, removed } from './checks.js';
import { steady } from './arrivals.js';
import { journal } from './journal.js';
import { licenses } from './settings.js';

// parts of all arrivals.
const parts = { buy: 0.1, bind: 0.3, again: 0.2, look: 0.25, churn: 0.15 };

// mixed returns the exports of a script whose arrivals are of all parts.
export function mixed(scenario, stall, promises) {
  const work = new Work(scenario);
  const arrivals = {};
  const run = {};
  for (const [name, part] of Object.entries(parts)) {
    arrivals[name] = steady(scenario.own, name, part, stall);
    run[name] = () => work[name]();
  }
  return Object.assign(run, scenario.exports(arrivals, promises));
}

class Work {
  constructor({ own, client }) {
    this.own = own;
    this.client = client;
    this.fresh = licenses('fresh');
    this.bound = licenses('bound'); // each has the devices seed-0 and seed-1
    this.churned = licenses('churned');
  }

  // buy is a buyer's way from the order to the first device.
  buy() {
    const { client } = this;
    const name = this.name('buyer');
    const account = exec.scenario.iterationInTest;
    const amount = 4900;
    const order = client.order(name, {
      product_id: 'editor', amount, currency: 'USD', description: 'Load test', buyer_email: `Buyer-${account % 7}@example.com`,
    }, account);
    if (!client.expect(order, ordered(amount))) {
      return;
    }
    const number = order.data.order_no;
    if (!client.expect(client.pay(number, account), paid(number))) {
      return;
    }
    const bought = client.orderOf(number, account);
    if (!client.expect(bought, issued(number))) {
      return;
    }
    const license = bought.data.license_key;
    journal('paid', number, license);
    client.expect(client.activate(license, name), activatedAgain(license, name, 1));
  }

  // bind brings a new device to a license, which has room for it.
  bind() {
    const i = exec.scenario.iterationInTest;
    const license = this.fresh[i % this.fresh.length];
    const device = this.name('device');
    this.client.expect(this.client.activate(license, device), activated(license, device));
  }

  // again is a device that is bound already.
  again() {
    const i = exec.scenario.iterationInTest;
    const license = this.bound[i % this.bound.length];
    const device = `seed-${i % 2}`;
    this.client.expect(this.client.activate(license, device), activatedAgain(license, device, 2));
  }

  // look is a shop that looks a license up.
  look() {
    const i = exec.scenario.iterationInTest % this.bound.length;
    const license = this.bound[i];
    this.client.expect(this.client.lookup(license, i), found(license, ['seed-0', 'seed-1']));
  }

  // churn is a device that comes and goes.
  churn() {
    const i = exec.scenario.iterationInTest % this.churned.length;
    const license = this.churned[i];
    const device = this.name('guest');
    if (this.client.expect(this.client.activate(license, device), activated(license, device))) {
      this.client.expect(this.client.remove(license, device, i), removed(license, device));
    }
  }

  // name returns a name that is unique, in this run and across runs.
  name(what) {
    return `${what}-${this.own.run}-${exec.scenario.iterationInTest}`;
  }
}
