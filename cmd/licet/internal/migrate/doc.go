// Package migrate reads licenses from other services: Keygen, Lemon Squeezy, Gumroad and Polar. It writes a CSV file
// that licet licenses import takes. The commands of licet import are in package cli, and the import is in package bulk.
// Package migratetest imitates the APIs of these services in tests.
//
// [Service.Fetch] stores the responses of a service's API in a file, page by page. It can be killed at any time, and
// the same call continues. [Service.Convert] turns such a file, or responses that were saved with curl, into rows
// of an import. So a file is read from the service once, and can be converted again with other settings.
//
// Each service has one function, which reads a response: the licenses, the devices, and the requests for the responses
// that follow. The pages of a file lead to the same requests each time. So Fetch finds where to continue by reading
// what it has stored.
//
//	service.go       the services, and what each value becomes
//	page.go          what a response has; license, the type that the licenses of all services become
//	fetch.go         Fetch: requests, pauses, the file
//	pages.go         the responses in a file
//	convert.go       Convert: rows, and a report
//	keygen.go        responses of Keygen
//	lemonsqueezy.go  responses of Lemon Squeezy
//	gumroad.go       responses of Gumroad
//	gumroadcsv.go    sales that Gumroad has exported: columns and dates
//	polar.go         responses of Polar
package migrate
