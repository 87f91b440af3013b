package etcdtest

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// network connects members, and can isolate one. Each member runs in a directory of its own, and peers
// use relative paths of sockets. In a member's directory, the socket of another member is a link of
// this network, which forwards to the real socket.
type network struct {
	links []*link
}

// newNetwork links all members, whose directories must be there.
func newNetwork(members []*Member) (*network, error) {
	n := &network{}
	for _, from := range members {
		for _, to := range members {
			if from == to {
				continue
			}
			listener, err := net.Listen("unix", filepath.Join(from.dir, peerSocket(to.spec.Name)))
			if err != nil {
				return n, err
			}
			l := &link{
				from: from, to: to, listener: listener,
				target: filepath.Join(to.dir, peerSocket(to.spec.Name)),
				open:   map[net.Conn]bool{},
			}
			n.links = append(n.links, l)
			l.group.Go(l.accept)
		}
	}
	return n, nil
}

// isolate cuts every link to and from a member, or mends them.
func (n *network) isolate(m *Member, cut bool) {
	for _, l := range n.links {
		if l.from == m || l.to == m {
			l.set(cut)
		}
	}
}

func (n *network) close() {
	for _, l := range n.links {
		_ = l.listener.Close()
		l.set(true)
	}
	for _, l := range n.links {
		l.group.Wait()
	}
}

// link passes on what one member sends to another, and the answers.
type link struct {
	from, to *Member
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool
}

func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if !cut {
		return
	}
	for conn := range l.open {
		_ = conn.Close()
	}
}

// track notes a connection, to be closed when the link is cut.
func (l *link) track(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		_ = conn.Close()
		return false
	}
	l.open[conn] = true
	return true
}

func (l *link) drop(conn net.Conn) {
	_ = conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
}

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && l.track(near) {
			l.group.Go(func() { l.pass(near) })
		}
	}
}

func (l *link) pass(near net.Conn) {
	defer l.drop(near)
	far, err := net.Dial("unix", l.target)
	if err != nil || !l.track(far) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.Close()
	})
	_, _ = io.Copy(far, near)
	l.drop(far)
	back.Wait()
}

// peerSocket is the name of a member's socket for its peers.
func peerSocket(name string) string { return name + ":1" }

// peerURL returns the address of that socket, relative to the directory of the process that uses the socket.
func peerURL(name string) string { return "unix://" + peerSocket(name) }

func makeDirs(members []*Member) error {
	for _, m := range members {
		if err := os.Mkdir(m.dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}
