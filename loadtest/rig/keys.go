package rig

import "fmt"

// Keys is a list of license keys without a pointer for each: with a million of them the
// garbage collector must not take processor time from the measured processes.
type Keys struct {
	Text   []byte
	Length int // of each
	// Beside is what a request has beside an external key, such as ,"account_id":"acct_1"; empty for license keys.
	Beside string
}

// Count returns how many keys there are.
func (k *Keys) Count() int {
	if k.Length == 0 {
		return 0
	}
	return len(k.Text) / k.Length
}

// At returns a key, which must not be changed.
func (k *Keys) At(i int) []byte { return k.Text[i*k.Length : (i+1)*k.Length] }

// Add adds a key. All keys have the same length, since all are of one product.
func (k *Keys) Add(key []byte) error {
	if k.Length == 0 {
		k.Length = len(key)
	}
	if len(key) != k.Length {
		return fmt.Errorf("license keys of %d and %d characters", k.Length, len(key))
	}
	k.Text = append(k.Text, key...)
	return nil
}
