// Package openapi models documents of OpenAPI 3.1, as far as the document of the service needs them. Members keep their
// order in YAML.
//
//	map.go    maps that keep the order of their members
//	model.go  the document and its parts
package openapi
