// What was asked and what was answered, for whoever compares it with what is
// stored. One line for each request that had an effect, or may have had one:
//
//	bind   <license> <device>  <client> <begun> <ended> ok|unknown|full
//	remove <license> <device>  <client> <begun> <ended> ok|unknown
//	order  <idempotency key>   <client> <begun> <ended> ok|unknown  <order> <account>
//	pay    <order>             <client> <begun> <ended> ok|unknown
//	paid   <order> <license>
//	wrong  <outcome> <answer>, one that failed a check
//
// Times are milliseconds since 1970. A client does one thing after the other,
// so that of what it did within a millisecond the order is known too. Where nobody knows what came of a request
// it may still happen, at any time. k6 writes console.log to the file that
// --console-output names; without JOURNAL nothing is written.
const wanted = Boolean(__ENV.JOURNAL);

export function journal(...words) {
  if (wanted) {
    console.log(words.join(' '));
  }
}
