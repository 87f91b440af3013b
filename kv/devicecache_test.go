package kv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/maypok86/otter/v2"

	"licet/kv/internal/layout"
	"licet/licensing"
)

func newTestDeviceCaches(t *testing.T, weight uint64) *deviceCaches {
	t.Helper()
	s, err := newDeviceCaches(weight)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// cacheOf returns the cache behind the device caches.
func cacheOf(s *deviceCaches) *otter.Cache[licensing.LicenseID, *deviceCache] {
	return s.cache.(*otter.Cache[licensing.LicenseID, *deviceCache])
}

func named(bound bool, devices ...string) (written []writtenDevice) {
	for _, id := range devices {
		d := writtenDevice{id: id}
		if bound {
			d = boundDevice(id)
		}
		written = append(written, d)
	}
	return written
}

func boundDevice(id string) writtenDevice {
	return writtenDevice{id, layout.EncodeDevice(&licensing.Device{ID: id})}
}

func swapped(id licensing.LicenseID, from int64, changed []writtenDevice, moved bool) *fresh {
	return &fresh{id: id, from: from, spilled: true, moved: moved, written: changed}
}

// TestDeviceCache takes a device cache through all its changes. At first the license is at revision 10, at which its
// devices a and b got keys of their own.
func TestDeviceCache(t *testing.T) {
	id := newKey(t).ID()
	read := func(f findings, devices ...string) func(*deviceCaches) {
		f.devices = devices
		return func(s *deviceCaches) { s.learn(id, &f) }
	}
	type is = map[string]standing
	for _, c := range []struct {
		name     string
		steps    []func(*deviceCaches)
		revision int64
		want     is
	}{
		{"nothing more", nil, 10, is{"a": bound, "b": bound, "c": absent}},
		{"a swap of our own", []func(*deviceCaches){
			func(s *deviceCaches) { s.follow(swapped(id, 10, named(true, "c"), false), 11) },
			func(s *deviceCaches) { s.follow(swapped(id, 11, named(false, "a"), false), 12) },
		}, 12, is{"a": absent, "b": bound, "c": bound, "d": absent}},
		{"a swap of our own, after a rival's", []func(*deviceCaches){
			func(s *deviceCaches) { s.follow(swapped(id, 11, named(true, "c"), false), 12) },
		}, 12, is{"a": unknown, "b": unknown, "c": bound}},
		{"a swap that was overtaken", []func(*deviceCaches){
			func(s *deviceCaches) { s.follow(swapped(id, 10, named(true, "c"), false), 12) },
			func(s *deviceCaches) { s.follow(swapped(id, 10, named(true, "d"), false), 11) },
		}, 12, is{"c": bound, "d": absent}},
		{"read at the same revision", []func(*deviceCaches){
			read(findings{revision: 10, entries: knownAt("b", 10)}, "b", "c"),
		}, 10, is{"a": bound, "b": bound, "c": absent}},
		{"read of a rival's", []func(*deviceCaches){
			read(findings{revision: 11, entries: knownAt("b", 10)}, "b", "c"),
		}, 11, is{"a": unknown, "b": bound, "c": unknown}},
		{"read of what we have just written", []func(*deviceCaches){
			read(findings{revision: 11, entries: knownAt("c", 11), own: true}, "c"),
			func(s *deviceCaches) { s.follow(swapped(id, 10, named(true, "c", "d"), false), 11) },
		}, 11, is{"a": bound, "c": bound, "d": bound, "e": absent}},
		{"an old read", []func(*deviceCaches){
			func(s *deviceCaches) { s.follow(swapped(id, 10, named(false, "a"), false), 12) },
			read(findings{revision: 11, entries: knownAt("a", 10)}, "a"),
		}, 12, is{"a": absent, "b": bound}},
		{"a loss to what seems older", []func(*deviceCaches){
			read(findings{revision: 7, entries: knownAt("z", 5), corrects: true}, "z", "a"),
		}, 7, is{"a": unknown, "b": unknown, "z": bound}},
		{"a loss to a copy of our own", []func(*deviceCaches){
			read(findings{revision: 11, entries: knownAt("c", 11), own: true, corrects: true}, "c"),
		}, 11, is{"a": unknown, "c": bound}},
		{"moved out anew", []func(*deviceCaches){
			func(s *deviceCaches) { s.follow(swapped(id, 20, named(true, "x"), true), 21) },
		}, 21, is{"a": absent, "x": bound}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestDeviceCaches(t, deviceCacheWeight)
			s.follow(swapped(id, 9, named(true, "a", "b"), true), 10)
			for _, step := range c.steps {
				step(s)
			}
			s.use(id, false, func(r *deviceCache) {
				if r.revision != c.revision {
					t.Errorf("the cache is at revision %d, want %d", r.revision, c.revision)
				}
				for device, want := range c.want {
					if got, _ := r.find(device); got != want {
						t.Errorf("%s: %v, want %v", device, got, want)
					}
				}
			})
		})
	}
}

