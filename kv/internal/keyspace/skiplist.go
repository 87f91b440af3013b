package keyspace

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
)

const (
	SkipLevels = 2 // above the entries themselves
	skipBits   = 7 // of a hash that are zero for each level: one entry in 128
	// skipTail is how many bytes at the end of a key decide about its levels: there ids have their random part.
	skipTail = 16

	// SkipFamily begins the keys of the upper levels of all listings.
	SkipFamily = "j/"
)

// SkipHeight returns the highest level on which an entry has a key; 0 for most entries. The level follows from the
// entry alone, so no counter is needed.
func SkipHeight(entry string) int {
	sum := sha256.Sum256([]byte(entry[max(0, len(entry)-skipTail):]))
	zeros := bits.LeadingZeros32(binary.BigEndian.Uint32(sum[:]))
	return min(zeros/skipBits, SkipLevels)
}

// SkipKey returns an entry's key on a level above the lowest. entry is the entry's own key, or the beginning of the
// keys of a listing.
func SkipKey(level int, entry string) string {
	return entry[:slotPrefixSize] + SkipFamily + strconv.Itoa(level) + entry[slotPrefixSize:]
}

// CutSkip returns what follows the family of an entry in a key on an upper level, behind SkipFamily: where the owner's
// path begins.
func CutSkip(rest string) string {
	_, path, _ := strings.Cut(rest, "/")
	return path
}

// SkipKeys returns the keys of an entry on the upper levels. entry is the entry's whole key.
func SkipKeys(entry string) []string {
	var keys []string
	for level := range SkipHeight(entry) {
		keys = append(keys, SkipKey(level+1, entry))
	}
	return keys
}
