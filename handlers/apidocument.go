package handlers

import (
	"context"

	"github.com/valyala/fasthttp"

	"licet/docs/reference"
)

// documentRoutes are the functions of the routes of the API document. They need no API key: the document is public, and
// costs the node no memory and no request to the store.
type documentRoutes struct{ *Server }

const (
	mediaTypeYAML = "application/yaml"
	mediaTypeJSON = "application/json"
)

// documentHeaders let clients and proxies keep the document for an hour.
func documentHeaders() []header {
	return []header{{fasthttp.HeaderCacheControl, "public, max-age=3600"}}
}

// inYAML answers the API document in YAML.
func (s documentRoutes) inYAML(context.Context, *call, noInput) (document, error) {
	text, _ := reference.OpenAPI()
	return document{
		status: fasthttp.StatusOK, contentType: mediaTypeYAML, headers: documentHeaders(), body: text,
	}, nil
}

// inJSON answers the API document in JSON.
func (s documentRoutes) inJSON(context.Context, *call, noInput) (document, error) {
	_, text := reference.OpenAPI()
	return document{
		status: fasthttp.StatusOK, contentType: mediaTypeJSON, headers: documentHeaders(), body: text,
	}, nil
}
