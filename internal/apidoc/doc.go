// Package apidoc makes the OpenAPI document of the service from the routes, request types and responses of package
// handlers, and the tables of docs/reference/api.md and the error codes of handlers/docs, which say the same. Its tests
// compare all with the committed files; make openapi writes the files anew.
//
// The document has every route, input, limit, header, code and webhook. Its examples are golden files of handlers, so
// they are requests and responses of the service. What types can't say stands in the tables of operations.go.
//
//	codes.go       when a request gets a code
//	closed.go      objects of responses without members that the document lacks, for the checks of the tests
//	codepage.go    the error codes, for the page that handlers/docs renders
//	compile.go     the schemas of a document, compiled
//	document.go    the document
//	exchange.go    checks that requests and responses of HTTP (headers, types, bodies) match the document
//	headers.go     headers of responses
//	members.go     descriptions of members and parameters
//	moneymembers.go the same of payments and refunds
//	ordermembers.go descriptions of parameters of lists of orders
//	operations.go  names, summaries and examples of the routes
//	page.go        the generated parts of docs/reference/api.md: tables of routes, members and codes
//	receiptkeymembers.go descriptions of members of receipt keys
//	released.go    changes that break clients of a released document
//	requests.go    parameters and bodies of requests
//	responses.go   responses
//	schemas.go     schemas of types
//	values.go      values and examples in YAML
//	webhooks.go    the messages that the service sends
//	words.go       types and limits in words
package apidoc