// TestDeviceCacheTouch: the cache notes a touch over the value that the touch replaced, and ignores an older read.
func TestDeviceCacheTouch(t *testing.T) {
	id, s := newKey(t).ID(), newTestDeviceCaches(t, deviceCacheWeight)
	s.follow(swapped(id, 9, named(true, "a"), true), 10)
	at := func(want int64) {
		t.Helper()
		s.use(id, false, func(r *deviceCache) {
			if _, known := r.find("a"); known.revision != want {
				t.Errorf("a is known as of revision %d, want %d", known.revision, want)
			}
		})
	}
	s.touched(id, boundDevice("a"), 10, 11)
	at(11)
	s.touched(id, boundDevice("a"), 10, 12)
	at(11)
	older := &findings{revision: 10, devices: []string{"a"}, entries: knownAt("a", 10)}
	s.learn(id, older)
	at(11)
	s.touched(id, boundDevice("never"), 0, 12)
	s.use(id, false, func(r *deviceCache) {
		if standing, _ := r.find("never"); standing != absent {
			t.Error("a device that was never bound is known")
		}
	})
	s.touched(newKey(t).ID(), boundDevice("a"), 10, 11)
}

// TestDeviceCacheBounds: the cache of a license contains no more complete devices than its limit, and still knows that
// the dropped devices are bound.
func TestDeviceCacheBounds(t *testing.T) {
	id, s := newKey(t).ID(), newTestDeviceCaches(t, deviceCacheWeight)
	s.follow(swapped(id, 9, nil, true), 10)
	const more = 100
	for i := range completeDevices + more {
		s.follow(swapped(id, int64(10+i), named(true, fmt.Sprint(i)), false), int64(11+i))
	}
	s.use(id, false, func(r *deviceCache) {
		count := map[standing]int{}
		for i := range completeDevices + more {
			standing, _ := r.find(fmt.Sprint(i))
			count[standing]++
		}
		if count[bound] != completeDevices || count[present] != more {
			t.Errorf("%d known in full and %d otherwise", count[bound], count[present])
		}
	})
}

// TestDeviceCacheWeight: the caches together don't grow beyond their weight, however much each of them contains. A
// cleared cache weighs nothing.
func TestDeviceCacheWeight(t *testing.T) {
	const room = 2000
	for _, c := range []struct {
		name string
		bind func(s *deviceCaches, id licensing.LicenseID)
	}{
		{"a device each", func(s *deviceCaches, id licensing.LicenseID) {
			s.follow(swapped(id, 9, named(true, "a"), false), 10)
		}},
		{"long names", func(s *deviceCaches, id licensing.LicenseID) {
			long := boundDevice(strings.Repeat("i", 730))
			s.follow(swapped(id, 9, []writtenDevice{long}, false), 10)
		}},
		{"many devices", func(s *deviceCaches, id licensing.LicenseID) {
			for i := range 100 {
				s.follow(swapped(id, int64(9+i), named(true, fmt.Sprint(i)), i == 0), int64(10+i))
			}
		}},
		{"read and seen anew", func(s *deviceCaches, id licensing.LicenseID) {
			s.learn(id, &findings{revision: 10, devices: []string{"a"}, entries: knownAt("a", 5)})
			for i := range 100 {
				s.touched(id, boundDevice("a"), int64(5+i), int64(6+i))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestDeviceCaches(t, room)
			for range room / 4 { // each weighs 16 at least
				c.bind(s, newKey(t).ID())
			}
			cacheOf(s).CleanUp()
			weight, kept := uint32(0), 0
			for _, r := range cacheOf(s).All() {
				weight += r.weight()
				kept++
			}
			// Entries that have grown since they were last weighed are up to a quarter heavier than counted.
			if kept == 0 || weight > room*5/4 {
				t.Errorf("%d are kept, of a weight of %d; want %d at most", kept, weight, room*5/4)
			}
		})
	}

	s, id := newTestDeviceCaches(t, deviceCacheWeight), newKey(t).ID()
	for i := range 1000 {
		s.follow(swapped(id, int64(9+i), named(true, fmt.Sprint(i)), i == 0), int64(10+i))
	}
	cacheOf(s).CleanUp()
	heavy := cacheOf(s).WeightedSize()
	s.learn(id, &findings{revision: 1 << 30})
	cacheOf(s).CleanUp()
	if got := cacheOf(s).WeightedSize(); heavy < 1000*entryWeight/2 || got > 2*emptyWeight {
		t.Errorf("a cache of 1,000 devices weighs %d, and after it began anew %d", heavy, got)
	}
}

// knownAt is a device with a key of its own that was written at a revision.
func knownAt(id string, revision int64) map[string]knownDevice {
	return map[string]knownDevice{id: {boundDevice(id).value, revision}}
}
