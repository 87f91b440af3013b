package connection

import "math"

// takeBody counts the body of the request that is arriving toward Config.MaxBodies, once the server
// waits for a part of the body. It reports false if there is no room. Nothing is known about the client
// but its address: the server buffers the body before it authenticates the request.
func (c *Conn) takeBody() bool {
	length, begun := c.framing.beginBody()
	if !begun {
		return true
	}
	c.giveBody() // of the request before this one, which has its response
	if length == math.MaxInt64 {
		length = int64(c.listener.cfg.MaxChunked)
	}
	length = min(length, int64(c.listener.cfg.MaxBody))
	if !c.listener.bodies.Take(c.network, length) {
		return false
	}
	c.body.Store(length)
	return true
}

// giveBody ends the count of takeBody.
func (c *Conn) giveBody() {
	if c.body.Load() == 0 {
		return
	}
	if length := c.body.Swap(0); length > 0 {
		c.listener.bodies.Give(c.network, length)
	}
}
