package etcd

// Unreadable reports whether a stored value can't be read: err is the reason, and nil if the value can be read. The
// value is damaged, or a newer build wrote it. The caller then continues as if the value were absent, unless that would
// do harm: one value must not affect other values. Unreadable counts and logs each value once, however often the value
// is read. It counts by the key, which may be secret, and logs the name, which is not.
func (c *Client) Unreadable(key, name string, err error) bool {
	if err != nil && c.unreadable.CountOnce(key) {
		c.unreadableLog.Error().Err(err).Str("value", name).
			Msg("can't read a stored value: the node continues without the value, and licet store verify shows it")
	}
	return err != nil
}
