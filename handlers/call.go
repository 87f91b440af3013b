package handlers

import (
	"licet/handlers/connection"
	"licet/handlers/limits"
	"licet/licensing"
)

// call is what the function of a route sees of a request beside the request type: who calls. The
// function notes in it what the response says beside the answer.
type call struct {
	key  *licensing.APIKey // nil: an end user
	conn *connection.Conn  // nil: no listener of package connection accepted the connection

	replayed   bool              // the response repeats an earlier one
	created    bool              // the request has created something; see mayCreate
	bound      bool              // the request has bound a device
	repeatable bool              // the request is idempotent, though not every request to the route is
	decisions  []limits.Decision // of the limits that count the request
}

// owner returns the owner that the caller's API key acts for. The zero owner of an end user
// matches every license.
func (c *call) owner() licensing.Owner { return ownerOf(c.key) }

func ownerOf(key *licensing.APIKey) licensing.Owner {
	if key == nil {
		return licensing.Owner{}
	}
	return key.Owner
}

// actor returns the name that events give to the caller.
func (c *call) actor() licensing.Actor {
	if c.key == nil {
		return licensing.EndUser
	}
	return licensing.Actor(c.key.ID)
}

// target is a license, with who asks for it.
func (c *call) target(key licensing.LicenseKey) licensing.Target {
	return licensing.Target{Key: key, Caller: c.owner(), By: c.actor()}
}

// watcher returns the function that watches the connection while the route's function waits; nil
// if there is none.
func (c *call) watcher() func() (gone <-chan struct{}, stop func()) {
	if c.conn == nil {
		return nil
	}
	return c.conn.Watch
}
