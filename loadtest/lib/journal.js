// The journal of requests and responses, for the comparison with the stored
// data. It has one line for each request that had an effect, or may have had one:
//
//	bind   <license> <device>  <client> <begun> <ended> ok|unknown|full
//	lease  <license> <device>  <client> <begun> <ended> ok|unknown|full  <seconds>
//	remove <license> <device>  <client> <begun> <ended> ok|unknown
//	order  <idempotency key>   <client> <begun> <ended> ok|unknown  <order> <account>
//	pay    <order>             <client> <begun> <ended> ok|unknown
//	cancel <order>             <client> <begun> <ended> ok|unknown
//	paid   <order> <license>
//	wrong  <outcome> <answer>, a response that failed a check
//
// A lease line is a bind line whose lease may lapse so many seconds after begun.
// Times are milliseconds since 1970. A client sends one request after the other,
// so the order of its requests within a millisecond is known too. A request
// with an unknown outcome may still take effect, at any time. k6 writes
// console.log to the file of --console-output; without JOURNAL, the journal is off.
const wanted = Boolean(__ENV.JOURNAL);

export function journal(...words) {
  if (wanted) {
    console.log(words.join(' '));
  }
}
