package handlers

import (
	"context"

	"github.com/valyala/fasthttp"

	"licet/docs/reference"
)

// documentRoutes are the functions of the routes of the API document. They need no API key: the document is public, and
// costs no request to the store. Every response shares the same bytes.
type documentRoutes struct{ *Server }

const (
	mediaTypeYAML = "application/yaml"
	mediaTypeJSON = "application/json"
)

// inYAML answers the API document in YAML.
func (s documentRoutes) inYAML(context.Context, *call, noInput) (document, error) {
	return documentIn(mediaTypeYAML, reference.OpenAPI()), nil
}

// inJSON answers the API document in JSON.
func (s documentRoutes) inJSON(context.Context, *call, noInput) (document, error) {
	return documentIn(mediaTypeJSON, s.openAPIInJSON()), nil
}

// documentIn returns the API document in a media type. Clients and proxies may keep the document for an hour.
func documentIn(mediaType string, text []byte) document {
	return document{
		status: fasthttp.StatusOK, contentType: mediaType, body: text,
		headers: []header{{fasthttp.HeaderCacheControl, "public, max-age=3600"}},
	}
}
