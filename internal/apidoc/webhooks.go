package apidoc

import (
	"os"
	"path/filepath"
	"strings"

	"licet/internal/apidoc/openapi"
	"licet/licensing"
)

// webhooks returns the messages that the service sends to webhook endpoints: one for each type of event, and the
// message that tests an endpoint. Their examples come from the folder messages of the golden files.
func webhooks(goldenFiles string) (*openapi.Map[*openapi.PathItem], error) {
	all := new(openapi.Map[*openapi.PathItem])
	for _, typ := range append(licensing.EventTypes(), pingType) {
		text, err := os.ReadFile(filepath.Join(goldenFiles, "messages", string(typ)+".json"))
		if err != nil {
			return nil, err
		}
		example, err := parse(string(text))
		if err != nil {
			return nil, err
		}
		schema := &openapi.Schema{AllOf: []*openapi.Schema{reference("Event"), {
			Properties: openapi.MapOf("type", &openapi.Schema{Const: string(typ)}),
		}}}
		all.Set(string(typ), &openapi.PathItem{Post: &openapi.Operation{
			OperationID: "receive_" + strings.ReplaceAll(string(typ), ".", "_"),
			Summary:     "A message about an event of the type " + string(typ),
			Security:    []map[string][]string{noCredentials()}, // the signature is in the headers
			Parameters:  messageHeaders(),
			RequestBody: &openapi.RequestBody{Required: true, Content: openapi.MapOf(
				"application/json", &openapi.MediaType{Schema: schema, Examples: examples(example)})},
			Responses: openapi.MapOf("2XX", &openapi.Response{Description: "The receiver has the message."}).
				Set("410", &openapi.Response{Description: "The receiver is gone: the service disables the endpoint."}),
		}})
	}
	return all, nil
}

// messageHeaders returns the headers of a message; see https://www.standardwebhooks.com.
func messageHeaders() []*openapi.Parameter {
	var all []*openapi.Parameter
	for _, header := range [][2]string{
		{"webhook-id", "The id of the event, the same in each attempt."},
		{"webhook-timestamp", "When the attempt was made, in seconds since 1970."},
		{"webhook-signature", "One signature for each valid secret, with blanks between."},
	} {
		all = append(all, &openapi.Parameter{
			Name: header[0], In: "header", Description: header[1], Required: true,
			Schema: &openapi.Schema{Type: []string{"string"}},
		})
	}
	return all
}
