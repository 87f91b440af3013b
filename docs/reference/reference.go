// Package reference has the API document as programs serve it. make openapi writes openapi.yaml anew from the routes
// and types of package handlers.
package reference

import (
	_ "embed"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v2"
)

//go:embed openapi.yaml
var inYAML []byte

// OpenAPI returns the API document in YAML. Callers must not change the bytes.
func OpenAPI() []byte { return inYAML }

// OpenAPIInJSON converts the API document into JSON, with all members in the order of the YAML.
func OpenAPIInJSON() []byte {
	var document yaml.MapSlice
	if err := yaml.Unmarshal(inYAML, &document); err != nil {
		panic("openapi.yaml: " + err.Error())
	}
	text, err := json.Marshal(document, json.WithMarshalers(json.MarshalToFunc(writeMembers)))
	if err != nil {
		panic("openapi.yaml: " + err.Error())
	}
	return text
}

// writeMembers writes an object.
func writeMembers(to *jsontext.Encoder, members yaml.MapSlice) error {
	if err := to.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range members {
		if err := json.MarshalEncode(to, m.Key); err != nil {
			return err
		}
		if err := json.MarshalEncode(to, m.Value); err != nil {
			return err
		}
	}
	return to.WriteToken(jsontext.EndObject)
}
