// Checks of responses.

export const activated = (license, device) => ({
  'activated': (a) => a.outcome === 0 && a.data.status === 'activated',
  'activated: the license and device that were sent': (a) => a.data.license_key === license && a.data.device_id === device,
  'activated: within its slots': (a) => a.data.current_devices >= 1
    && (a.data.max_devices === 0 || a.data.current_devices <= a.data.max_devices),
  'activated: since when': (a) => isTime(a.data.activated_at),
});

export const activatedAgain = (license, device, devices) => Object.assign(activated(license, device), {
  'activated again: takes no slot': (a) => a.data.current_devices === devices,
});

// activatedOrFull is for more devices than there are slots.
export const activatedOrFull = (license, device, slots) => ({
  'bound, or refused with both counts': (a) => (a.outcome === 0
    ? a.data.license_key === license && a.data.device_id === device && a.data.current_devices <= slots
    : a.outcome === 40901 && a.error.reason === 'device_limit_reached' && a.error.retryable === false
      && a.error.details.max_devices === slots && a.error.details.current_devices === slots),
});

// leased is an activation that has a lease of up to so many seconds. A repeated
// request answers the lease of the first one.
export const leased = (license, device, seconds) => Object.assign(activated(license, device), {
  'leased: for as long as it asked': (a) => a.data.lease_remaining_seconds <= seconds && a.data.lease_remaining_seconds > seconds - 30,
  'leased: until when': (a) => isTime(a.data.lease_expires_at),
});

export const removed = (license, device) => ({
  'removed': (a) => a.outcome === 0 && a.data.license_key === license && a.data.device_id === device,
  // An earlier try without a response may have removed the device.
  'removed: it was bound until then': (a) => a.data.removed === true || (a.data.removed === false && a.repeated),
});

export const found = (license, devices) => ({
  'found': (a) => a.outcome === 0 && a.data.license_key === license,
  'found: lists the devices that it counts': (a) => Array.isArray(a.data.devices) && a.data.devices.length === a.data.current_devices,
  'found: exactly the bound devices': (a) => Array.isArray(a.data.devices)
    && a.data.devices.map((d) => d.device_id).sort().join() === devices.slice().sort().join(),
});

export const ordered = (amount) => ({
  'ordered': (a) => a.outcome === 0 && a.data.amount === amount && isText(a.data.order_no) && isTime(a.data.expires_at),
  'ordered: to be paid': (a) => a.data.status === 'unpaid' && isText(a.data.pay_url) && a.data.license_key === null,
});

export const paid = (order) => ({
  'paid: the order': (a) => a.outcome === 0 && a.data.order_no === order && a.data.status === 'paid',
});

export const canceled = (order) => ({
  'canceled: the order': (a) => a.outcome === 0 && a.data.order_no === order && a.data.status === 'canceled',
});

export const issued = (order) => ({
  'issued: paid, with a license': (a) => a.outcome === 0 && a.data.order_no === order && a.data.status === 'paid'
    && isTime(a.data.paid_at) && isText(a.data.license_key),
});

function isText(value) {
  return typeof value === 'string' && value !== '';
}

function isTime(value) {
  return isText(value) && value.endsWith('Z') && !Number.isNaN(Date.parse(value));
}
