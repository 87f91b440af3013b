package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"
)

const (
	skipLevels = 2 // above the entries themselves
	skipBits   = 7 // of a hash that are zero for each level: one entry in 128
	// skipTail is how much of the end of a key decides about its levels: there
	// ids have their random part.
	skipTail = 16

	skipPrefix = "j/"
)

// skipHeight is the highest level that an entry has a key on; 0 for most. It
// follows from the entry alone, so that nobody has to keep count.
func skipHeight(entry string) int {
	sum := sha256.Sum256([]byte(entry[max(0, len(entry)-skipTail):]))
	zeros := bits.LeadingZeros32(binary.BigEndian.Uint32(sum[:]))
	return min(zeros/skipBits, skipLevels)
}

// skipKey is an entry's key on a level above the lowest. The entry is given as
// its own key without the layout.
func skipKey(level int, entry string) string {
	return layout + skipPrefix + strconv.Itoa(level) + entry
}

// skipKeys are all keys of an entry, which is given as its whole key, but for
// its own.
func skipKeys(entry string) []string {
	var keys []string
	for level := range skipHeight(entry) {
		keys = append(keys, skipKey(level+1, entry[len(layout):]))
	}
	return keys
}
