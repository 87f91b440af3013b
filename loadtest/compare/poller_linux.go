package main

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// poller waits for many connections at once, with epoll. The runtime's own network poller
// takes a goroutine switch and a system call more for each answer.
type poller struct {
	epoll  int
	events []syscall.EpollEvent
	ready  []int
}

func newPoller() (*poller, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an epoll instance: %w", err)
	}
	p := &poller{epoll: epoll, events: make([]syscall.EpollEvent, 256)}
	if _, errno := p.pause(0); errno == syscall.ENOSYS {
		p.close()
		return nil, fmt.Errorf("epoll_pwait2, of Linux 5.11: %w", errno)
	}
	return p, nil
}

func (p *poller) close() { _ = syscall.Close(p.epoll) }

// connect opens a connection, which wait identifies by the given number.
func (p *poller) connect(address string, number int) (fd int, err error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return -1, fmt.Errorf("the node's address: %w", err)
	}
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = syscall.Close(fd)
			fd = -1
		}
	}()
	if err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		return -1, fmt.Errorf("connect to the node: %w", err)
	}
	if err = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return -1, fmt.Errorf("set TCP_NODELAY: %w", err)
	}
	// Thousands of closed ones would keep their ports for a minute.
	if err = syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER,
		&syscall.Linger{Onoff: 1}); err != nil {
		return -1, fmt.Errorf("set SO_LINGER: %w", err)
	}
	if err = syscall.SetNonblock(fd, true); err != nil {
		return -1, fmt.Errorf("set a socket to non-blocking: %w", err)
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP, Fd: int32(number)}
	if err = syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		return -1, fmt.Errorf("watch a connection: %w", err)
	}
	return fd, nil
}

func (p *poller) hangUp(fd int) { _ = syscall.Close(fd) }

// wait returns the numbers of connections that have something to read, or have ended.
func (p *poller) wait(longest time.Duration) []int {
	n, _ := p.pause(longest)
	p.ready = p.ready[:0]
	for i := range n {
		p.ready = append(p.ready, int(p.events[i].Fd))
	}
	return p.ready
}

// pause waits for events. There are none after a signal. It is exact to some ten
// microseconds: epoll's older call and the runtime's own timers are late by up to a
// millisecond, too late for an open loop.
func (p *poller) pause(longest time.Duration) (events int, errno syscall.Errno) {
	const epollPwait2 = 441 // syscall does not know it
	span := syscall.NsecToTimespec(int64(max(longest, 0)))
	n, _, errno := syscall.Syscall6(epollPwait2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(unsafe.Pointer(&span)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// write reports whether all bytes were sent. A request always fits into a connection's
// buffer.
func (p *poller) write(fd int, b []byte) bool {
	n, err := syscall.Write(fd, b)
	return err == nil && n == len(b)
}

// readNothing is what read returns if nothing has come yet; 0 is the end.
const readNothing = -2

func (p *poller) read(fd int, b []byte) int {
	n, err := syscall.Read(fd, b)
	switch err {
	case nil:
		return n
	case syscall.EAGAIN, syscall.EINTR:
		return readNothing
	}
	return -1
}

// sleepUntil waits for a moment, to within some ten microseconds. The runtime's own
// timers are late by up to a millisecond on an idle machine, too late for an open loop.
func sleepUntil(at time.Time) {
	for wait := time.Until(at); wait > 0; wait = time.Until(at) {
		span := syscall.NsecToTimespec(int64(wait))
		_ = syscall.Nanosleep(&span, nil) // a signal ends it early
	}
}
