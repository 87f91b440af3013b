// Package reference holds the API document as programs serve it. make openapi writes the files anew from the routes and
// types of package handlers.
package reference

import _ "embed"

//go:embed openapi.yaml
var inYAML []byte

//go:embed openapi.json
var inJSON []byte

// OpenAPI returns the API document in YAML and in JSON. Callers must not change the bytes.
func OpenAPI() (yaml, json []byte) { return inYAML, inJSON }
