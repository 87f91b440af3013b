package apidoc

// closeObjects changes a document, as any value of JSON, so that an object that the service sends does not fit if it
// has a member that the document lacks. The document itself allows such members: later versions may add them. Bodies of
// requests stay as they are.
func closeObjects(document any) {
	received := make(map[string]bool) // references to the schemas of bodies of requests
	for _, item := range parts(parts(document)["paths"]) {
		for _, operation := range parts(item) {
			closeBodies(parts(operation)["responses"])
			for _, body := range parts(parts(parts(operation)["requestBody"])["content"]) {
				ref, _ := parts(parts(body)["schema"])["$ref"].(string)
				received[ref] = true
			}
		}
	}
	components := parts(parts(document)["components"])
	closeBodies(components["responses"])
	for name, schema := range parts(components["schemas"]) {
		if !received[reference(name).Ref] {
			closeSchema(schema)
		}
	}
}

// closeBodies closes the objects in the bodies of responses.
func closeBodies(responses any) {
	for _, response := range parts(responses) {
		for _, body := range parts(parts(response)["content"]) {
			closeSchema(parts(body)["schema"])
		}
	}
}

// closeSchema closes the objects of a schema whose members the schema lists. It leaves the parts of an allOf open, as
// each of them lists only some members: the shared schema that a part refers to is closed by itself.
func closeSchema(of any) {
	schema := parts(of)
	if schema == nil {
		return
	}
	for _, member := range parts(schema["properties"]) {
		closeSchema(member)
	}
	closeSchema(schema["items"])
	if _, others := schema["additionalProperties"]; len(parts(schema["properties"])) > 0 && !others {
		schema["unevaluatedProperties"] = false
	}
}

// parts returns the members of an object; nil for another value.
func parts(of any) map[string]any {
	members, _ := of.(map[string]any)
	return members
}
