package etcd

// Unreadable reports whether a stored value can't be read: err is the reason, and nil if the value can be read. The
// value is damaged, or a newer build wrote it. The caller then goes on as if the value were absent, unless that would
// do harm: one value must not stop what others rely on. Unreadable counts and logs each value once, however often
// the value is read: under its key, which may be secret, and by a name, which is not.
func (c *Client) Unreadable(key, name string, err error) bool {
	if err != nil && c.unreadable.CountOnce(key) {
		c.unreadableLog.Error().Err(err).Str("value", name).
			Msg("can't read a stored value: the node continues without the value, and licet store verify shows it")
	}
	return err != nil
}
