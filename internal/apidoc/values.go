package apidoc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"licet/internal/apidoc/openapi"
)

// words returns texts as values of an enum.
func words[T ~string](all []T) []any {
	values := make([]any, len(all))
	for i, text := range all {
		values[i] = string(text)
	}
	return values
}

// golden is a golden file of handlers: a request and its response.
type golden struct {
	request, response *yaml.Node // the bodies; nil: none
}

// readGolden reads a golden file.
func readGolden(folder, name string) (g golden, err error) {
	text, err := os.ReadFile(filepath.Join(folder, name+".txt"))
	if err != nil {
		return g, err
	}
	request, response, _ := strings.Cut(string(text), "\n\n< ")
	if _, body, has := strings.Cut(request, "\n>\n> "); has {
		if g.request, err = parse(body); err != nil {
			return g, err
		}
	}
	if _, body, has := strings.Cut(response, "\n<\n"); has && strings.TrimSpace(body) != "" {
		g.response, err = parse(body)
	}
	return g, err
}

// parse reads JSON as YAML, with the members in their order.
func parse(text string) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, fmt.Errorf("an example: %w", err)
	}
	plain(document.Content[0])
	return document.Content[0], nil
}

// plain removes the style of JSON from a value. Texts stay texts, also where YAML would read another type.
func plain(node *yaml.Node) {
	node.Style = 0
	for _, inner := range node.Content {
		plain(inner)
	}
}

// examples returns an example of a media type; nil for none.
func examples(node *yaml.Node) *openapi.Map[*openapi.Example] {
	if node == nil {
		return nil
	}
	return openapi.MapOf("example", &openapi.Example{Value: *node})
}
