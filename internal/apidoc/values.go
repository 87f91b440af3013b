package apidoc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pb33f/go-yaml"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	"github.com/pb33f/libopenapi/orderedmap"
)

// number returns a number in YAML.
func number(n int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(n)}
}

func null() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"} }

// words returns texts in YAML.
func words[T ~string](all []T) []*yaml.Node {
	nodes := make([]*yaml.Node, len(all))
	for i, text := range all {
		nodes[i] = word(string(text))
	}
	return nodes
}

func word(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
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
func examples(node *yaml.Node) *orderedmap.Map[string, *base.Example] {
	if node == nil {
		return nil
	}
	return orderedmap.FromPairs(orderedmap.NewPair("example", &base.Example{Value: node}))
}
