package etcd

// NoteUnreadable notes a stored value that can't be read: under its key, which may be secret, and by a name, which is
// not. It counts and logs each value once, however often the value is read.
func (c *Client) NoteUnreadable(key, name string, err error) {
	if c.unreadable.CountOnce(key) {
		c.unreadableLog.Error().Err(err).Str("value", name).
			Msg("a stored value can't be read; what depends on it goes on without it, and licet store verify shows it")
	}
}
