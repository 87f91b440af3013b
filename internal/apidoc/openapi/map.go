package openapi

import (
	"fmt"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Map is a map that keeps the order in which its keys were set. A nil Map is empty.
type Map[V any] struct {
	keys   []string
	values map[string]V
}

// MapOf returns a map with one key.
func MapOf[V any](key string, value V) *Map[V] { return new(Map[V]).Set(key, value) }

// Set sets the value of a key and returns the map. A known key keeps its place.
func (m *Map[V]) Set(key string, value V) *Map[V] {
	if m.values == nil {
		m.values = make(map[string]V)
	}
	if _, known := m.values[key]; !known {
		m.keys = append(m.keys, key)
	}
	m.values[key] = value
	return m
}

// Get returns the value of a key; the zero value if the map lacks the key.
func (m *Map[V]) Get(key string) V {
	if m == nil {
		var none V
		return none
	}
	return m.values[key]
}

// Resolve returns the component that a reference names. Without a reference it returns the given part, which stands in
// place.
func (m *Map[V]) Resolve(ref string, inPlace V) V {
	if ref == "" {
		return inPlace
	}
	return m.Get(ref[strings.LastIndex(ref, "/")+1:])
}

// All returns the keys and values in their order.
func (m *Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m == nil {
			return
		}
		for _, key := range m.keys {
			if !yield(key, m.values[key]) {
				return
			}
		}
	}
}

// First returns the value of the first key; the zero value if the map is empty.
func (m *Map[V]) First() (first V) {
	for _, value := range m.All() {
		return value
	}
	return first
}

// IsZero reports whether the map is empty: omitempty leaves out empty maps.
func (m *Map[V]) IsZero() bool { return m == nil || len(m.keys) == 0 }

// MarshalYAML writes the members in their order.
func (m *Map[V]) MarshalYAML() (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for key, value := range m.All() {
		name, of := new(yaml.Node), new(yaml.Node)
		name.SetString(key)
		if err := of.Encode(value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		node.Content = append(node.Content, name, of)
	}
	return node, nil
}

// UnmarshalYAML reads the members in their order.
func (m *Map[V]) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: not a mapping", node.Line)
	}
	for i := 0; i < len(node.Content); i += 2 {
		var value V
		if err := node.Content[i+1].Decode(&value); err != nil {
			return err
		}
		m.Set(node.Content[i].Value, value)
	}
	return nil
}
