package webhook_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// names starts a name server on this machine and returns a resolver that asks it. A name whose addresses are
// separated by "then" resolves to one after another, and to the last one from then on.
func names(t testing.TB, zone map[string][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &nameServer{conn: conn, zone: zone, asked: map[dnsmessage.Question]int{}}
	server.group.Go(server.serve)
	t.Cleanup(func() {
		_ = conn.Close()
		server.group.Wait()
	})
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
		},
	}
}

type nameServer struct {
	conn  net.PacketConn
	zone  map[string][]string
	asked map[dnsmessage.Question]int
	group sync.WaitGroup
}

const then = "then"

func (s *nameServer) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if packed := s.reply(buffer[:n]); packed != nil {
			_, _ = s.conn.WriteTo(packed, from)
		}
	}
}

// reply returns the response to a question; nil if the message is no question.
func (s *nameServer) reply(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	s.answer(&m)
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// piped returns a resolver that asks a name server in this process, without a network.
func piped(zone map[string][]string) *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			server := &nameServer{zone: zone, asked: map[dnsmessage.Question]int{}}
			go func() {
				defer func() { _ = there.Close() }()
				// As over TCP, the length precedes each message.
				var length [2]byte
				if _, err := io.ReadFull(there, length[:]); err != nil {
					return
				}
				question := make([]byte, binary.BigEndian.Uint16(length[:]))
				if _, err := io.ReadFull(there, question); err != nil {
					return
				}
				answer := server.reply(question)
				_, _ = there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
			}()
			return here, nil
		},
	}
}

func (s *nameServer) answer(m *dnsmessage.Message) {
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	texts, known := s.zone[strings.ToLower(q.Name.String())]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	turns := [][]string{nil}
	for _, text := range texts {
		if text == then {
			turns = append(turns, nil)
			continue
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], text)
	}
	turn := min(s.asked[q], len(turns)-1)
	s.asked[q]++
	for _, text := range turns[turn] {
		addr := netip.MustParseAddr(text)
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header,
				Body: &dnsmessage.AResource{A: addr.As4()}})
		case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header,
				Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
}
