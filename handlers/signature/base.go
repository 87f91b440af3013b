package signature

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Message is a request as it was received.
type Message struct {
	Method string
	// TargetURI is the absolute URI that the client has asked for: path and
	// query as they were sent, the host in lower case, no port where it is the
	// scheme's own.
	TargetURI string
	// Fields is the header lines, each with CR LF at its end. A line that is
	// folded must have been refused before: here its second half is not found.
	Fields []byte
	Body   []byte // the content, before it is decoded in any way
}

// base makes what a signature is made over (RFC 9421, 2.5).
func (m *Message) base(covered httpsfv.InnerList) ([]byte, error) {
	// Written anew and not taken from the header: a signature is made over the
	// strict form, however the header is spaced.
	params, err := httpsfv.Marshal(covered)
	if err != nil {
		return nil, fmt.Errorf("its parameters can't be written: %w", err)
	}
	base := make([]byte, 0, 1024)
	seen := make([]string, 0, 16)
	for _, item := range covered.Items {
		name, isText := item.Value.(string)
		switch {
		case !isText:
			return nil, fmt.Errorf("a component that it covers is not named by a string")
		case len(item.Params.Names()) > 0:
			return nil, fmt.Errorf("it covers %q with parameters, and components with parameters are not understood", name)
		case slices.Contains(seen, name):
			return nil, fmt.Errorf("it covers %q twice", name)
		case strings.ToLower(name) != name:
			return nil, fmt.Errorf("it covers %q, and component names are in lower case", name)
		}
		seen = append(seen, name)
		// A name that is found has nothing in it that would have to be escaped.
		base = append(append(append(base, '"'), name...), `": `...)
		if base, err = m.appendComponent(base, name); err != nil {
			return nil, err
		}
		base = append(base, '\n')
	}
	return append(append(base, `"@signature-params": `...), params...), nil
}

func (m *Message) appendComponent(to []byte, name string) ([]byte, error) {
	if strings.HasPrefix(name, "@") {
		value, known := m.appendDerived(to, name)
		if !known {
			return nil, fmt.Errorf("it covers %q, which is not understood", name)
		}
		return value, nil
	}
	value, sent := m.appendField(to, name)
	if !sent {
		return nil, fmt.Errorf("it covers %q, which the request does not have", name)
	}
	return value, nil
}

// appendField appends the value of a header field (RFC 9421, 2.1): that of each
// of its lines in order, without the blanks around it, with a comma and a space
// between. The name is in lower case.
func (m *Message) appendField(to []byte, name string) (value []byte, sent bool) {
	for rest := m.Fields; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) <= len(name) || line[len(name)] != ':' || !strings.EqualFold(string(line[:len(name)]), name) {
			continue
		}
		if sent {
			to = append(to, ", "...)
		}
		to = append(to, bytes.Trim(line[len(name)+1:], " \t")...)
		sent = true
	}
	return to, sent
}

// appendDerived appends the value of a component that is no field (RFC 9421,
// 2.2). Whoever covers more of the target than @target-uri, which is demanded,
// covers parts of it again.
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

// splitTarget gives the parts of TargetURI; target is its path and query.
func (m *Message) splitTarget() (scheme, authority, target string) {
	scheme, rest, _ := strings.Cut(m.TargetURI, "://")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		slash = len(rest)
	}
	return scheme, rest[:slash], rest[slash:]
}

// dictionary reads a header field that is a dictionary of structured fields.
func (m *Message) dictionary(name string) (*httpsfv.Dictionary, error) {
	value, _ := m.appendField(nil, name)
	return httpsfv.UnmarshalDictionary([]string{string(value)})
}

// byteSequence gives a member of a dictionary that is a byte sequence.
func byteSequence(d *httpsfv.Dictionary, key string) ([]byte, bool) {
	member, _ := d.Get(key)
	item, _ := member.(httpsfv.Item)
	value, ok := item.Value.([]byte)
	return value, ok
}
