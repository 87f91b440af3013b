package signature

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Message is a request as received.
type Message struct {
	Method string
	// TargetURI is the absolute URI of the request: path and query as sent, the host in lower case,
	// without the default port of its scheme.
	TargetURI string
	// Fields contains the header lines, each with CR LF at its end. The caller must have refused folded
	// lines: this package ignores everything after the fold.
	Fields []byte
	Body   []byte // the content, before any decoding
}

// base returns the signature base: the bytes that a signature covers (RFC 9421, section 2.5).
func (m *Message) base(covered httpsfv.InnerList) ([]byte, error) {
	// Encoded again, not copied from the header: a signature covers the strict form, whatever blanks
	// the header has.
	params, err := httpsfv.Marshal(covered)
	if err != nil {
		return nil, fmt.Errorf("the parameters can't be written: %w", err)
	}
	base := make([]byte, 0, 1024)
	seen := make([]string, 0, 16)
	for _, item := range covered.Items {
		name, isText := item.Value.(string)
		switch {
		case !isText:
			return nil, fmt.Errorf("the name of a component must be a string")
		case len(item.Params.Names()) > 0:
			return nil, fmt.Errorf("component %q has parameters, which this service does not support",
				name)
		case slices.Contains(seen, name):
			return nil, fmt.Errorf("the list of components names %q twice", name)
		case strings.ToLower(name) != name:
			return nil, fmt.Errorf("the name of component %q must be in lower case", name)
		}
		seen = append(seen, name)
		// No known name has a character that needs an escape.
		base = append(append(append(base, '"'), name...), `": `...)
		if base, err = m.appendComponent(base, name); err != nil {
			return nil, err
		}
		base = append(base, '\n')
	}
	return append(append(base, `"@signature-params": `...), params...), nil
}

// appendComponent appends the value of a component. It returns an error if the request has no such
// component.
func (m *Message) appendComponent(to []byte, name string) ([]byte, error) {
	if strings.HasPrefix(name, "@") {
		value, known := m.appendDerived(to, name)
		if !known {
			return nil, fmt.Errorf("this service does not support component %q", name)
		}
		return value, nil
	}
	value, found := m.appendField(to, name)
	if !found {
		return nil, fmt.Errorf("the request does not have component %q", name)
	}
	return value, nil
}

// appendField appends the value of a header field, and reports whether the request has the field (RFC
// 9421, section 2.1). The value consists of the values of the field's lines in order, without the blanks
// around them, separated by a comma and a space. name is in lower case.
func (m *Message) appendField(to []byte, name string) (value []byte, found bool) {
	for rest := m.Fields; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) <= len(name) || line[len(name)] != ':' || !strings.EqualFold(string(line[:len(name)]), name) {
			continue
		}
		if found {
			to = append(to, ", "...)
		}
		to = append(to, bytes.Trim(line[len(name)+1:], " \t")...)
		found = true
	}
	return to, found
}

// appendDerived appends the value of a derived component, and reports whether the component is known (RFC
// 9421, section 2.2). Every signature must cover @target-uri, so any other component of the target covers
// a part of it again.
func (m *Message) appendDerived(to []byte, name string) (value []byte, known bool) {
	scheme, authority, target := m.splitTarget()
	path, query, _ := strings.Cut(target, "?")
	switch name {
	case "@method":
		to = append(to, m.Method...)
	case "@target-uri":
		to = append(to, m.TargetURI...)
	case "@scheme":
		to = append(to, scheme...)
	case "@authority":
		to = append(to, authority...)
	case "@request-target":
		to = append(to, target...)
	case "@path":
		to = append(to, path...)
	case "@query":
		to = append(append(to, '?'), query...)
	default:
		return to, false
	}
	return to, true
}

// splitTarget returns the parts of TargetURI. target is the path and the query.
func (m *Message) splitTarget() (scheme, authority, target string) {
	scheme, rest, _ := strings.Cut(m.TargetURI, "://")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		slash = len(rest)
	}
	return scheme, rest[:slash], rest[slash:]
}

// dictionary parses a header field as a dictionary of structured fields (RFC 9651).
func (m *Message) dictionary(name string) (*httpsfv.Dictionary, error) {
	value, _ := m.appendField(nil, name)
	return httpsfv.UnmarshalDictionary([]string{string(value)})
}

// byteSequence returns a member of a dictionary, and reports whether the member is a byte sequence.
func byteSequence(d *httpsfv.Dictionary, key string) ([]byte, bool) {
	member, _ := d.Get(key)
	item, _ := member.(httpsfv.Item)
	value, ok := item.Value.([]byte)
	return value, ok
}
