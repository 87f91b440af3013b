package apidoc

import (
	"strings"

	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"licet/licensing"
)

// webhooks returns the messages that the service sends to webhook endpoints: one for each type of event, and the
// message that tests an endpoint.
func webhooks() *orderedmap.Map[string, *v3.PathItem] {
	all := orderedmap.New[string, *v3.PathItem]()
	for _, typ := range append(licensing.EventTypes(), pingType) {
		required := true
		schema := &base.Schema{AllOf: []*base.SchemaProxy{reference("Event"), base.CreateSchemaProxy(&base.Schema{
			Properties: orderedmap.FromPairs(orderedmap.NewPair("type",
				base.CreateSchemaProxy(&base.Schema{Const: word(string(typ))}))),
		})}}
		all.Set(string(typ), &v3.PathItem{Post: &v3.Operation{
			OperationId: "receive_" + strings.ReplaceAll(string(typ), ".", "_"),
			Summary:     "A message about an event of the type " + string(typ),
			Security:    []*base.SecurityRequirement{noCredentials()}, // the signature is in the headers
			Parameters:  messageHeaders(),
			RequestBody: &v3.RequestBody{Required: &required, Content: orderedmap.FromPairs(orderedmap.NewPair(
				"application/json", &v3.MediaType{Schema: base.CreateSchemaProxy(schema)}))},
			Responses: &v3.Responses{Codes: orderedmap.FromPairs(
				orderedmap.NewPair("2XX", &v3.Response{Description: "The receiver has the message."}),
				orderedmap.NewPair("410", &v3.Response{Description: "The receiver is gone: the service disables the endpoint."}),
			)},
		}})
	}
	return all
}

// messageHeaders returns the headers of a message; see https://www.standardwebhooks.com.
func messageHeaders() []*v3.Parameter {
	required := true
	var all []*v3.Parameter
	for _, header := range [][2]string{
		{"webhook-id", "The id of the event, the same in each attempt."},
		{"webhook-timestamp", "When the attempt was made, in seconds since 1970."},
		{"webhook-signature", "One signature for each valid secret, with blanks between."},
	} {
		all = append(all, &v3.Parameter{
			Name: header[0], In: "header", Description: header[1], Required: &required,
			Schema: base.CreateSchemaProxy(&base.Schema{Type: []string{"string"}}),
		})
	}
	return all
}
